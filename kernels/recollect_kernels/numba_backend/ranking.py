"""Composite kernels, JIT, in float64 without fastmath: the definition's order of operations, so ties are its ties."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.contract import F64, I32, I64, U8
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import kernel


def weighted_fusion(signals: F64, weights: F64, normalise: U8) -> F64:
    out = np.zeros(signals.shape[1])
    _weighted_fusion.call(signals, weights, normalise, out)
    return out


def reciprocal_rank_fusion(ranks: I64, weights: F64, k: float) -> F64:
    out = np.zeros(ranks.shape[1])
    _reciprocal_rank_fusion.call(ranks, weights, k, out)
    return out


def normalise_scores(scores: F64, low: float, high: float) -> F64:
    out = np.empty(len(scores))
    _normalise_scores.call(scores, low, high, out)
    return out


def decay(ages_days: F64, half_life_days: float, floor: float, exponential: bool) -> F64:
    out = np.empty(len(ages_days))
    _decay.call(ages_days, half_life_days, floor, int(exponential), out)
    return out


def maximal_marginal_relevance(relevance: F64, token_ids: I32, offsets: I64, mmr_lambda: float, k: int) -> I64:
    m, t = len(relevance), len(token_ids)
    chosen = np.empty(k, np.int64)
    size = 1 << (2 * t).bit_length()
    keys = np.full(size, -(2**40), np.int64)  # no int32 token
    _mmr.call(
        relevance, token_ids, offsets, mmr_lambda, keys, np.zeros(size, np.uint8), np.empty(t, np.int64),
        np.zeros(m), np.zeros(m, np.uint8), chosen,
    )  # fmt: skip
    return chosen


def group_top_mean(scores: F64, groups: I64, top: int, by_top: bool) -> F64:
    m = len(scores)
    out = np.empty(m)
    table = np.full(1 << (2 * m).bit_length(), -1, np.int64)
    kept = min(top, m)
    _group_top_mean.call(
        scores, groups, top, int(by_top), table, np.empty(m, np.int64), np.empty((m, kept)), np.zeros(m, np.int64), out
    )
    return out


@kernel(_jit.F64_2, _jit.F64_1, _jit.U8_1, _jit.OUT_F64)
def _weighted_fusion(signals: Any, weights: Any, normalise: Any, out: Any) -> None:
    count, m = signals.shape
    total = 0.0
    for s in range(count):
        total += weights[s]
    for s in range(count):
        weight = weights[s] / total
        if normalise[s]:
            greatest = 0.0
            for i in range(m):
                greatest = max(greatest, signals[s, i])
            if greatest > 0:
                for i in range(m):
                    out[i] += weight * (signals[s, i] / greatest)
        else:
            for i in range(m):
                out[i] += weight * signals[s, i]


@kernel(_jit.I64_2, _jit.F64_1, _jit.F64, _jit.OUT_F64)
def _reciprocal_rank_fusion(ranks: Any, weights: Any, k: Any, out: Any) -> None:
    for s in range(ranks.shape[0]):
        for i in range(ranks.shape[1]):
            if ranks[s, i] > 0:
                out[i] += weights[s] / (k + ranks[s, i])


@kernel(_jit.F64_1, _jit.F64, _jit.F64, _jit.OUT_F64)
def _normalise_scores(scores: Any, low: Any, high: Any, out: Any) -> None:
    m = scores.shape[0]
    if m == 0:
        return
    least = scores[0]
    greatest = scores[0]
    for i in range(m):
        least = min(least, scores[i])
        greatest = max(greatest, scores[i])
    for i in range(m):
        out[i] = high if greatest == least else low + (high - low) * ((scores[i] - least) / (greatest - least))


@kernel(_jit.F64_1, _jit.F64, _jit.F64, _jit.I64, _jit.OUT_F64)
def _decay(ages_days: Any, half_life_days: Any, floor: Any, exponential: Any, out: Any) -> None:
    for i in range(ages_days.shape[0]):
        lives = max(ages_days[i], 0.0) / half_life_days
        out[i] = max(floor, np.exp(-lives) if exponential else np.exp2(-lives))


@kernel(
    _jit.F64_1, _jit.I32_1, _jit.I64_1, _jit.F64, _jit.OUT_I64, _jit.OUT_U8, _jit.OUT_I64, _jit.OUT_F64,
    _jit.OUT_U8, _jit.OUT_I64,
)  # fmt: skip
def _mmr(
    relevance: Any, token_ids: Any, offsets: Any, mmr_lambda: Any, keys: Any, marks: Any, slots: Any,
    nearest: Any, taken: Any, chosen: Any,
) -> None:  # fmt: skip
    # Each token gets a slot of an open-addressing table once; an intersection is then a sum of marks, without the
    # branches of a merge: 800 sets of 30 tokens, k = 10, took 1.25 ms with merges.
    last = np.uintp(keys.shape[0] - 1)
    for p in range(np.uintp(token_ids.shape[0])):
        token = np.int64(token_ids[p])
        at = np.uintp((np.uint64(token) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & last
        while keys[at] != token and keys[at] >= -(2**31):
            at = (at + np.uintp(1)) & last
        keys[at] = token
        slots[p] = at
    m = relevance.shape[0]
    for step in range(chosen.shape[0]):
        best = -1
        most = -np.inf
        for i in range(m):
            if not taken[i]:
                gain = mmr_lambda * relevance[i] - (1.0 - mmr_lambda) * nearest[i]
                if best < 0 or gain > most:
                    best, most = i, gain
        chosen[step] = best
        taken[best] = 1
        if step + 1 == chosen.shape[0]:
            break
        begin, end = offsets[best], offsets[best + 1]
        for p in range(np.uintp(begin), np.uintp(end)):
            marks[np.uintp(slots[p])] = 1
        for i in range(m):
            if taken[i]:
                continue
            common = 0
            for p in range(np.uintp(offsets[i]), np.uintp(offsets[i + 1])):
                common += marks[np.uintp(slots[p])]
            union = (end - begin) + (offsets[i + 1] - offsets[i]) - common
            if union > 0:
                nearest[i] = max(nearest[i], common / union)
        for p in range(np.uintp(begin), np.uintp(end)):
            marks[np.uintp(slots[p])] = 0


@kernel(
    _jit.F64_1, _jit.I64_1, _jit.I64, _jit.I64, _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_F64_2, _jit.OUT_I64, _jit.OUT_F64
)
def _group_top_mean(
    scores: Any, groups: Any, top: Any, by_top: Any, table: Any, slots: Any, best: Any, sizes: Any, out: Any
) -> None:
    """An open-addressing table from group to the item that came first; its best scores stand sorted in `best`."""
    m, kept = best.shape
    last = table.shape[0] - 1
    for i in range(m):
        if groups[i] == -1:
            continue
        at = (groups[i] * 0x9E3779B97F4A7C1) >> 20 & last
        while table[at] >= 0 and groups[table[at]] != groups[i]:
            at = (at + 1) & last
        if table[at] < 0:
            table[at] = i
        first = table[at]
        slots[i] = first
        place = min(sizes[first], kept)
        sizes[first] += 1
        # Insertion into a list of `top`, descending; the last falls out.
        if place == kept:
            if scores[i] <= best[first, kept - 1]:
                continue
            place = kept - 1
        while place > 0 and best[first, place - 1] < scores[i]:
            best[first, place] = best[first, place - 1]
            place -= 1
        best[first, place] = scores[i]
    for i in range(m):
        if groups[i] == -1:
            out[i] = 0.0
            continue
        first = slots[i]
        held = min(sizes[first], kept)
        total = 0.0
        for place in range(held):
            total += best[first, place]
        out[i] = total / (top if by_top else held)
