"""FTS5's BM25 over a part of a table: the same formula with the statistics of that part.

`bm25()` uses statistics of the whole table, so its scores reveal what is in other scopes. Over the whole table the
scores are those of `bm25()` to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from recallite.store.sql import sessions
from recallite.store.sql.conditions import Condition
from recallite.store.sql.repository import IN_ARRAY
from recallite.store.sqlite.arrays import id_array


class Table(NamedTuple):
    """An FTS5 table of one column, the tables that its rowids refer to, and their id column as conditions name it."""

    name: str
    source: str
    row_id: str


def bm25(
    connection: apsw.Connection, table: Table, words: Sequence[str], part: Condition | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows with any of `words` where `part` is true (None: all), ascending, and their BM25; higher is better."""
    if part is None:
        joined, condition, values = "", "", ()
        # FTS5 keeps both in its "averages" record.
        block = connection.execute(f"SELECT block FROM {table.name}_data WHERE id = 1").get
        records, total = (*_varints(block or b""), 0, 0)[:2]
    else:
        joined, values = f"JOIN {table.source}", part.values
        condition = f"AND {table.row_id} = {{}} AND ({part.sql})"
        sizes: Any = connection.execute(
            f"SELECT z.sz, count(*) FROM {table.name}_docsize z {joined} WHERE 1 {condition.format('z.id')} "
            "GROUP BY z.sz",
            values,
        ).fetchall()
        records = sum(count for _, count in sizes)
        total = sum(_varints(size)[0] * count for size, count in sizes)
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table.name}_places USING fts5vocab(main, {table.name}, 'instance')"
    )
    holders = [
        np.array(
            connection.execute(
                f"SELECT v.doc, count(*) FROM temp.{table.name}_places v {joined} "
                f"WHERE v.term = ? {condition.format('v.doc')} GROUP BY v.doc",
                (word, *values),
            ).fetchall(),
            dtype=np.int64,
        ).reshape(-1, 2)
        for word in words
    ]
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(pairs[:, 0] for pairs in holders)]))
    counts = np.zeros((len(words), len(rows)))
    for count, pairs in zip(counts, holders, strict=True):
        count[np.searchsorted(rows, pairs[:, 0])] = pairs[:, 1]
    return rows, sessions.bm25(counts, _lengths(connection, table, rows), records, total)


def _varints(blob: bytes) -> list[int]:
    """SQLite's variable-length integers: seven bits a byte, the high bit set on all but the last."""
    numbers, value = [], 0
    for byte in blob:
        value = (value << 7) | (byte & 0x7F)
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return numbers


def _lengths(connection: apsw.Connection, table: Table, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The number of words in each of these rows."""
    sizes = dict(connection.execute(f"SELECT id, sz FROM {table.name}_docsize WHERE id {IN_ARRAY}", (id_array(rows),)))
    return np.array([_varints(sizes[row])[0] for row in rows.tolist()], dtype=np.float64)
