"""From scored candidates to the few that are returned: threshold, diversify, group, spread, limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallite.recall.candidates import SIGNALS, Candidates
from recallite.recall.score_bounds import ExactTop
from recallite.store.values import TermBlock
from recallite.system.numerics import kernels
from recallite.text.record_words import TAG_ONLY
from recallite.text.standing import ANSWERING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.query_batch import QueryBatch
    from recallite.model.profiles import Profile
    from recallite.recall.record_loader import RecordLoader
    from recallite.recall.request import Request


# MMR chooses among this many times the limit, and at least this many.
MMR_POOL, MMR_LEAST = 4, 32
# Hits that are spread have at least this share of the best one's relevance, and come from so many periods.
RELEVANT_SHARE = 0.2
_PERIODS = 10
# What the words of others count where the user's own are asked for.
_OTHER_WORDS = 0.5


def exact_top(request: Request, wanted: int) -> ExactTop:
    """How many of the best candidates have to be exact so that the hits are."""
    if request.profile.min_confidence > 0 or request.spread_over is not None:
        return ExactTop(wanted)
    if request.profile.mmr_lambda is not None:
        return ExactTop(max(MMR_POOL * request.limit, MMR_LEAST))
    return ExactTop(request.limit, request.group_by is not None)


def choose(
    candidates: Candidates,
    confidence: NDArray[np.float64] | None,
    batch: QueryBatch,
    request: Request,
    loader: RecordLoader,
) -> NDArray[np.int64]:
    """The places of the candidates of one query that are returned; those first that a token budget keeps first."""
    chosen = threshold(candidates, confidence, request.profile)
    if omits_superseded(request):
        chosen = without_superseded(candidates, chosen)
    if request.spread_over is None:
        chosen = diversify(candidates, chosen, request, loader.terms)
    if request.group_by is not None:
        chosen = group_by_source(candidates, chosen, batch)
    if request.spread_over is not None:
        chosen = spread_out(candidates, chosen, batch, request, loader)
    return chosen[: request.limit]


def available(candidates: Candidates, batch: QueryBatch, request: Request) -> int:
    """The most hits that the candidates of one query can give: one per candidate, or one per source."""
    if request.group_by is None:
        return len(candidates)
    sources = batch.sources(candidates.rows)
    return len(np.unique(sources[sources >= 0])) + int((sources < 0).sum())


def threshold(candidates: Candidates, confidence: NDArray[np.float64] | None, profile: Profile) -> NDArray[np.int64]:
    """The places, best first, whose score and confidence reach the profile's minimum; `confidence` is by candidate.

    Of ranks that are fused, what neither signal ranks and no neighbour raises is left out: a score of 0 is no evidence.
    """
    order = candidates.order
    if profile.fusion == "rrf" and profile.composition == "product":
        order = order[candidates.signals[SIGNALS.spread, order] > 0]
    if profile.min_score > 0:
        signal = SIGNALS.score if profile.min_score_of == "score" else SIGNALS.spread
        order = order[candidates.signals[signal, order] >= profile.min_score]
    if confidence is not None:
        order = order[confidence[order] >= profile.min_confidence]
    return order


def omits_superseded(request: Request) -> bool:
    """Whether what another hit replaced is left out."""
    return request.profile.superseded == "omit" and not request.about_past


def without_superseded(candidates: Candidates, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places, in order, without those that another of them replaced."""
    if candidates.successors is None:
        return order
    successors = candidates.successors[order]
    return order[(successors < 0) | ~np.isin(successors, candidates.keys[order])]


