"""The tags of scopes that a copy brings, and the sequences from which PostgreSQL goes on after a copy."""

from __future__ import annotations

from collections.abc import Sequence

from recallite.store.protocol.copying import CopiedPart, CopiedRow
from recallite.store.sql.copied_tables import TABLES, CopiedTable
from recallite.store.sql.copying import SqlCopying, SqlPart

_NUMBERED = [table.name for table in TABLES if table.names[0] == "id"]


class PostgresCopying(SqlCopying):
    """All tables that a copy takes over."""

    def of(self, part: CopiedPart, *, everything: bool = False) -> SqlPart:
        self._take_time()
        return super().of(part, everything=everything)

    def clear(self, part: CopiedPart) -> None:
        self._take_time()
        super().clear(part)

    def _take_time(self) -> None:
        """What is done with a large table, and what is done elsewhere meanwhile, takes longer than it may otherwise."""
        self._execute(
            "SELECT set_config('statement_timeout', '0', true), "
            "set_config('idle_in_transaction_session_timeout', '0', true)"
        )

    def last_ids(self) -> dict[str, int]:
        rows = self._rows(
            "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema() "
            "AND last_value IS NOT NULL"
        )
        given = dict(rows)
        return {table: given[f"{table}_id_seq"] for table in _NUMBERED if f"{table}_id_seq" in given}

    def _number_from(self, last_ids: dict[str, int]) -> None:
        for table in _NUMBERED:
            last = max(last_ids.get(table, 0), self._number(f"SELECT coalesce(max(id), 0) FROM {table}"))
            if last:
                self._execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), ?)", (last,))

    def _insert(self, table: CopiedTable, rows: Sequence[CopiedRow]) -> None:
        super()._insert(table, rows)
        if table.name == "record_tag":
            self._execute("SELECT note_tags(?)", (self._id_array([row[0] for row in rows]),))
