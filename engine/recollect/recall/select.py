"""From scored candidates to the few that are returned: threshold, diversify, group, limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from recollect.numerics import kernels
from recollect.recall.candidates import SIGNALS, Candidates
from recollect.recall.score_bounds import ExactTop
from recollect.store.values import TermBlock

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.query_batch import QueryBatch
    from recollect.profiles import Profile
    from recollect.recall.request import Request


# MMR chooses among this many times the limit, and at least this many.
MMR_POOL, MMR_LEAST = 4, 32


def exact_top(request: Request, wanted: int) -> ExactTop:
    """How many of the best candidates have to be exact so that the hits are."""
    if request.profile.min_confidence > 0:
        return ExactTop(wanted)
    if request.profile.mmr_lambda is not None:
        return ExactTop(max(MMR_POOL * request.limit, MMR_LEAST))
    return ExactTop(request.limit, request.group_by is not None)


def choose(
    candidates: Candidates,
    confidence: NDArray[np.float64] | None,
    batch: QueryBatch,
    request: Request,
    load_terms: Callable[[NDArray[np.int64]], TermBlock],
) -> NDArray[np.int64]:
    """The places of the candidates of one query that are returned."""
    chosen = threshold(candidates, confidence, request.profile)
    chosen = diversify(candidates, chosen, request, load_terms)
    if request.group_by is not None:
        chosen = group_by_source(candidates, chosen, batch)
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
    starts, stops = block.offsets[places], block.offsets[places + 1]
    tokens = np.concatenate([block.terms[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)])
    offsets = np.concatenate([[0], np.cumsum(stops - starts)]).astype(np.int64)
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