def diversify(
    candidates: Candidates,
    order: NDArray[np.int64],
    request: Request,
    load_terms: Callable[[NDArray[np.int64]], TermBlock],
) -> NDArray[np.int64]:
    """Jaccard MMR on the words of the best; the rest follow in their order."""
    mmr_lambda = request.profile.mmr_lambda
    if mmr_lambda is None or len(order) < 2:
        return order
    pool = order[: max(MMR_POOL * request.limit, MMR_LEAST)]
    keys = candidates.keys[pool]
    block = load_terms(keys)
    # The block ascends by record; in the order of the pool MMR breaks ties by score.
    places = np.searchsorted(block.ids, keys)
    starts, stops = block.offsets[places].tolist(), block.offsets[places + 1].tolist()
    of_text = block.counts & TAG_ONLY == 0  # texts are compared, not tags
    sets = [block.terms[a:b][of_text[a:b]] for a, b in zip(starts, stops, strict=True)]
    tokens = np.concatenate(sets)
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    picked = kernels.maximal_marginal_relevance(
        np.ascontiguousarray(candidates.signals[SIGNALS.score, pool]),
        np.ascontiguousarray(tokens, dtype=np.int32),
        offsets,
        mmr_lambda,
        len(pool),
    )
    return np.concatenate([pool[picked], order[len(pool) :]])


def group_by_source(candidates: Candidates, order: NDArray[np.int64], batch: QueryBatch) -> NDArray[np.int64]:
    """One place per source, in order: its best record, which has the source's score.

    A record without a source is its own group. Spreading has already given the best record what the source's other
    records say; adding their mean or the BM25 of all their words again changed nothing or hurt.
    """
    sources = batch.sources(candidates.rows)[order]
    groups = np.where(sources >= 0, sources, -2 - order)
    return order[np.sort(np.unique(groups, return_index=True)[1])]


def spread_out(
    candidates: Candidates, order: NDArray[np.int64], batch: QueryBatch, request: Request, loader: RecordLoader
) -> NDArray[np.int64]:
    """The places that cover the periods, or the sources, of what is relevant; those first that add most.

    What is relevant has `RELEVANT_SHARE` of the best relevance, before recency: an old event is no less of a story.
    The n-th best of a period or source adds a n-th of its relevance, as seats are shared out by D'Hondt. Taking what
    adds most maximises the sum, a monotone submodular function (Lin and Bilmes, 2011).
    """
    relevance = candidates.signals[SIGNALS.spread, order]
    if request.own_words:
        relevance = relevance * _own_words(loader.contexts(candidates.keys[order]))
    best_first = np.argsort(-relevance, kind="stable")
    order, relevance = order[best_first], relevance[best_first]
    order = order[relevance >= RELEVANT_SHARE * max(relevance.max(initial=0.0), 0.0)]
    relevance = relevance[: len(order)]
    rows = candidates.rows[order]
    groups = _sources(rows, batch) if request.spread_over == "source" else _periods(batch.moments(rows), request.limit)
    added = relevance / _numbers(groups)
    spread: NDArray[np.int64] = order[np.argsort(-added, kind="stable")]
    return spread


def _periods(moments: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The period of each moment: there are ten, or as many as hits.

    A moment's place is the mean of its share of the time and of its rank: neither one record of long ago nor one busy
    week takes all periods.
    """
    if not len(moments):
        return moments
    since = (moments - moments.min()).astype(np.float64)
    ranks = np.searchsorted(np.sort(moments), moments).astype(np.float64)
    places = (since / max(since.max(), 1.0) + ranks / max(ranks.max(), 1.0)) / 2
    number = min(_PERIODS, limit)
    periods: NDArray[np.int64] = np.minimum((places * number).astype(np.int64), number - 1)
    return periods


def _sources(rows: NDArray[np.int64], batch: QueryBatch) -> NDArray[np.int64]:
    """The source of each row; a record without one is by itself."""
    sources = batch.sources(rows)
    alone: NDArray[np.int64] = -1 - np.arange(len(rows))
    alone[sources >= 0] = sources[sources >= 0]
    return alone


def _numbers(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each place within its group, from 1, in order."""
    order = np.argsort(groups, kind="stable")
    _, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    numbers = np.empty(len(groups), dtype=np.int64)
    numbers[order] = 1 + np.arange(len(groups)) - np.repeat(starts, counts)
    return numbers


def _own_words(contexts: Sequence[str | None]) -> NDArray[np.float64]:
    """What the relevance of each record counts, by its context, where the user's own words are asked for."""
    others = [context is not None and context.strip().lower() in ANSWERING for context in contexts]
    return np.where(others, _OTHER_WORDS, 1.0)
