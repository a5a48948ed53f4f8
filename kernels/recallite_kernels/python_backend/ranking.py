"""Ranking kernels in NumPy float64, in the JIT's order of operations: sums, and so ties, agree to the last bit."""

from __future__ import annotations

import numpy as np

from recallite_kernels import signals as formulas
from recallite_kernels.contract import F64, I32, I64


def reciprocal_rank_fusion(ranks: I64, weights: F64, k: float) -> F64:
    out = np.zeros(ranks.shape[1])
    for rank, weight in zip(ranks, weights, strict=True):
        out += np.where(rank > 0, weight / (k + np.maximum(rank, 1)), 0.0)
    return out


@np.errstate(all="ignore")
def decay(ages_days: F64, half_life_days: float, floor: float, exponential: bool) -> F64:
    decayed: F64 = formulas.decay(ages_days, half_life_days, floor, int(exponential))
    return decayed


def maximal_marginal_relevance(relevance: F64, token_ids: I32, offsets: I64, mmr_lambda: float, k: int) -> I64:
    # Tokens become 0, 1, 2 ..., so that a set is a row of marks and an intersection a sum over them.
    vocabulary, tokens = np.unique(token_ids, return_inverse=True)
    marks = np.zeros(len(vocabulary), np.int64)
    sums = np.zeros(len(token_ids) + 1, np.int64)
    sizes = np.diff(offsets)
    nearest = np.zeros(len(relevance))
    left = np.ones(len(relevance), np.bool_)
    order = np.empty(k, np.int64)
    for step in range(k):
        gain = mmr_lambda * relevance - (1.0 - mmr_lambda) * nearest
        gain[~left] = -np.inf
        best = int(np.argmax(gain))
        order[step] = best
        left[best] = False
        item = tokens[offsets[best] : offsets[best + 1]]
        marks[item] = 1
        np.cumsum(marks[tokens], out=sums[1:])
        marks[item] = 0
        common = sums[offsets[1:]] - sums[offsets[:-1]]
        union = sizes + sizes[best] - common
        np.maximum(nearest, np.divide(common, union, out=np.zeros(len(common)), where=union > 0), out=nearest)
    return order
