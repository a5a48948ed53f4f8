"""Threshold search: the current records of one scope and kind whose cosine reaches a floor. Writes run it per text.

The floor makes it cheaper than a recall: records whose sketches are too far apart are never rescored, and the filter is
applied only to the few that remain.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.index.row_filter import RowFilter
from recallite.index.vectors import Shortlist, farthest_sketch
from recallite.system.parallel import run_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from recallite.index.memory_index import MemoryIndex
    from recallite.index.vectors import VectorIndex


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


class VectorBlock:
    """The vectors of records that the index lacks; every one is compared."""

    def __init__(self, dimension: int) -> None:
        self._vectors = np.empty((0, dimension), dtype=np.float32)
        self.ids: list[int] = []
        self._traits: list[tuple[int, str, int, int]] = []

    def extend(self, records: Iterable[tuple[int, int, str, int, NDArray[np.float32]]]) -> None:
        """Add records: (row id, scope id, kind, when it expires, vectors of its parts)."""
        vectors = [self._vectors]
        for record_id, scope_id, kind, expires_at, parts in records:
            self.ids.append(record_id)
            self._traits.append((scope_id, kind, expires_at, len(parts)))
            vectors.append(parts)
        self._vectors = np.concatenate(vectors)

    def likely(self, queries: NDArray[np.float32], wanted: ThresholdQuery) -> list[Likely]:
        """The records that may match each query."""
        likely: list[Likely] = [{} for _ in queries]
        places = [
            place
            for place, (scope_id, kind, expires_at, _) in enumerate(self._traits)
            if (scope_id, kind) == (wanted.scope_id, wanted.kind) and expires_at > wanted.now
        ]
        if not places:
            return likely
        every = np.array([traits[3] for traits in self._traits])
        parts, starts = every[places], (np.cumsum(every) - every)[places]
        firsts = np.cumsum(parts) - parts
        vectors = self._vectors[np.repeat(starts - firsts, parts) + np.arange(parts.sum())]
        rough = np.maximum.reduceat(queries @ vectors.T, firsts, axis=1)
        bounds = np.full((len(queries), 1), wanted.floor)
        if len(places) > wanted.most:
            bounds = np.maximum(bounds, np.partition(rough, -wanted.most, axis=1)[:, -wanted.most, None])
        # The rounding of a matrix product depends on the other rows, which may belong to another scope.
        for query, at in np.argwhere(rough >= bounds - _ROUNDING).tolist():
            likely[query][self.ids[places[at]]] = bool(parts[at] == 1)
        return likely


def likely_in_index(
    index: MemoryIndex, queries: NDArray[np.float32], wanted: ThresholdQuery, *, settled: bool = False
) -> list[Likely]:
    """The records that may match each query, float32 (q, dimension) of unit length, while the index is held.

    `settled` says that the index stays unchanged for several writes: then resolving the filter first pays off.
    """
    vectors = index.vectors
    assert vectors is not None
    allowed = _places_admitted(index, wanted) if settled else None
    if allowed is not None and 4 * len(allowed) >= len(vectors):
        allowed = None  # scanning all in order is faster
    starts = range(0, len(queries), _GROUP)
    groups = run_tasks(
        [partial(_shortlists, index, queries[start : start + _GROUP], wanted, allowed) for start in starts]
    )
    likely = []
    for rows, cosines in (shortlist for group in groups for shortlist in group):
        rows = rows[: wanted.most][cosines[: wanted.most] >= wanted.floor - _CODE_ERROR]
        likely.append(dict(zip(index.table.ids[rows].tolist(), (vectors.parts(rows) == 1).tolist(), strict=True)))
    return likely


def _shortlists(
    index: MemoryIndex, queries: NDArray[np.float32], wanted: ThresholdQuery, allowed: NDArray[np.int64] | None
) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """The admitted rows that may match each query, each once, with their cosines from codes, nearest first."""
    vectors = index.vectors
    assert vectors is not None
    limit = farthest_sketch(vectors.dimension, wanted.floor)
    lists = [task() for task in vectors.shortlist_tasks(queries, allowed, wanted.most)]
    total = len(vectors) if allowed is None else len(allowed)
    short = []
    for query, vector in enumerate(queries):
        places = _places_within(lists, query, limit, total)
        if places is None:
            short.append(_admitted_shortlist(index, vector, wanted))
        else:
            places = places[index.table.admits(vectors.owners(places), wanted.scope_id, wanted.kind, wanted.now)]
            short.append(_best_parts(vectors, vector, places, wanted.most))
    return short


def _places_within(lists: list[Shortlist], query: int, limit: float, total: int) -> NDArray[np.int64] | None:
    """The places whose sketches are near enough; None where the shortlist may be incomplete."""
    places = []
    for shortlist in lists:
        distances = shortlist.distances[query]
        if len(distances) < total and len(distances) == shortlist.size and distances[-1] <= limit:
            return None
        places.append(shortlist.places[query][distances <= limit])
    return np.concatenate(places) if places else np.empty(0, dtype=np.int64)


def _admitted_shortlist(
    index: MemoryIndex, vector: NDArray[np.float32], wanted: ThresholdQuery
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """`_shortlists` where many match: scans only the admitted rows, as a recall does."""
    vectors = index.vectors
    assert vectors is not None
    tasks = vectors.shortlist_tasks(vector[None, :], _places_admitted(index, wanted), wanted.most)
    places = np.concatenate([np.empty(0, dtype=np.int64), *(task().places[0] for task in tasks)])
    return _best_parts(vectors, vector, places, wanted.most)


def _places_admitted(index: MemoryIndex, wanted: ThresholdQuery) -> NDArray[np.int64] | None:
    hidden = index.table.superseded_rows()
    visible = RowFilter(now=wanted.now, scopes=(wanted.scope_id,), kinds=(wanted.kind,), hidden=hidden)
    mask = index.selection(visible).mask
    return None if mask is None or index.vectors is None else np.flatnonzero(index.vectors.admitted(mask))


def _best_parts(
    vectors: VectorIndex, vector: NDArray[np.float32], places: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The rows of the nearest of these vectors, each once, with the cosine of its nearest part from codes.

    Where all of them are wanted no cosine is computed: 1.
    """
    if len(places) <= most:
        rows = np.unique(vectors.owners(places))
        return rows, np.ones(len(rows), dtype=np.float32)
    listed = Shortlist(places[None, :], np.zeros((1, len(places)), dtype=np.uint16), len(places))
    # The parts of one record may fill the list.
    nearest, cosines = vectors.rescore(vector[None, :], [listed], most * (4 if vectors.has_parts else 1))
    rows = vectors.owners(nearest[0])
    if not vectors.has_parts:
        return rows, cosines[0]
    firsts = np.sort(np.unique(rows, return_index=True)[1])
    return rows[firsts], cosines[0][firsts]
