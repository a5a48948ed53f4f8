"""The candidates of each query, with every signal.

The best by vector and the best by keyword are joined. The neighbours of the best among them join too, so that
spreading can find a record that neither signal did. One kernel measures, fuses, spreads and orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from recallite.index.query_batch import Found, QueryCodes
from recallite.recall.score_bounds import ExactTop, add_score_bound_candidates
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.query_batch import QueryBatch
    from recallite.model.profiles import Profile


SIGNALS = kernels.SIGNALS
# With 0 only 3.5 % of the records without a source reach the top 20 when half of a store's sessions lose theirs.
LONE_SHARE = 0.8
# How much of a neighbour's activation arrives: from one place away, and from two.
_NEAR, _FAR = 1.0, 0.7


class Candidates(Struct):
    """Every candidate of some queries, ascending by row within a query.

    - offsets: int64 (queries + 1,): query i has the candidates from offsets[i] to offsets[i + 1]
    - rows: int64, rows of the index; keys: int64, row ids in the store
    - order: int64, places of each query's candidates, counted from its first, best first
    - signals: float64 (signals, candidates), in rows as `SIGNALS` names them
    - formula: float64, the scores before learned ranking; None without it
    - successors: int64, the row id of the candidate that replaced each, -1 for none; None if nothing states anything
    - raised: bool, whether each was put before what it replaced; None where `successors` is
    """

    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    order: NDArray[np.int64]
    signals: NDArray[np.float64]
    formula: NDArray[np.float64] | None = None
    successors: NDArray[np.int64] | None = None
    raised: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, query: int) -> Candidates:
        """Those of one query, as views."""
        if len(self.offsets) == 2:
            return self
        start, stop = self.offsets[query : query + 2].tolist()
        own = slice(start, stop)
        return Candidates(
            np.array([0, stop - start], dtype=np.int64),
            self.rows[own],
            self.keys[own],
            self.order[own],
            self.signals[:, own],
            None if self.formula is None else self.formula[own],
            None if self.successors is None else self.successors[own],
            None if self.raised is None else self.raised[own],
        )

    def best(self, count: int) -> list[NDArray[np.int64]]:
        """The places of the best `count` of each query, best first."""
        if len(self.offsets) == 2:
            return [self.order[:count]]
        return [start + self.order[start:stop][:count] for start, stop in pairwise(self.offsets.tolist())]

    def reordered(self, best: Sequence[NDArray[np.int64]], again: Sequence[NDArray[np.int64]]) -> Candidates:
        """With the places `best` of each query, its first, in the order `again`; scores go to them in the new order."""
        score = self.signals[SIGNALS.score]
        order, signals = self.order.copy(), self.signals.copy()
        for first, before, after in zip(self.offsets.tolist(), best, again, strict=False):
            order[first : first + len(after)] = after - first
            signals[SIGNALS.score, after] = score[before]
        return structs.replace(self, order=order, signals=signals)

    def places(self, chosen: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Places among all candidates from those that count from the first of each query."""
        if len(chosen) == 1:
            return chosen[0]
        return np.concatenate(chosen) + np.repeat(self.offsets[:-1], list(map(len, chosen)))

    def as_lists(self) -> tuple[Found, Found]:
        """As lists with known cosine and BM25."""
        counts = np.diff(self.offsets)
        held = np.arange(int(counts.max(initial=0))) < counts[:, None]
        rows = np.zeros(held.shape, dtype=np.int64)
        rows[held] = self.rows
        values = np.zeros((2, *held.shape), dtype=np.float32)
        values[:, held] = self.signals[[SIGNALS.cosine, SIGNALS.bm25]]
        return Found(rows, values[0], counts), Found(rows, values[1], counts)


def gather(
    batch: QueryBatch, profile: Profile, wanted: int, clock_us: int, tokens: QueryCodes | None, exact: ExactTop
) -> tuple[Candidates, NDArray[np.bool_]]:
    """The candidates of each query: the best `wanted` by each signal, and whether there may be more (queries,)."""
    by_words = profile.keyword_weight > 0 or profile.keyword_fallback
    nearest, best = batch.search(wanted, by_vector=profile.vector_weight > 0, by_words=by_words)
    more = (nearest.counts >= wanted) | (best.counts >= wanted)
    parameters = rank_parameters(profile, clock_us)
    alone = _without_neighbours(parameters)._replace(speaker_weight=0.0, date_weight=0.0)
    depth = max(profile.rescore_depth, 2 * exact.records)
    # Score bounds find the best of all records for a weighted sum of weighted signals.
    bounded = profile.composition == "weighted_sum" and profile.fusion == "weighted"
    ceilings = no_ceilings(len(batch))
    if bounded:
        first = rank(batch, nearest, best, ceilings, alone)
        nearest, best = add_score_bound_candidates(batch, first, best, alone, profile, wanted, exact, depth)
    else:
        ceilings = _rescore(nearest, batch, profile.rescore_depth if profile.vector_weight > 0 else 0)
    if profile.exact_rescore and not bounded and profile.vector_weight > 0:
        first = rank(batch, nearest, best, ceilings, alone._replace(expansion_depth=parameters.expansion_depth))
        _rescore_best(first, batch, depth)
        nearest, best = first.as_lists()
        parameters = parameters._replace(expansion_depth=0)
    return rank(batch, nearest, best, ceilings, parameters, tokens=tokens), more


