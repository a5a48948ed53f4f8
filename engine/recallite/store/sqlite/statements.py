"""The keys of statements in SQLite: in sorted runs; see `key_lists`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from recallite.store.sql.statements import NEWEST_OF_A_KEY, KeysOf, Statements
from recallite.store.sqlite.key_lists import KeyLists

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recallite.store.sqlite.transaction import SqliteTransaction


class SqliteStatements(Statements):
    """The table `statement` and the lists of its keys."""

    def __init__(self, transaction: SqliteTransaction) -> None:
        super().__init__(transaction)
        self._lists = KeyLists(transaction, "statement")

    def listed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._lists.all()

    def clear(self) -> None:
        self._lists.clear()

    def _list(self, rows: Sequence[KeysOf]) -> None:
        self._lists.add(rows)

    def _unlist(self, rows: Sequence[KeysOf], *, erase: bool) -> None:
        self._lists.remove(rows, erase=erase)

    def _newest(self, keys: Collection[int]) -> dict[int, list[int]]:
        return self._lists.newest(keys, NEWEST_OF_A_KEY) if keys else {}
