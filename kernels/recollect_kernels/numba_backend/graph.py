"""The graph kernel, JIT, in float64 without fastmath."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.contract import F32, F64, I32, I64, U8
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import exact, kernel


def spread_activation(
    offsets: I64, rows: I64, scores: F64, previous: I32, following: I32, sources: I64, heads: I32, nexts: I32,
    targets: I32, strengths: F32, mask: U8, near: float, far: float,
) -> tuple[F64, F64, F64, I64] | None:  # fmt: skip
    m = len(rows)
    by_chain, by_link, best_three = np.empty(m), np.empty(m), np.empty(m)
    company = np.empty(m, np.int64)
    slots = 1 << (2 * int(np.diff(offsets).max(initial=0))).bit_length()
    if not _spread_activation.call(
        offsets, rows, scores, previous, following, sources, heads, nexts, targets, strengths, mask, near, far,
        np.empty(slots, np.int64), np.empty((slots, 3)), by_chain, by_link, best_three, company,
    ):  # fmt: skip
        return None
    return by_chain, by_link, best_three, company


@exact
def find_candidate(rows: Any, start: Any, stop: Any, at: Any, row: Any) -> Any:
    """The place of `row` in rows[start:stop], which ascend, or -1. Neighbours are mostly stored side by side: step
    away from place `at` before halving.
    """
    low, high, stride = at, at, 1
    if row > rows[at]:
        while high < stop and rows[high] < row:
            low = high
            high += stride
            stride *= 2
        high = min(high, stop)
    else:
        while low >= start and rows[low] > row:
            high = low
            low -= stride
            stride *= 2
        low = max(low, start)
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low if low < stop and rows[low] == row else -1


@exact
def mixed(number: Any, table: Any) -> Any:
    """Where a number falls in a table whose length is a power of two."""
    return (number * 0x9E3779B1) & (table.shape[0] - 1)


@exact
def slot_of(slots: Any, source: Any) -> Any:
    """Where a source stands in an open-addressing table, or its first free slot."""
    at = mixed(source, slots)
    while slots[at] != -1 and slots[at] != source:
        at = (at + 1) & (slots.shape[0] - 1)
    return at


@exact
def activate(
    start: Any, stop: Any, rows: Any, scores: Any, previous: Any, following: Any, sources: Any, heads: Any, nexts: Any,
    targets: Any, strengths: Any, mask: Any, near: Any, far: Any, slots: Any, best: Any, by_chain: Any, by_link: Any,
    best_three: Any, company: Any,
) -> Any:  # fmt: skip
    """Fill in what reaches the candidates of one query; 0 where a chain leaves the records or a list does not end."""
    n = previous.shape[0]
    masked = mask.shape[0] > 0
    slots[:] = -1
    # Most links lead to no candidate: a mark says so before any search: 1.5 ms a recall less.
    seen = np.zeros(2 * slots.shape[0] if targets.shape[0] else 1, np.uint8)
    if targets.shape[0]:
        for i in range(start, stop):
            seen[mixed(rows[i], seen)] = 1
    for i in range(start, stop):
        by_chain[i] = 0.0
        by_link[i] = -1.0
        company[i] = 1
        for side in range(2):
            at = rows[i]
            for step in range(2):
                at = np.int64(previous[at]) if side == 0 else np.int64(following[at])
                if at < 0:
                    break
                if at >= n:
                    return 0
                if masked and mask[at] == 0:
                    continue
                company[i] = min(company[i] + 1, 3)
                place = find_candidate(rows, start, stop, i, at)
                if place >= 0:
                    by_chain[i] = max(by_chain[i], (near if step == 0 else far) * scores[place])
        edge, steps = np.int64(heads[rows[i]]), 0
        while edge >= 0:
            steps += 1
            if edge >= targets.shape[0] or steps > targets.shape[0]:
                return 0
            at = np.int64(targets[edge])
            if at >= n:
                return 0
            if at >= 0 and seen[mixed(at, seen)] and not (masked and mask[at] == 0):
                place = find_candidate(rows, start, stop, i, at)
                if place >= 0:
                    by_link[i] = max(by_link[i], np.float64(strengths[edge]) * scores[place])
            edge = np.int64(nexts[edge])
        source = sources[rows[i]]
        if source < 0:
            continue
        slot = slot_of(slots, source)
        if slots[slot] == -1:
            slots[slot] = source
            # Numbers, not rows: a view made in the loop takes longer than all else in it.
            best[slot, 0] = best[slot, 1] = best[slot, 2] = 0.0
        score = scores[i]
        for rank in range(3):
            if score > best[slot, rank]:
                score, best[slot, rank] = best[slot, rank], score
    for i in range(start, stop):
        best_three[i] = 0.0
        if sources[rows[i]] >= 0:
            slot = slot_of(slots, sources[rows[i]])
            best_three[i] = best[slot, 0] + best[slot, 1] + best[slot, 2]
    return 1


@kernel(
    _jit.I64_1, _jit.I64_1, _jit.F64_1, _jit.I32_1, _jit.I32_1, _jit.I64_1, _jit.I32_1, _jit.I32_1, _jit.I32_1,
    _jit.F32_1, _jit.U8_1, _jit.F64, _jit.F64, _jit.OUT_I64, _jit.OUT_F64_2, _jit.OUT_F64, _jit.OUT_F64,
    _jit.OUT_F64, _jit.OUT_I64, returns=_jit.I64,
)  # fmt: skip
def _spread_activation(
    offsets: Any, rows: Any, scores: Any, previous: Any, following: Any, sources: Any, heads: Any, nexts: Any,
    targets: Any, strengths: Any, mask: Any, near: Any, far: Any, slots: Any, best: Any, by_chain: Any, by_link: Any,
    best_three: Any, company: Any,
) -> Any:  # fmt: skip
    for q in range(offsets.shape[0] - 1):
        if not activate(
            offsets[q], offsets[q + 1], rows, scores, previous, following, sources, heads, nexts, targets, strengths,
            mask, near, far, slots, best, by_chain, by_link, best_three, company,
        ):  # fmt: skip
            return 0
    return 1
