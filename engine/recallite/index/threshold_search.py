"""Threshold search: current records of one scope and kind that may reach a least cosine.

Writes run it per text, in their own transaction, on an index that may lack the last few records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recallite.index.memory_index import MemoryIndex
from recallite.index.table import RowFilter
from recallite.store.sql.vectors import EmbedderRow
from recallite.store.transaction import Reader
from recallite.system.parallel import run_tasks

# Queries per kernel call, as in recall.
_GROUP = 32
# The error of a cosine from int8 codes: at most 0.004 was measured.
_CODE_ERROR = 0.02
_ROUNDING = 1e-4

# Row ids of the records to measure the cosine of, and whether each was embedded in one part.
Likely = dict[int, bool]


class ThresholdQuery(NamedTuple):
    """A search for records of exactly this scope and kind, not expired `now`, with a cosine of at least `floor`.

    It finds at most `most` of them.
    """

    scope_id: int
    kind: str
    now: int
    most: int
    floor: float


def likely_among(
    records: Iterable[tuple[int, int, str, int, NDArray[np.float32]]],
    queries: NDArray[np.float32],
    search: ThresholdQuery,
) -> list[Likely]:
    """The records among some, as `Vectors.of_current` gives them, that may match each query; all are compared."""
    likely: list[Likely] = [{} for _ in queries]
    of_scope = [
        (row_id, parts)
        for row_id, scope_id, kind, expires_at, parts in records
        if (scope_id, kind) == (search.scope_id, search.kind) and expires_at > search.now
    ]
    if not of_scope:
        return likely
    sizes = np.array([len(parts) for _, parts in of_scope])
    products = queries @ np.concatenate([parts for _, parts in of_scope]).T
    rough = np.maximum.reduceat(products, np.cumsum(sizes) - sizes, axis=1)
    bounds = np.full((len(queries), 1), search.floor)
    if len(of_scope) > search.most:
        bounds = np.maximum(bounds, np.partition(rough, -search.most, axis=1)[:, -search.most, None])
    # The rounding of a matrix product depends on the other rows, which may belong to another scope.
    for query, i in np.argwhere(rough >= bounds - _ROUNDING).tolist():
        likely[query][of_scope[i][0]] = bool(sizes[i] == 1)
    return likely


def likely_in_index(index: MemoryIndex, queries: NDArray[np.float32], search: ThresholdQuery) -> list[Likely]:
    """The records that may match each query, float32 (q, dimension) of unit length, while the index is held."""
    hidden = index.table.superseded_rows()
    visible = RowFilter(now=search.now, scopes=(search.scope_id,), kinds=(search.kind,), hidden=hidden)
    mask = index.selection(visible)
    assert index.vectors is not None
    indices = None if mask is None else np.flatnonzero(index.vectors.admitted(mask))
    starts = range(0, len(queries), _GROUP)
    groups = run_tasks([partial(_nearest, index, queries[start : start + _GROUP], search, indices) for start in starts])
    return [likely for group in groups for likely in group]


def _nearest(
    index: MemoryIndex, queries: NDArray[np.float32], search: ThresholdQuery, indices: NDArray[np.int64] | None
) -> list[Likely]:
    """The records of the vectors at these indices that are nearest to each query by their codes."""
    vectors = index.vectors
    assert vectors is not None
    lists = [task() for task in vectors.shortlist_tasks(queries, indices, search.most)]
    # The parts of one record may fill the list.
    nearest, cosines = vectors.rescore(queries, lists, search.most * (4 if vectors.has_parts else 1))
    likely = []
    for near, cosine in zip(nearest, cosines, strict=True):
        rows = vectors.owners(near[cosine >= search.floor - _CODE_ERROR])
        rows = rows[np.sort(np.unique(rows, return_index=True)[1])[: search.most]]
        likely.append(dict(zip(index.table.ids[rows].tolist(), (vectors.parts(rows) == 1).tolist(), strict=True)))
    return likely


# The few records that an index lacks, for a writer that searches in its own transaction.


@contextmanager
def nearly_current(index: MemoryIndex, reader: Reader, most: int) -> Iterator[tuple[EmbedderRow | None, list[int]]]:
    """Hold an index that lacks at most `most` new records that `reader` sees.

    Yields the active embedder and the row ids of these new records. Updating the index takes 1 to 2 ms for one record
    and hardly more for a hundred.
    """
    while True:
        embedder = reader.vectors.active_embedder()
        embedder_id = None if embedder is None else embedder.id
        with index.lock.reading():
            changes = None if index.commit is None else reader.changes.since(index.commit)
            if changes is not None and {"insert", "link"}.issuperset([change.operation for change in changes]):
                count = sum(change.last_id - change.first_id + 1 for change in changes)
                if count <= most and embedder_id == index.embedder_id:
                    new = (change for change in changes if change.operation == "insert")
                    yield embedder, [row_id for each in new for row_id in range(each.first_id, each.last_id + 1)]
                    return
        index.catch_up(reader)
        with index.lock.reading():
            if index.matches(reader):
                yield embedder, []
                return
        reader.changes.refresh()
