"""Writing records in PostgreSQL: their kinds are numbered by hand, and no columns are packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.store.sql.records import SqlRecords
from recollect.store.values import Row


class PostgresRecords(SqlRecords):
    """The table `record`."""

    def _insert_rows(
        self, ids: Sequence[int], rows: Sequence[Row], scopes: Sequence[int], sources: Sequence[int | None]
    ) -> None:
        self._tx.add_names("kind", "name", [*dict.fromkeys(row.kind for row in rows)])
        super()._insert_rows(ids, rows, scopes, sources)

    def change_columns(self, record_id: int, columns: dict[str, Any], tags: tuple[str, ...] | None) -> None:
        if "kind" in columns:
            self._tx.add_names("kind", "name", [columns["kind"]])
        super().change_columns(record_id, columns, tags)