def measure(batch: QueryBatch, rows: NDArray[np.int64], profile: Profile, clock_us: int) -> Candidates:
    """Every signal of these rows, which ascend, for each query; nothing spreads among them."""
    alone = _without_neighbours(rank_parameters(profile, clock_us))
    unknown = np.full((len(batch), len(rows)), np.nan, dtype=np.float32)
    return rank(batch, *_all_of(rows, unknown), no_ceilings(len(batch)), alone)


def share(candidates: Candidates, batch: QueryBatch, profile: Profile, clock_us: int) -> Candidates:
    """The candidates of any query as candidates of every one: each has the same rows, with all signals."""
    rows = np.unique(candidates.rows)
    known = np.full((len(batch), len(rows)), np.nan, dtype=np.float32)
    rerank, similarity = np.zeros(known.shape), np.zeros(known.shape)
    for query in range(len(batch)):
        own = candidates.of(query)
        places = np.searchsorted(rows, own.rows)
        known[query, places], rerank[query, places], similarity[query, places] = own.signals[
            [SIGNALS.cosine, SIGNALS.rerank, SIGNALS.similarity]
        ]
    parameters = rank_parameters(profile, clock_us)._replace(expansion_depth=0)
    shared = rank(batch, *_all_of(rows, known), no_ceilings(len(batch)), parameters, rerank.ravel())
    shared.signals[SIGNALS.similarity] = similarity.ravel()
    return shared


def rank(
    batch: QueryBatch,
    nearest: Found,
    best: Found,
    ceilings: NDArray[np.float32],
    parameters: kernels.RankParameters,
    rerank: NDArray[np.float64] | None = None,
    tokens: QueryCodes | None = None,
) -> Candidates:
    """The candidates of these lists, measured, reranked by `tokens` or `rerank`, scored and ordered."""
    offsets, rows, signals, order = batch.rank(nearest, best, ceilings, parameters, rerank, tokens)
    return Candidates(offsets, rows, batch.keys(rows), order, signals)


def rank_parameters(profile: Profile, clock_us: int) -> kernels.RankParameters:
    """The profile's numbers as the kernel takes them."""
    parameters = _parameters_of(profile)
    return parameters._replace(clock=clock_us) if clock_us else parameters


@lru_cache(maxsize=64)
def _parameters_of(profile: Profile) -> kernels.RankParameters:
    """Parameters are the options of the same name, except those below; the clock is 0."""
    decays = profile.decay != "none"
    same = {name: getattr(profile, name) for name in kernels.RankParameters._fields if hasattr(profile, name)}
    changed = {
        "rrf_k": profile.rrf_k if profile.fusion == "rrf" else -1.0,
        "expansion_depth": profile.expansion_depth if profile.spread > 0 else 0,
        "neighbor_weight": profile.spread * profile.neighbor_weight,
        "source_weight": profile.spread * profile.source_weight,
        "near": _NEAR,
        "far": _FAR,
        "lone_share": LONE_SHARE,
        "clock": 0,
        "half_life_days": profile.half_life_days if decays else np.inf,
        "decay_floor": profile.decay_floor if decays else 0.0,
        "exponential": int(profile.decay == "exp"),
        "keyword_fallback": int(profile.keyword_fallback),
        "weighted_sum": int(profile.composition == "weighted_sum"),
    }
    return kernels.check_parameters(kernels.RankParameters(**{**same, **changed}))


def no_ceilings(queries: int) -> NDArray[np.float32]:
    """Ceilings that limit no cosine."""
    return np.full(queries, np.inf, dtype=np.float32)


def _without_neighbours(parameters: kernels.RankParameters) -> kernels.RankParameters:
    return parameters._replace(expansion_depth=0, neighbor_weight=0.0, source_weight=0.0)


def _all_of(rows: NDArray[np.int64], cosines: NDArray[np.float32]) -> tuple[Found, Found]:
    """Lists that name every row for each query; cosines (queries, rows) that are NaN are measured."""
    queries = len(cosines)
    return Found(np.tile(rows, (queries, 1)), cosines, np.full(queries, len(rows), np.int64)), Found.nothing(queries)


def _rescore(nearest: Found, batch: QueryBatch, count: int) -> NDArray[np.float32]:
    """Exact cosines for the first `count` of each query; returns the least of them, the ceiling of all others.

    int8 may overstate: what was not among the first does not pass them afterwards.
    """
    queries, found = nearest.rows.shape
    count = min(count, found)
    if not count:
        return no_ceilings(queries)
    if queries == 1 and nearest.counts[0] == found:  # nothing to leave out
        exact_values = batch.exact_cosines(np.zeros(count, dtype=np.int64), nearest.rows[0, :count])
        ceiling = exact_values.min()
        np.minimum(nearest.values, ceiling, out=nearest.values)
        nearest.values[0, :count] = exact_values
        return np.array([ceiling])
    head = np.arange(count) < nearest.counts[:, None]
    which, places = np.nonzero(head)
    exact = np.full(head.shape, np.inf, dtype=np.float32)
    exact[head] = batch.exact_cosines(which, nearest.rows[which, places])
    ceilings: NDArray[np.float32] = exact.min(axis=1)
    np.minimum(nearest.values, ceilings[:, None], out=nearest.values)
    nearest.values[:, :count][head] = exact[head]
    return ceilings


def _rescore_best(candidates: Candidates, batch: QueryBatch, count: int) -> None:
    """Exact cosines for the best `count` candidates of each query."""
    places = candidates.best(count)
    best = np.concatenate([np.empty(0, dtype=np.int64), *places])
    queries = np.repeat(np.arange(len(places)), list(map(len, places)))
    candidates.signals[SIGNALS.cosine, best] = batch.exact_cosines(queries, candidates.rows[best])
