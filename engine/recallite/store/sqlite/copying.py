"""The columns of SQLite's tables, whose values are checked, and the numbers from which it goes on after a copy."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

from recallite.errors import StoreCorrupt
from recallite.store.sql.copying import COPIED, CopiedRow, Copying

if TYPE_CHECKING:
    from recallite.store.sqlite.transaction import SqliteTransaction

_TYPES = {"SERIAL": int, "ID": int, "FLAG": int, "INTEGER": int, "REAL": float, "TEXT": str, "BLOB": bytes}


class SqliteCopying(Copying):
    """Every table that a copy takes over, and `sqlite_sequence`."""

    _tx: SqliteTransaction

    def _check(self, table: str, columns: Sequence[str], rows: list[Any]) -> None:
        for place, name in enumerate(columns):
            types = {_TYPES[COPIED[table].columns[name][0]]}
            if COPIED[table].may_be_null(name):
                types.add(NoneType)
            if not {type(row[place]) for row in rows} <= types:
                wrong = next(row for row in rows if type(row[place]) not in types)
                raise StoreCorrupt(
                    f"{self._tx.path}: {name} of {table} {wrong[0]!r:.60} is not what was stored: another program "
                    "changed it; correct or remove the row, or try: recallite rebuild"
                )

    def clear(self, *, access_tokens: bool) -> None:
        super().clear(access_tokens=access_tokens)
        self._tx.records.texts.clear()

    def put(self, table: str, columns: Sequence[str], rows: Sequence[CopiedRow]) -> None:
        super().put(table, columns, rows)
        if table == "record" and rows:
            id = columns.index("id")
            self._tx.records.list_texts(rows[0][id], rows[-1][id])

    def last_ids(self) -> dict[str, int]:
        return dict(self._rows("SELECT name, seq FROM sqlite_sequence WHERE name != 'feed'"))

    def _number_from(self, last_ids: dict[str, int]) -> None:
        for table, last in last_ids.items():
            # Only tables that never use an id again have a row there, once they have had one.
            numbered = self._execute(
                "SELECT 1 FROM sqlite_schema WHERE name = ? AND sql LIKE '%AUTOINCREMENT%'", (table,)
            )
            if not numbered.fetchall():
                continue
            self._execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (last, table))
            if not self._connection.changes():
                self._execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))
