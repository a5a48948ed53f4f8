"""What the repositories of SQLite share: their transaction, and short ways to ask its connection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.store.sqlite.transaction import SqliteTransaction


INSIDE = "this is not possible inside transaction(): call it before or after"
"""What is said of that which SQLite does not do in a transaction, or would end it."""


class Repository:
    """Part of a transaction."""

    def __init__(self, transaction: SqliteTransaction) -> None:
        self._tx = transaction
        self._connection = transaction.connection
        self._execute = transaction.connection.execute

    def _execute_many(self, sql: str, rows: Iterable[Any]) -> None:
        """Run a statement for each of some rows. Without a row it is not even prepared, which takes 3 to 10 us."""
        if not isinstance(rows, list) or rows:
            self._connection.executemany(sql, rows)

    def _rows(self, sql: str, bindings: Any = ()) -> list[Any]:
        return self._execute(sql, bindings).fetchall()

    def _column(self, sql: str, bindings: Any = ()) -> list[Any]:
        return [row[0] for row in self._execute(sql, bindings)]

    def _number(self, sql: str, bindings: Any = ()) -> int:
        return int(self._execute(sql, bindings).get)


def id_array(ids: Sequence[int] | NDArray[np.int64]) -> apsw.CArrayBinding:
    """`ids` for `carray(?)`, without a Python object each. SQLite refuses an empty array: an impossible id fills it."""
    array = np.ascontiguousarray(ids, dtype=np.int64)
    return apsw.carray(array if array.size else np.array([-1], dtype=np.int64), flags=apsw.SQLITE_CARRAY_INT64)
