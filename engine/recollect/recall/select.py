"""From scored candidates to the few that are returned: threshold, diversify, group, limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

import recollect_kernels as kernels
from recollect.recall.confidence import confidences

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.protocol import Question
    from recollect.recall.candidates import Candidates
    from recollect.recall.request import Request
    from recollect.store.loading import TermBlock

__all__ = ["diversify", "group_by_source", "order_by_score", "threshold"]

_MMR_POOL = 4


def order_by_score(candidates: Candidates) -> NDArray[np.int64]:
    """Places of the candidates, best first; equal scores by ascending record."""
    return np.lexsort((candidates.keys, -candidates.score))


def threshold(
    candidates: Candidates, order: NDArray[np.int64], question: Question, request: Request, unknown_words: int
) -> NDArray[np.int64]:
    """The places whose score and confidence reach the profile's minimum."""
    profile = request.profile
    if profile.min_score > 0:
        order = order[candidates.score[order] >= profile.min_score]
    if profile.min_confidence > 0:
        sure = confidences(question, candidates.rows[order], candidates.cosine[order], unknown_words)
        order = order[sure >= profile.min_confidence]
    return order


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
    pool = order[: max(_MMR_POOL * request.limit, 32)]
    keys = candidates.keys[pool]
    block = load_terms(keys)
    # The block ascends by record; MMR wants the pool's order, in which ties fall to the better score.
    places = np.searchsorted(block.ids, keys)
    starts, stops = block.offsets[places], block.offsets[places + 1]
    tokens = np.concatenate([block.terms[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)])
    offsets = np.concatenate([[0], np.cumsum(stops - starts)]).astype(np.int64)
    picked = kernels.maximal_marginal_relevance(
        candidates.score[pool], np.ascontiguousarray(tokens, dtype=np.int32), offsets, mmr_lambda, len(pool)
    )
    return np.concatenate([pool[picked], order[len(pool) :]])


def group_by_source(
    candidates: Candidates, order: NDArray[np.int64], question: Question, request: Request
) -> NDArray[np.int64]:
    """One place per source, its best record, by the source's score; a record without a source stands for itself.

    A source scores by its best record, the mean of its best three and the BM25 of all its words.
    """
    profile = request.profile
    sources = question.sources(candidates.rows)
    # A record without a source is a group of its own: give it a number no source has.
    groups = np.where(sources >= 0, sources, -2 - candidates.rows)
    wanted, member = np.unique(groups, return_inverse=True)
    best = np.zeros(len(wanted), dtype=np.float64)
    np.maximum.at(best, member, candidates.score)
    top = np.zeros(len(wanted), dtype=np.float64)
    top[member] = kernels.group_top_mean(candidates.score, member.astype(np.int64), 3, True)
    words = np.zeros(len(wanted), dtype=np.float64)
    real = wanted >= 0
    if profile.group_keyword_weight and real.any():
        words[real] = question.source_words(wanted[real])
        words /= words.max() or 1.0
    score = (best + profile.group_top_weight * top + profile.group_keyword_weight * words) / (
        1.0 + profile.group_top_weight + profile.group_keyword_weight
    )
    first = order[np.sort(np.unique(member[order], return_index=True)[1])]
    candidates.score = candidates.score.copy()
    candidates.score[first] = score[member[first]]
    return first[np.lexsort((candidates.keys[first], -candidates.score[first]))]
