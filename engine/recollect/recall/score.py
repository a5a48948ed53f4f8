"""From signals to scores: fuse, spread, weigh by age and importance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import recollect_kernels as kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.protocol import Neighborhood, Question
    from recollect.recall.candidates import Candidates
    from recollect.settings import Profile

__all__ = ["fuse", "rank_of", "spread", "weigh"]

_DAY_US = 86_400_000_000.0


def fuse(candidates: Candidates, profile: Profile) -> None:
    """One score in [0, 1] from cosine and BM25: weighted, or by reciprocal rank."""
    cosine = candidates.cosine.astype(np.float64)
    bm25 = candidates.bm25.astype(np.float64)
    weights = np.array([profile.vector_weight, profile.keyword_weight])
    if not len(candidates):
        return
    if profile.fusion == "rrf":
        ranks = np.stack([rank_of(cosine, candidates.keys), rank_of(bm25, candidates.keys)])
        ranks[weights == 0] = 0
        fused = kernels.reciprocal_rank_fusion(ranks, weights, profile.rrf_k)
        candidates.fused = kernels.normalise_scores(fused)
    else:
        candidates.fused = kernels.weighted_fusion(
            np.stack([cosine, bm25]), weights, np.array([0, 1], dtype=np.uint8)
        )
    candidates.spread = candidates.score = candidates.fused


def spread(candidates: Candidates, question: Question, profile: Profile) -> None:
    """One step of spreading activation: from neighbours, from the source's best three, from links."""
    if profile.spread == 0 or not len(candidates):
        return
    activation = np.maximum(candidates.fused, 0.0)
    near = question.neighborhood(candidates.rows)
    beside = _best_neighbor(near, activation, linked=False)
    links = _best_neighbor(near, activation, linked=True)
    sources = question.sources(candidates.rows)
    top = kernels.group_top_mean(activation, sources, 3, True)
    candidates.linked = profile.spread * profile.link_weight * links
    candidates.lift = candidates.linked + profile.spread * (
        profile.neighbor_weight * beside
        + profile.source_weight * top
        + profile.source_words_weight * _source_words(question, sources)
    )
    whole = 1.0 + profile.spread * (
        profile.neighbor_weight + profile.source_weight + profile.source_words_weight + profile.link_weight
    )
    candidates.score = candidates.spread = (candidates.fused + candidates.lift) / whole


def _best_neighbor(
    near: Neighborhood, activation: NDArray[np.float64], *, linked: bool
) -> NDArray[np.float64]:
    """The strongest activation that reaches each row along one kind of edge."""
    best = np.zeros(len(activation), dtype=np.float64)
    chosen = near.linked == linked
    if chosen.any():
        origins = np.repeat(np.arange(len(activation)), np.diff(near.offsets))[chosen]
        np.maximum.at(best, origins, near.strengths[chosen] * activation[near.targets[chosen]])
    return best


def _source_words(question: Question, sources: NDArray[np.int64]) -> NDArray[np.float64]:
    """BM25 of each row's whole source, the best source at 1."""
    words = np.zeros(len(sources), dtype=np.float64)
    wanted, place = np.unique(sources, return_inverse=True)
    if wanted[-1] >= 0:
        real = wanted >= 0
        scores = np.zeros(len(wanted), dtype=np.float64)
        scores[real] = question.source_words(wanted[real])
        words = scores[place] / (scores.max() or 1.0)
    return words


def weigh(candidates: Candidates, question: Question, profile: Profile, clock_us: int) -> None:
    """Multiply by the weight of age and of importance."""
    if profile.decay != "none":
        ages = (clock_us - question.created_at(candidates.rows)) / _DAY_US
        candidates.decay = kernels.decay(
            np.maximum(ages, 0.0), profile.half_life_days, profile.decay_floor, profile.decay
        )
        candidates.score = candidates.score * candidates.decay
    if profile.importance_weight:
        importance = question.importance(candidates.rows)
        factor = 1.0 + profile.importance_weight * (2.0 * importance - 1.0)
        candidates.score = candidates.score * factor


def rank_of(values: NDArray[np.float64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank of each value from 1, best first, ties by ascending key; 0 where the value is not above 0."""
    order = np.lexsort((keys, -values))
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(1, len(values) + 1)
    ranks[values <= 0] = 0
    return ranks
