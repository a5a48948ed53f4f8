"""Threshold search: current records of one scope and kind whose cosine may reach a floor. Writes run it per text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recallite.index.memory_index import MemoryIndex
from recallite.index.row_filter import RowFilter
from recallite.system.parallel import run_tasks

# Queries per kernel call, as in recall.
_GROUP = 32
# The error of a cosine from int8 codes: at most 0.004 was measured.
_CODE_ERROR = 0.02
_ROUNDING = 1e-4


# Row ids of records whose cosine is to be measured, and whether each was embedded in one part.
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
    wanted: ThresholdQuery,
) -> list[Likely]:
    """The records among some, as `Vectors.of_current` gives them, that may match each query; all are compared."""
    likely: list[Likely] = [{} for _ in queries]
    of_scope = [
        (record_id, parts)
        for record_id, scope_id, kind, expires_at, parts in records
        if (scope_id, kind) == (wanted.scope_id, wanted.kind) and expires_at > wanted.now
    ]
    if not of_scope:
        return likely
    sizes = np.array([len(parts) for _, parts in of_scope])
    products = queries @ np.concatenate([parts for _, parts in of_scope]).T
    rough = np.maximum.reduceat(products, np.cumsum(sizes) - sizes, axis=1)
    bounds = np.full((len(queries), 1), wanted.floor)
    if len(of_scope) > wanted.most:
        bounds = np.maximum(bounds, np.partition(rough, -wanted.most, axis=1)[:, -wanted.most, None])
    # The rounding of a matrix product depends on the other rows, which may belong to another scope.
    for query, place in np.argwhere(rough >= bounds - _ROUNDING).tolist():
        likely[query][of_scope[place][0]] = bool(sizes[place] == 1)
    return likely


def likely_in_index(index: MemoryIndex, queries: NDArray[np.float32], wanted: ThresholdQuery) -> list[Likely]:
    """The records that may match each query, float32 (q, dimension) of unit length, while the index is held."""
    hidden = index.table.superseded_rows()
    visible = RowFilter(now=wanted.now, scopes=(wanted.scope_id,), kinds=(wanted.kind,), hidden=hidden)
    mask = index.selection(visible).mask
    assert index.vectors is not None
    places = None if mask is None else np.flatnonzero(index.vectors.admitted(mask))
    starts = range(0, len(queries), _GROUP)
    groups = run_tasks([partial(_nearest, index, queries[start : start + _GROUP], wanted, places) for start in starts])
    return [likely for group in groups for likely in group]


def _nearest(
    index: MemoryIndex, queries: NDArray[np.float32], wanted: ThresholdQuery, places: NDArray[np.int64] | None
) -> list[Likely]:
    """The records of the vectors at these places that are nearest to each query by their codes."""
    vectors = index.vectors
    assert vectors is not None
    lists = [task() for task in vectors.shortlist_tasks(queries, places, wanted.most)]
    # The parts of one record may fill the list.
    nearest, cosines = vectors.rescore(queries, lists, wanted.most * (4 if vectors.has_parts else 1))
    likely = []
    for near, cosine in zip(nearest, cosines, strict=True):
        rows = vectors.owners(near[cosine >= wanted.floor - _CODE_ERROR])
        rows = rows[np.sort(np.unique(rows, return_index=True)[1])[: wanted.most]]
        likely.append(dict(zip(index.table.ids[rows].tolist(), (vectors.parts(rows) == 1).tolist(), strict=True)))
    return likely
