"""The best of all records by a weighted sum, found without measuring every vector.

The best candidates so far are measured exactly, the score of the last of them becomes the floor, and every visible
record that may reach it is measured too. Spreading and reranking come after, and move candidates only.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.index.query_batch import Found
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.query_batch import QueryBatch
    from recallite.model.profiles import Profile
    from recallite.recall.candidates import Candidates


# More than float64 sums of the same numbers differ in another order.
_ROUNDING = 1e-9


class ExactTop(NamedTuple):
    """How many of the best by score are to be exact: so many records, or the best of so many sources."""

    records: int
    by_source: bool = False


def add_score_bound_candidates(
    batch: QueryBatch,
    first: Candidates,
    best: Found,
    parameters: kernels.RankParameters,
    profile: Profile,
    wanted: int,
    exact: ExactTop,
    depth: int,
) -> tuple[Found, Found]:
    """Candidates as lists, with all records that may be among the `exact` best of the whole store.

    `first` are candidates without spreading and `best` the list by keyword that they come from; the best `depth` of
    each query are measured exactly.
    """
    exactly = _ExactScores(batch, first, parameters)
    heads = first.best(depth)
    exactly.measure(np.concatenate([np.empty(0, dtype=np.int64), *heads]))
    floors = np.array([_last_score(first, places, batch, exact) for places in heads], dtype=np.float64)
    if profile.min_score_of == "score":
        floors = np.maximum(floors, profile.min_score - _ROUNDING)
    rest = np.ones(len(first), dtype=bool)
    for places in heads:
        rest[places] = False
    exactly.measure_above(np.flatnonzero(rest), floors)
    word_ceilings = np.zeros(len(batch))
    for query in np.flatnonzero((best.counts >= wanted) & (best.counts > 0)).tolist():
        word_ceilings[query] = best.values[query, best.counts[query] - 1] / best.values[query, 0]
    offsets, rows = batch.score_bound_candidates(first.offsets, first.rows, floors, word_ceilings, parameters)
    nearest, by_keyword = first.as_lists()
    if not len(rows):
        return nearest, by_keyword
    cosines = np.zeros(len(rows), dtype=np.float32)
    if exactly.per_cosine:
        cosines = batch.exact_cosines(np.repeat(np.arange(len(batch)), np.diff(offsets)), rows)
    return _extended(nearest, offsets, rows, cosines), by_keyword


class _ExactScores:
    """Exact cosines in place of those from codes, and the scores that they give."""

    def __init__(self, batch: QueryBatch, candidates: Candidates, parameters: kernels.RankParameters) -> None:
        self.per_cosine = parameters.vector_weight / (parameters.vector_weight + parameters.keyword_weight)
        total = parameters.semantic_weight + parameters.recency_weight + parameters.importance_weight
        self._per_point = parameters.semantic_weight / total
        self._batch, self._candidates = batch, candidates
        self._of_query = np.repeat(np.arange(len(batch)), np.diff(candidates.offsets))

    def measure(self, places: NDArray[np.int64]) -> None:
        """Measure these candidates."""
        if not self.per_cosine or not len(places):
            return
        signals, at = self._candidates.signals, kernels.SIGNALS
        exact = self._batch.exact_cosines(self._of_query[places], self._candidates.rows[places]).astype(np.float64)
        before = signals[at.fused, places]
        fused = before + self.per_cosine * (exact - signals[at.cosine, places])
        signals[at.score, places] += self._per_point * (np.clip(fused, 0.0, 1.0) - np.clip(before, 0.0, 1.0))
        signals[at.fused, places], signals[at.cosine, places] = fused, exact

    def measure_above(self, places: NDArray[np.int64], floors: NDArray[np.float64]) -> None:
        """Measure those of these candidates whose score may reach the floor of their query."""
        queries = self._of_query[places]
        errors = self._batch.code_errors(queries, self._candidates.rows[places])
        reach = self._per_point * self.per_cosine * errors
        self.measure(places[self._candidates.signals[kernels.SIGNALS.score, places] + reach >= floors[queries]])


def _last_score(candidates: Candidates, places: NDArray[np.int64], batch: QueryBatch, exact: ExactTop) -> float:
    """The score of the last of the exact best among these places; -inf where there are fewer."""
    scores = candidates.signals[kernels.SIGNALS.score, places]
    if exact.by_source:
        sources = batch.sources(candidates.rows[places])
        groups = np.where(sources >= 0, sources, -2 - np.arange(len(places)))
        order = np.argsort(-scores, kind="stable")
        scores = scores[order][np.unique(groups[order], return_index=True)[1]]
    if len(scores) < exact.records:
        return -math.inf
    return float(np.sort(scores)[-exact.records]) - _ROUNDING


def _extended(
    known: Found, offsets: NDArray[np.int64], found: NDArray[np.int64], cosines: NDArray[np.float32]
) -> Found:
    """A list with further rows of each query after its own."""
    counts = known.counts + np.diff(offsets)
    rows = np.zeros((len(counts), int(counts.max())), dtype=np.int64)
    values = np.zeros(rows.shape, dtype=np.float32)
    for query, (start, stop) in enumerate(pairwise(offsets.tolist())):
        old, every = known.counts[query], counts[query]
        rows[query, :old], values[query, :old] = known.rows[query, :old], known.values[query, :old]
        rows[query, old:every], values[query, old:every] = found[start:stop], cosines[start:stop]
    return Found(rows, values, counts)
