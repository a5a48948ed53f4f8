"""From signals to scores: fuse, spread, weigh by age and importance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.protocol import Question
    from recollect.recall.candidates import Candidates
    from recollect.settings import Profile

__all__ = ["fused", "rank_of", "spread", "weigh"]

_DAY_US = 86_400_000_000.0
# With 0 only 3.5 % of the records without a source reach the top 20 when half of a store's sessions lose theirs.
LONE_SHARE = 0.8
_ONLY_BM25 = np.array([0, 1], dtype=np.uint8)


def fused(
    cosine: NDArray[np.float32], bm25: NDArray[np.float32], keys: NDArray[np.int64], profile: Profile
) -> NDArray[np.float64]:
    """One score from cosine and BM25: their weighted sum with BM25 divided by its maximum, or by reciprocal rank."""
    signals = np.empty((2, len(keys)), dtype=np.float64)
    signals[0], signals[1] = cosine, bm25
    weights = np.array([profile.vector_weight, profile.keyword_weight])
    if profile.fusion == "weighted" or not len(keys):
        return kernels.weighted_fusion(signals, weights, _ONLY_BM25)
    ranks = np.stack([rank_of(signal, keys) for signal in signals])
    ranks[weights == 0] = 0
    return kernels.normalise_scores(kernels.reciprocal_rank_fusion(ranks, weights, profile.rrf_k))


def spread(candidates: Candidates, question: Question, profile: Profile) -> None:
    """One step of spreading activation: from the strongest neighbour or link, and from the source's best three.

    Where such evidence cannot exist (a record without a source, or alone in it) most of the record's own score
    stands for it; otherwise records without a source drown beside those of sessions.
    """
    if profile.spread == 0 or not len(candidates):
        return
    own = np.maximum(candidates.fused, 0.0)
    substitute = LONE_SHARE * own
    reached = question.activation(candidates.rows, own)
    lonely = reached.company == 1
    best_three = kernels.group_top_mean(own, question.sources(candidates.rows), 3) * 3 / reached.company
    strongest = np.maximum(reached.by_chain, reached.by_link)
    neighbor, source = profile.spread * profile.neighbor_weight, profile.spread * profile.source_weight
    candidates.lift = neighbor * strongest + source * np.where(lonely, 0.0, best_three)
    stand_in = neighbor * np.where(lonely & ~reached.is_linked, substitute, 0.0)
    stand_in += source * np.where(lonely, substitute, 0.0)
    candidates.linked = np.where(reached.by_link > reached.by_chain, neighbor * reached.by_link, 0.0)
    candidates.score = candidates.spread = (candidates.fused + candidates.lift + stand_in) / (1.0 + neighbor + source)


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
