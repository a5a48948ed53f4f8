"""Placing memories among those that have a point: at the weighted mean of their nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallite.store.values import EmbedderRow
from recallite.system.numerics import kernel_errors
from recallite.system.parallel import run_tasks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.memory_index import MemoryIndex
    from recallite.store.protocol import Reader


# Of so many nearest neighbours, each weighs exp((its cosine - the best) / _SCALE): a point between two groups stays
# with the one it is nearer to.
_NEAREST = 5
_SCALE = 0.05
# Records read, and queries asked, at once.
_BLOCK_ROWS = 2_000
_QUERIES = 256


def unit_vectors(
    reader: Reader, ids: NDArray[np.int64], embedder: EmbedderRow
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Row ids and one unit vector of each record that has any, float32 (rows, dimension), a few thousand at a time.

    It is the mean of a long text's parts.
    """
    for start in range(0, len(ids), _BLOCK_ROWS):
        values = reader.vectors.values_of(ids[start : start + _BLOCK_ROWS].tolist(), embedder)
        if values:
            yield np.fromiter(values, dtype=np.int64), _means([*values.values()], embedder.dimension)


def _means(parts: Sequence[list[bytes]], dimension: int) -> NDArray[np.float32]:
    counts = np.array([len(each) for each in parts])
    every = np.frombuffer(b"".join(value for each in parts for value in each), dtype="<f4").reshape(-1, dimension)
    every = np.nan_to_num(every)  # written from outside: `verify` names it
    if (counts > 1).any():
        every = np.add.reduceat(every, np.cumsum(counts) - counts, axis=0)
    lengths = np.linalg.norm(every, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (every / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    return unit


def placed_among(
    index: MemoryIndex,
    queries: NDArray[np.float32],
    anchors: NDArray[np.int64],
    points: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Where vectors (q, dimension) belong, float32 (q, 2), given the points (n, 2) of the records with the row ids
    `anchors`, ascending. Call it with the index locked for reading.
    """
    if index.vectors is None:
        return np.empty((0, 2), dtype=np.float32)
    rows = index.table.rows_of(anchors)
    listed = np.zeros(len(index.table), dtype=np.uint8)
    listed[rows[rows >= 0]] = 1
    allowed = np.flatnonzero(index.vectors.admitted(listed))
    if not len(allowed):
        return np.empty((0, 2), dtype=np.float32)
    found = []
    with kernel_errors():
        for start in range(0, len(queries), _QUERIES):
            asked = np.ascontiguousarray(queries[start : start + _QUERIES])
            shortlists = run_tasks(index.vectors.shortlist_tasks(asked, allowed, _NEAREST))
            places, cosines = index.vectors.rescore(asked, shortlists, min(_NEAREST, len(allowed)))
            near = index.table.ids[index.vectors.owners(places)]
            weights = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / _SCALE)[:, :, None]
            there = points[np.searchsorted(anchors, near)]
            found.append(((there * weights).sum(axis=1) / weights.sum(axis=1)).astype(np.float32))
    return np.concatenate(found)
