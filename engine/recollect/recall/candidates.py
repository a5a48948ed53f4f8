"""Which records may be hits, what each signal says of them, and the score that orders them.

The best by vector and the best by keyword are joined. The neighbours of the best among them join too, so that
spreading can lift a record that neither signal found. Every candidate then has every signal; one kernel does it all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct

from recollect.index.query_batch import Found
from recollect.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.query_batch import QueryBatch
    from recollect.profiles import Profile

__all__ = ["Candidates", "Held", "Look", "gather", "measure", "share"]

# With 0 only 3.5 % of the records without a source reach the top 20 when half of a store's sessions lose theirs.
LONE_SHARE = 0.8
# How much of a neighbour's activation arrives: from one place away, and from two.
_NEAR, _FAR = 1.0, 0.7
# More than float64 sums of the same numbers in another order differ by.
_ROUNDING = 1e-9


Look = Callable[["Candidates"], "NDArray[np.float64]"]


class Held(NamedTuple):
    """How many of the best by score are to be exact: so many records, or the best of so many sources."""

    records: int
    by_source: bool = False


class Candidates(Struct):
    """Every candidate of some queries, ascending by row within a query.

    - offsets: int64 (queries + 1,): query i has the candidates from offsets[i] to offsets[i + 1]
    - rows: int64, the questions' numbers; keys: int64, row ids in the store
    - order: int64, places of each query's candidates, counted from its first, best first
    - signals: float64 (9, candidates), by name below
    """

    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    order: NDArray[np.int64]
    signals: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def cosine(self) -> NDArray[np.float64]:
        """As measured."""
        return self._signal(0)

    @property
    def bm25(self) -> NDArray[np.float64]:
        """As measured."""
        return self._signal(1)

    @property
    def look(self) -> NDArray[np.float64]:
        """What the second look has added to the fused score."""
        return self._signal(2)

    @property
    def fused(self) -> NDArray[np.float64]:
        """Of cosine and BM25, with the second look."""
        return self._signal(3)

    @property
    def spread(self) -> NDArray[np.float64]:
        """The score after spreading."""
        return self._signal(4)

    @property
    def lift(self) -> NDArray[np.float64]:
        """What neighbours, links and source added, on the scale of `fused`."""
        return self._signal(5)

    @property
    def linked(self) -> NDArray[np.float64]:
        """The links' part of `lift`."""
        return self._signal(6)

    @property
    def decay(self) -> NDArray[np.float64]:
        """The weight of age."""
        return self._signal(7)

    @property
    def score(self) -> NDArray[np.float64]:
        """What orders the hits."""
        return self._signal(8)

    def _signal(self, place: int) -> NDArray[np.float64]:
        values: NDArray[np.float64] = self.signals[place]
        return values

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
        )


def gather(
    questions: QueryBatch, profile: Profile, wanted: int, clock_us: int, look: Look | None = None, *, held: Held
) -> tuple[Candidates, NDArray[np.bool_]]:
    """The candidates of each query: the best `wanted` by each signal, and whether there may be more (queries,).

    `look` says what to add to the fused score of each candidate before spreading; `held` is how many will be hits.
    """
    by_words = profile.keyword_weight > 0 or profile.keyword_fallback
    nearest, best = questions.search(wanted, by_vector=profile.vector_weight > 0, by_words=by_words)
    parameters = rank_parameters(profile, clock_us)
    more = (nearest.counts >= wanted) | (best.counts >= wanted)
    summed = profile.composition == "weighted_sum" and profile.fusion == "weighted"
    if summed:
        nearest, best = with_contenders(questions, (nearest, best), parameters, profile, wanted, held)
        ceilings = _no_ceilings(len(questions))
    else:
        ceilings = _rescore(nearest, questions, profile.rescore_depth if profile.vector_weight > 0 else 0)
    exact = profile.exact_rescore and not summed
    if look is None and not exact:
        ranked = _ranked(questions, nearest, best, ceilings, parameters)
    else:
        unspread = parameters._replace(neighbor_weight=0.0, source_weight=0.0)
        first = _ranked(questions, nearest, best, ceilings, unspread)
        if exact and profile.vector_weight > 0:
            _measure_best(first, questions, max(profile.rescore_depth, 2 * held.records))
        added = None if look is None else look(first)
        ranked = _ranked(questions, *_found_again(first), ceilings, parameters._replace(expansion_depth=0), added)
    return ranked, more


