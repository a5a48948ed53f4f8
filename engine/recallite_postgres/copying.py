"""The columns of PostgreSQL's tables, the tags of scopes that a copy brings, and the sequences that go on after it."""

from __future__ import annotations

from collections.abc import Sequence

from recallite.store.sql.copying import COPIED, CopiedRow, Copying

_NUMBERED = [name for name, table in COPIED.items() if table.key == "id"]


class PostgresCopying(Copying):
    """Every table that a copy takes over."""

    def lift_time_limits(self) -> None:
        self._execute(
            "SELECT set_config('statement_timeout', '0', true), "
            "set_config('idle_in_transaction_session_timeout', '0', true)"
        )

    def clear(self, *, access_tokens: bool) -> None:
        self.lift_time_limits()
        super().clear(access_tokens=access_tokens)

    def put(self, table: str, columns: Sequence[str], rows: Sequence[CopiedRow]) -> None:
        flags = {name for name, (kind, _) in COPIED[table].columns.items() if kind == "FLAG"}
        if flags:
            places = {place for place, name in enumerate(columns) if name in flags}
            rows = [tuple(bool(it) if place in places else it for place, it in enumerate(row)) for row in rows]
        super().put(table, columns, rows)
        if table == "record_tag" and rows:
            self._execute("SELECT note_tags(?)", (self._id_array([row[columns.index("record_id")] for row in rows]),))

    def last_ids(self) -> dict[str, int]:
        rows = self._rows(
            "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema() "
            "AND last_value IS NOT NULL"
        )
        last_values = dict(rows)
        return {table: last_values[f"{table}_id_seq"] for table in _NUMBERED if f"{table}_id_seq" in last_values}

    def _number_from(self, last_ids: dict[str, int]) -> None:
        for table in _NUMBERED:
            last = max(last_ids.get(table, 0), self._number(f"SELECT coalesce(max(id), 0) FROM {table}"))
            if last:
                self._execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), ?)", (last,))
