"""Records in PostgreSQL, whose tags are noted for tenants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from recallite.errors import Conflict
from recallite.store.columns import RowColumns
from recallite.store.sql.records import Records
from recallite.system.messages import shown

# As a join with the array, a table without statistics was read whole.
BY_TEXT = "SELECT id, text_key FROM record WHERE text_key = ANY (?) AND recorded_until IS NULL"


class PostgresRecords(Records):
    """The table `record`."""

    def _insert_rows(
        self, ids: Sequence[int], rows: RowColumns, scopes: Sequence[int], sources: Sequence[int | None]
    ) -> None:
        try:
            super()._insert_rows(ids, rows, scopes, sources)
        except psycopg.errors.UniqueViolation as fault:
            if fault.diag.constraint_name != "record_public_id":
                raise
            # Of a memory that a tenant does not see. Which one the server tells to nobody but the owner.
            named = shown(rows.public_id[0]) if len(rows) == 1 else "of a memory"
            raise Conflict(f"the id {named} is taken by a memory outside this scope: give another") from None

    def put_tags(self, tagged: Sequence[tuple[int, tuple[str, ...]]]) -> None:
        super().put_tags(tagged)
        self._note_tags([record_id for record_id, tags in tagged if tags])

    def _note_tags(self, record_ids: Sequence[int]) -> None:
        """Note of the scopes of records which tags are in them."""
        if record_ids:
            self._execute("SELECT note_tags(?)", (self._id_array(record_ids),))

    def ids_by_text(self, keys: Sequence[bytes]) -> dict[int, bytes]:
        return {record_id: bytes(key) for record_id, key in self._rows(BY_TEXT, (self._byte_array(keys),))}

    def change_columns(self, record_id: int, columns: dict[str, Any], tags: tuple[str, ...] | None) -> None:
        super().change_columns(record_id, columns, tags)
        if "scope" in columns:
            self._note_tags([record_id])
