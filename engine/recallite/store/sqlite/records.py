"""Writing records in SQLite, with their packed columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import apsw

from recallite.store.columns import RowColumns
from recallite.store.sql.records import INSERT_RECORD, SqlRecords, values_of
from recallite.store.sqlite.record_packing import pack_records
from recallite.store.sqlite.schema import PACKED_SQL

# Rows from which on turning the triggers off, for which SQLite compiles its statements again, is worth it.
_MANY = 64


class SqliteRecords(SqlRecords):
    """The table `record`, and `record_packed`, which triggers keep in step."""

    def _insert_rows(
        self, ids: Sequence[int], rows: RowColumns, scopes: Sequence[int], sources: Sequence[int | None]
    ) -> None:
        if len(rows) < _MANY:
            super()._insert_rows(ids, rows, scopes, sources)
            return
        # `record_packed` in one array: its trigger takes three quarters of the time of an insert.
        config = self._tx.connection.config  # type: ignore[attr-defined]
        config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        try:
            self._execute_many(INSERT_RECORD, values_of(ids, rows, scopes, sources))
        finally:
            config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
        self._tx.add_names("kind", "name", [*dict.fromkeys(rows.kind)])
        kinds = dict(self._execute("SELECT name, id FROM kind"))
        packed = pack_records(ids, rows, scopes, sources, [*map(kinds.__getitem__, rows.kind)])
        shown = compress(zip(ids, packed, strict=True), rows.indexed)
        self._execute_many("INSERT INTO record_packed VALUES (?, ?)", shown)

    def _set_indexed(self, record_id: int, indexed: bool) -> None:
        if indexed:
            self._execute(
                f"INSERT OR IGNORE INTO record_packed SELECT r.id, {PACKED_SQL} FROM record r WHERE r.id = ?",
                (record_id,),
            )
        else:
            self._execute("DELETE FROM record_packed WHERE record_id = ?", (record_id,))
