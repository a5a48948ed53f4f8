"""Hits that are chosen among more: by maximal marginal relevance, one a source, or spread over time or sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallite.system.numerics import kernels
from recallite.text.reading import TAG_ONLY
from recallite.text.standing import ANSWERING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.recall.request import Request
    from recallite.recall.view import Opened


# Hits that are spread have at least this share of the best one's relevance, and come from this number of periods.
RELEVANT_SHARE = 0.2
_PERIODS = 10
# What the words of others count where the user's own are asked for.
_OTHER_WORDS = 0.5
SIGNALS = kernels.SIGNALS


def choose(opened: Opened, request: Request, hits: kernels.Hits, query: int, count: int) -> list[int]:
    """The ranks of the hits of a question that are returned, of `count`; those first that a token budget keeps."""
    ranks = np.arange(count)
    if request.diversify_by is None:
        ranks = _diversify(opened, request, hits, query, ranks)
        if request.one_per_source:
            ranks = _one_a_source(opened, hits.rows[query, ranks], ranks)
    else:
        ranks = _spread_out(opened, request, hits, query, ranks)
    best: list[int] = ranks[: request.limit].tolist()
    return best


def _diversify(
    opened: Opened, request: Request, hits: kernels.Hits, query: int, ranks: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Jaccard MMR on the words of the hits."""
    mmr_lambda = request.profile.mmr_lambda
    if mmr_lambda is None or len(ranks) < 2:
        return ranks
    pool = ranks[: request.mmr_pool]
    keys = hits.keys[query, pool]
    block = opened.reader.blocks.terms(keys.tolist())
    # The block ascends by record; in the order of the pool MMR breaks ties by score.
    places = np.searchsorted(block.ids, keys)
    starts, stops = block.offsets[places].tolist(), block.offsets[places + 1].tolist()
    of_text = block.counts & TAG_ONLY == 0  # texts are compared, not tags
    sets = [block.terms[a:b][of_text[a:b]] for a, b in zip(starts, stops, strict=True)]
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    tokens = np.ascontiguousarray(np.concatenate(sets), dtype=np.int32)
    relevance = np.ascontiguousarray(hits.signals[query, pool, SIGNALS.score])
    picked = kernels.maximal_marginal_relevance(relevance, tokens, offsets, mmr_lambda, len(pool))
    return np.concatenate([pool[picked], ranks[len(pool) :]])


def _one_a_source(opened: Opened, rows: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first of each source; a record without one is by itself."""
    _, firsts = np.unique(_sources(opened, rows), return_index=True)
    first_ranks: NDArray[np.int64] = ranks[np.sort(firsts)]
    return first_ranks


def _spread_out(
    opened: Opened, request: Request, hits: kernels.Hits, query: int, ranks: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The ranks that cover the periods, or the sources, of what is relevant; those first that add most.

    What is relevant has `RELEVANT_SHARE` of the best relevance, before recency: an old event is no less of a story.
    The n-th best of a period or source adds a n-th of its relevance, as seats are shared out by D'Hondt. Taking what
    adds most maximises the sum, a monotone submodular function (Lin and Bilmes, 2011).
    """
    relevance = hits.signals[query, ranks, SIGNALS.spread]
    if request.own_words:
        relevance = relevance * _own_words(opened.reader.records.contexts(hits.keys[query, ranks]))
    best_first = np.argsort(-relevance, kind="stable")
    ranks, relevance = ranks[best_first], relevance[best_first]
    ranks = ranks[relevance >= RELEVANT_SHARE * max(relevance.max(initial=0.0), 0.0)]
    relevance = relevance[: len(ranks)]
    rows = hits.rows[query, ranks]
    over_sources = request.diversify_by == "source"
    moments = opened.memory_index.table.moments[rows]
    groups = _sources(opened, rows) if over_sources else _periods(moments, request.limit)
    spread: NDArray[np.int64] = ranks[np.argsort(-relevance / _numbers(groups), kind="stable")]
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


def _sources(opened: Opened, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The source of each row; a record without one is by itself."""
    sources = opened.memory_index.table.sources[rows]
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
    """The factor of each record's relevance, by its context, if the user's own words are asked for."""
    others = [context is not None and context.strip().lower() in ANSWERING for context in contexts]
    return np.where(others, _OTHER_WORDS, 1.0)
