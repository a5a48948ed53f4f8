"""The numbers from which SQLite goes on after a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallite.store.protocol.copying import CopiedPart, CopiedRow
from recallite.store.sql.copied_tables import CopiedTable
from recallite.store.sql.copying import SqlCopying

if TYPE_CHECKING:
    from recallite.store.sqlite.transaction import SqliteTransaction


class SqliteCopying(SqlCopying):
    """All tables that a copy takes over, and `sqlite_sequence`."""

    _tx: SqliteTransaction

    def clear(self, part: CopiedPart) -> None:
        super().clear(part)
        self._tx.records.texts.clear()

    def _insert(self, table: CopiedTable, rows: Sequence[CopiedRow]) -> None:
        super()._insert(table, rows)
        if table.name == "record":
            self._tx.records.list_texts(rows[0][0], rows[-1][0])

    def last_ids(self) -> dict[str, int]:
        return dict(self._rows("SELECT name, seq FROM sqlite_sequence WHERE name != 'feed'"))

    def _number_from(self, last_ids: dict[str, int]) -> None:
        for table, last in last_ids.items():
            # Only tables that never use an id again have a row there, once they have had one.
            kept = self._execute("SELECT 1 FROM sqlite_schema WHERE name = ? AND sql LIKE '%AUTOINCREMENT%'", (table,))
            if not kept.fetchall():
                continue
            self._execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (last, table))
            if not self._connection.changes():
                self._execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))
