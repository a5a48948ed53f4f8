"""FTS5's BM25 over a part of a table: the same formula on counts of that part alone.

`bm25()` weighs words by the whole table, so its scores tell what others have written. Where a reader may see only a
part, this counts that part: where it is the whole, the scores are those of `bm25()` to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import numpy as np

from recollect.store.sqlite.arrays import id_array
from recollect.store.sqlite.conditions import Condition

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Table", "Tally", "tally", "whole"]

# Those of fts5_aux.c.
_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6


class Table(NamedTuple):
    """An FTS5 table of one column, the rows that its rowids stand for, and their id, both as conditions name them."""

    name: str
    standing: str
    row_id: str


class Tally(NamedTuple):
    """Counts of a part: its rows and words, in how many of its rows each word stands, and the rows that hold any.

    rows int64 (n,) ascending; scores float64 (n,), higher is better.
    """

    records: int
    words: int
    frequencies: NDArray[np.int64]
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]


def tally(connection: apsw.Connection, table: Table, words: Sequence[str], part: Condition | None) -> Tally:
    """The counts of the rows where `part` holds, None for all, and the BM25 by them of those with any of `words`."""
    if part is None:
        standing, condition, values = "", "", ()
        records, total = whole(connection, table.name)
    else:
        standing, values = f"JOIN {table.standing}", part.values
        condition = f"AND {table.row_id} = {{}} AND ({part.sql})"
        sizes: Any = connection.execute(
            f"SELECT z.sz, count(*) FROM {table.name}_docsize z {standing} WHERE 1 {condition.format('z.id')} "
            "GROUP BY z.sz",
            values,
        ).fetchall()
        records = sum(count for _, count in sizes)
        total = sum(_varints(size)[0] * count for size, count in sizes)
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table.name}_places USING fts5vocab(main, {table.name}, 'instance')"
    )
    held = [
        np.array(
            connection.execute(
                f"SELECT v.doc, count(*) FROM temp.{table.name}_places v {standing} "
                f"WHERE v.term = ? {condition.format('v.doc')} GROUP BY v.doc",
                (word, *values),
            ).fetchall(),
            dtype=np.int64,
        ).reshape(-1, 2)
        for word in words
    ]
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(each[:, 0] for each in held)]))
    frequencies = np.array([len(each) for each in held], dtype=np.int64)
    scores = np.zeros(len(rows))
    if len(rows):
        lengths = _lengths(connection, table, rows)
        average = total / records
        for each, frequency in zip(held, frequencies.tolist(), strict=True):
            counts = np.zeros(len(rows))
            counts[np.searchsorted(rows, each[:, 0])] = each[:, 1]
            idf = math.log((records - frequency + 0.5) / (frequency + 0.5))
            weight = idf if idf > 0 else _LEAST_IDF
            scores += weight * ((counts * (_K1 + 1.0)) / (counts + _K1 * (1 - _B + _B * lengths / average)))
    return Tally(records, total, frequencies, rows, scores)


def whole(connection: apsw.Connection, name: str) -> tuple[int, int]:
    """How many rows and words an FTS5 table has, without reading it."""
    # FTS5 keeps them in its "averages" record, as variable-length integers.
    records, total = (*_varints(connection.execute(f"SELECT block FROM {name}_data WHERE id = 1").get or b""), 0, 0)[:2]
    return records, total


def _varints(blob: bytes) -> list[int]:
    """SQLite's variable-length integers: seven bits a byte, high bit set on all but the last."""
    numbers, value = [], 0
    for byte in blob:
        value = (value << 7) | (byte & 0x7F)
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return numbers


def _lengths(connection: apsw.Connection, table: Table, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Words of each of these rows."""
    found = dict(
        connection.execute(
            f"SELECT id, sz FROM {table.name}_docsize WHERE id IN (SELECT value FROM carray(?))", (id_array(rows),)
        )
    )
    return np.array([_varints(found[row])[0] for row in rows.tolist()], dtype=np.float64)