def with_contenders(
    questions: QueryBatch,
    lists: tuple[Found, Found],
    parameters: kernels.RankParameters,
    profile: Profile,
    wanted: int,
    held: Held,
) -> tuple[Found, Found]:
    """The lists with all that may be among the best `held` of the whole store by the weighted sum, measured exactly.

    The best found so far are measured, the score of the last that is held becomes the floor, and every visible record
    that may reach it is measured too, which gives the best by the sum without a look at every vector. Spreading and
    the second look come after, and move candidates only.
    """
    nearest, best = lists
    unspread = parameters._replace(expansion_depth=0, neighbor_weight=0.0, source_weight=0.0)
    first = _ranked(questions, nearest, best, _no_ceilings(len(questions)), unspread)
    a_cosine = parameters.vector_weight / (parameters.vector_weight + parameters.keyword_weight)
    a_point = parameters.semantic_weight / (
        parameters.semantic_weight + parameters.recency_weight + parameters.importance_weight
    )
    queries = np.arange(len(questions))
    of_query = np.repeat(queries, np.diff(first.offsets))

    def measure_exactly(places: NDArray[np.int64]) -> None:
        """Put the exact cosine of these candidates, and the score that it gives, in place of those from codes."""
        if not a_cosine or not len(places):
            return
        cosines = questions.exact_cosines(of_query[places], first.rows[places]).astype(np.float64)
        fused = first.fused[places] + a_cosine * (cosines - first.cosine[places])
        first.score[places] += a_point * (np.clip(fused, 0.0, 1.0) - np.clip(first.fused[places], 0.0, 1.0))
        first.fused[places], first.cosine[places] = fused, cosines

    looked = [
        start + first.order[start:stop][: max(profile.rescore_depth, 2 * held.records)]
        for start, stop in pairwise(first.offsets.tolist())
    ]
    measure_exactly(np.concatenate([np.empty(0, dtype=np.int64), *looked]))
    floors = np.array([_last_score(first, places, questions, held) for places in looked], dtype=np.float64)
    if profile.min_score_of == "score":
        floors = np.maximum(floors, profile.min_score - _ROUNDING)
    rest = np.ones(len(first), dtype=bool)
    for places in looked:
        rest[places] = False
    unsure = np.flatnonzero(rest)
    reach = a_point * a_cosine * questions.code_errors(of_query[unsure], first.rows[unsure])
    measure_exactly(unsure[first.score[unsure] + reach >= floors[of_query[unsure]]])
    word_ceilings = np.zeros(len(questions))
    for query in np.flatnonzero((best.counts >= wanted) & (best.counts > 0)).tolist():
        word_ceilings[query] = best.values[query, best.counts[query] - 1] / best.values[query, 0]
    ends, found = questions.score_bound_candidates(first.offsets, first.rows, floors, word_ceilings, unspread)
    known, words = _found_again(first)
    if not len(found):
        return known, words
    cosines = np.zeros(len(found), dtype=np.float32)
    if a_cosine:
        cosines = questions.exact_cosines(np.repeat(queries, np.diff(ends)), found)
    counts = known.counts + np.diff(ends)
    rows = np.zeros((len(questions), int(counts.max())), dtype=np.int64)
    values = np.zeros(rows.shape, dtype=np.float32)
    for query, (start, stop) in enumerate(pairwise(ends.tolist())):
        old, every = known.counts[query], counts[query]
        rows[query, :old], values[query, :old] = known.rows[query, :old], known.values[query, :old]
        rows[query, old:every], values[query, old:every] = found[start:stop], cosines[start:stop]
    return Found(rows, values, counts), words


def _last_score(candidates: Candidates, places: NDArray[np.int64], questions: QueryBatch, held: Held) -> float:
    """The score of the last that is held among these places; -inf where there are fewer."""
    scores = candidates.score[places]
    if held.by_source:
        sources = questions.sources(candidates.rows[places])
        groups = np.where(sources >= 0, sources, -2 - np.arange(len(places)))
        order = np.argsort(-scores, kind="stable")
        scores = scores[order][np.unique(groups[order], return_index=True)[1]]
    if len(scores) < held.records:
        return -math.inf
    return float(np.sort(scores)[-held.records]) - _ROUNDING


def measure(questions: QueryBatch, rows: NDArray[np.int64], profile: Profile, clock_us: int) -> Candidates:
    """Every signal of these rows, which ascend, for each query; nothing spreads among them."""
    alone = rank_parameters(profile, clock_us)._replace(expansion_depth=0, neighbor_weight=0.0, source_weight=0.0)
    unknown = np.full((len(questions), len(rows)), np.nan, dtype=np.float32)
    return _ranked(questions, *_all_of(rows, unknown), _no_ceilings(len(questions)), alone)


