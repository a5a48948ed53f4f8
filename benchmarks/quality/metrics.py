"""Metrics of a ranked list against the set of what is relevant, by their definitions.

`ranked` holds distinct items, best first; `gold` is what is relevant and never empty.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Sequence

import numpy as np

__all__ = [
    "figures_at_k",
    "hit_at_k",
    "interval",
    "ndcg_at_k",
    "recall_all_at_k",
    "recall_any_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "roc_auc",
    "wilson",
]


def recall_at_k(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """The share of `gold` among the first `k`."""
    return len(set(ranked[:k]) & set(gold)) / len(set(gold))


def hit_at_k(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """1 if any of `gold` is among the first `k`, else 0."""
    return float(any(item in gold for item in ranked[:k]))


recall_any_at_k = hit_at_k


def recall_all_at_k(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """1 if all of `gold` is among the first `k`, else 0."""
    return float(set(gold) <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[Hashable], gold: Collection[Hashable]) -> float:
    """1 / the rank of the first relevant item; 0 where the list has none."""
    return next((1.0 / rank for rank, item in enumerate(ranked, 1) if item in gold), 0.0)


def figures_at_k(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> dict[str, float]:
    """recall@k, hit@k and MRR of a list of at most `k`."""
    return {
        f"recall@{k}": recall_at_k(ranked, gold, k),
        f"hit@{k}": hit_at_k(ranked, gold, k),
        "MRR": reciprocal_rank(ranked, gold),
    }


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean: Wilson's of a share, else by 2,000 bootstrap samples (Efron, 1979)."""
    count, mean = len(values), math.fsum(values) / len(values)
    if set(values) <= {0.0, 1.0}:
        return wilson(mean, count)
    means = np.random.default_rng(0).choice(np.array(values), (2_000, count)).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return round(low, 4), round(high, 4)


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of `count` (Wilson, 1927)."""
    z = 1.959964
    centre, spread = share + z * z / (2 * count), z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    scale = 1 + z * z / count
    return round((centre - spread) / scale, 4), round((centre + spread) / scale, 4)


def ndcg_at_k(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Normalised discounted cumulative gain with binary relevance (Järvelin and Kekäläinen, 2002).

    The ideal has all of `gold` first, up to `k`.
    """
    gain = sum(1.0 / math.log2(rank + 1) for rank, item in enumerate(ranked[:k], 1) if item in gold)
    ideal = sum(1.0 / math.log2(rank + 1) for rank in range(1, min(len(set(gold)), k) + 1))
    return gain / ideal


def roc_auc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """The chance that a positive scores above a negative, equal scores counting half."""
    negatives = sorted(negatives)
    wins = 0.0
    for positive in positives:
        below, upto = bisect_left(negatives, positive), bisect_right(negatives, positive)
        wins += below + (upto - below) / 2
    return wins / (len(positives) * len(negatives))
