"""What the repositories of SQLite share: the transaction that they belong to, and its connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.store.sqlite.transaction import SqliteTransaction

__all__ = ["Repository"]


class Repository:
    """Part of a transaction."""

    def __init__(self, transaction: SqliteTransaction) -> None:
        self._tx = transaction
        self._connection = transaction.connection