def share(candidates: Candidates, questions: QueryBatch, profile: Profile, clock_us: int) -> Candidates:
    """The candidates of any query as candidates of every one: each has the same rows, with all signals."""
    rows = np.unique(candidates.rows)
    known = np.full((len(questions), len(rows)), np.nan, dtype=np.float32)
    looked = np.zeros(known.shape)
    for query in range(len(questions)):
        part = candidates.of(query)
        places = np.searchsorted(rows, part.rows)
        known[query, places], looked[query, places] = part.cosine, part.look
    parameters = rank_parameters(profile, clock_us)._replace(expansion_depth=0)
    return _ranked(questions, *_all_of(rows, known), _no_ceilings(len(questions)), parameters, looked.ravel())


def _all_of(rows: NDArray[np.int64], cosines: NDArray[np.float32]) -> tuple[Found, Found]:
    """Lists that name every row for each query; cosines (queries, rows) that are NaN are measured."""
    queries = len(cosines)
    return Found(np.tile(rows, (queries, 1)), cosines, np.full(queries, len(rows), np.int64)), Found.nothing(queries)


def _ranked(
    questions: QueryBatch,
    nearest: Found,
    best: Found,
    ceilings: NDArray[np.float32],
    parameters: kernels.RankParameters,
    look: NDArray[np.float64] | None = None,
) -> Candidates:
    offsets, rows, signals, order = questions.rank(nearest, best, ceilings, parameters, look)
    return Candidates(offsets, rows, questions.keys(rows), order, signals)


def _found_again(candidates: Candidates) -> tuple[Found, Found]:
    """The candidates as lists of which every signal is known."""
    counts = np.diff(candidates.offsets)
    held = np.arange(int(counts.max(initial=0))) < counts[:, None]
    rows = np.zeros(held.shape, dtype=np.int64)
    rows[held] = candidates.rows
    values = np.zeros((2, *held.shape), dtype=np.float32)
    values[:, held] = candidates.signals[:2]
    return Found(rows, values[0], counts), Found(rows, values[1], counts)


def _rescore(nearest: Found, questions: QueryBatch, count: int) -> NDArray[np.float32]:
    """Exact cosines for the first `count` of each query; returns the least of them, which no other may pass.

    int8 may overstate: what was not among the first does not pass them afterwards.
    """
    queries, found = nearest.rows.shape
    count = min(count, found)
    if not count:
        return _no_ceilings(queries)
    head = np.arange(count) < nearest.counts[:, None]
    which, places = np.nonzero(head)
    exact = np.full(head.shape, np.inf, dtype=np.float32)
    exact[head] = questions.exact_cosines(which, nearest.rows[which, places])
    ceilings: NDArray[np.float32] = exact.min(axis=1)
    np.minimum(nearest.values, ceilings[:, None], out=nearest.values)
    nearest.values[:, :count][head] = exact[head]
    return ceilings


def _measure_best(candidates: Candidates, questions: QueryBatch, count: int) -> None:
    """Exact cosines for the best `count` candidates of each query."""
    places, which = [], []
    for query, (start, stop) in enumerate(pairwise(candidates.offsets.tolist())):
        places.append(start + candidates.order[start:stop][:count])
        which.append(np.full(len(places[-1]), query, dtype=np.int64))
    best = np.concatenate([np.empty(0, dtype=np.int64), *places])
    queries = np.concatenate([np.empty(0, dtype=np.int64), *which])
    candidates.signals[0, best] = questions.exact_cosines(queries, candidates.rows[best])


def _no_ceilings(queries: int) -> NDArray[np.float32]:
    return np.full(queries, np.inf, dtype=np.float32)


def rank_parameters(profile: Profile, clock_us: int) -> kernels.RankParameters:
    """The profile's numbers as the kernel takes them."""
    decays = profile.decay != "none"
    return kernels.RankParameters(
        vector_weight=profile.vector_weight,
        keyword_weight=profile.keyword_weight,
        rrf_k=profile.rrf_k if profile.fusion == "rrf" else -1.0,
        expansion_depth=profile.expansion_depth if profile.spread > 0 else 0,
        neighbor_weight=profile.spread * profile.neighbor_weight,
        source_weight=profile.spread * profile.source_weight,
        near=_NEAR,
        far=_FAR,
        lone_share=LONE_SHARE,
        clock=clock_us,
        half_life_days=profile.half_life_days if decays else np.inf,
        decay_floor=profile.decay_floor if decays else 0.0,
        exponential=int(profile.decay == "exp"),
        importance_weight=profile.importance_weight,
        keyword_fallback=int(profile.keyword_fallback),
        weighted_sum=int(profile.composition == "weighted_sum"),
        semantic_weight=profile.semantic_weight,
        recency_weight=profile.recency_weight,
        ranked_share=profile.ranked_share,
    )
