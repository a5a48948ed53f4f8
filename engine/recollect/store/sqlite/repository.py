"""What the repositories of SQLite share: their transaction, and short ways to ask its connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.store.sqlite.transaction import SqliteTransaction

__all__ = ["Repository"]


class Repository:
    """Part of a transaction."""

    def __init__(self, transaction: SqliteTransaction) -> None:
        self._tx = transaction
        self._connection = transaction.connection
        self._execute = transaction.connection.execute
        self._execute_many = transaction.connection.executemany

    def _rows(self, sql: str, bindings: Any = ()) -> list[Any]:
        return self._execute(sql, bindings).fetchall()

    def _column(self, sql: str, bindings: Any = ()) -> list[Any]:
        return [row[0] for row in self._execute(sql, bindings)]

    def _number(self, sql: str, bindings: Any = ()) -> int:
        return int(self._execute(sql, bindings).get)
