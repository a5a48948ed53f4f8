"""Candidate kernels, JIT: joined by sorting row and origin as one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.contract import F32, F64, I32, I64, U8
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._heap import push, sort_best_first
from recollect_kernels.numba_backend._jit import exact, kernel

ORIGIN_BITS = 24  # of a sort key; the rest, 39 bits, is the row
GREATEST_ROW = 2**39


def join_candidates(
    first_rows: I64, first_values: F32, first_counts: I64, second_rows: I64, second_values: F32, second_counts: I64
) -> tuple[I64, I64, F32, F32] | None:
    most = int(first_counts.sum() + second_counts.sum())
    offsets, rows = np.empty(len(first_rows) + 1, np.int64), np.empty(most, np.int64)
    first, second = np.empty(most, np.float32), np.empty(most, np.float32)
    keys = np.empty(first_rows.shape[1] + second_rows.shape[1], np.int64)
    if not _join.call(
        first_rows, first_values, first_counts, second_rows, second_values, second_counts, keys, offsets, rows,
        first, second,
    ):  # fmt: skip
        return None
    m = int(offsets[-1])
    return offsets, rows[:m], first[:m], second[:m]


def expand_candidates(
    offsets: I64, rows: I64, first: F32, second: F32, scores: F64, best: int, previous: I32, following: I32,
    heads: I32, nexts: I32, targets: I32, mask: U8,
) -> tuple[I64, I64, F32, F32] | None:  # fmt: skip
    queries, longest = len(offsets) - 1, int(np.diff(offsets).max(initial=0))
    best = min(best, longest)
    wider = np.empty(queries + 1, np.int64)
    room = 4 * best
    while True:
        most = len(rows) + queries * room
        out_rows = np.empty(most, np.int64)
        out_first, out_second = np.empty(most, np.float32), np.empty(most, np.float32)
        needed = _expand.call(
            offsets, rows, first, second, scores, previous, following, heads, nexts, targets, mask,
            np.empty(best), np.empty(best, np.int64), np.empty(room, np.int64), wider, out_rows, out_first,
            out_second,
        )  # fmt: skip
        if needed < 0:
            return None
        if needed <= room:
            break
        room = needed  # a record with many links
    m = int(wider[-1])
    return wider, out_rows[:m], out_first[:m], out_second[:m]


def order_by_score(offsets: I64, scores: F64, keys: I64) -> I64:
    order = np.empty(len(scores), np.int64)
    longest = int(np.diff(offsets).max(initial=0))
    _order_by_score.call(offsets, scores, keys, np.empty(longest), np.empty(longest, np.int64), order)
    return order


@exact
def join(
    first_rows: Any, first_values: Any, some: Any, second_rows: Any, second_values: Any, others: Any, keys: Any,
    m: Any, rows: Any, first: Any, second: Any,
) -> Any:  # fmt: skip
    """Write the union from place m on; returns where it ends, -1 where a row does not fit a sort key."""
    unknown = np.float32(np.nan)
    origin_mask = (1 << ORIGIN_BITS) - 1
    begin = m
    for at in range(some):
        if first_rows[at] < 0 or first_rows[at] >= GREATEST_ROW:
            return -1
        keys[at] = (first_rows[at] << ORIGIN_BITS) | at
    for at in range(others):
        if second_rows[at] < 0 or second_rows[at] >= GREATEST_ROW:
            return -1
        keys[some + at] = (second_rows[at] << ORIGIN_BITS) | (some + at)
    sorted_keys = np.sort(keys[: some + others])
    for at in range(some + others):
        row, origin = sorted_keys[at] >> ORIGIN_BITS, sorted_keys[at] & origin_mask
        if m == begin or rows[m - 1] != row:
            rows[m] = row
            first[m] = unknown
            second[m] = unknown
            m += 1
        if origin < some:
            first[m - 1] = first_values[origin]
        else:
            second[m - 1] = second_values[origin - some]
    return m


@kernel(
    _jit.I64_2, _jit.F32_2, _jit.I64_1, _jit.I64_2, _jit.F32_2, _jit.I64_1, _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_I64,
    _jit.OUT_F32, _jit.OUT_F32, returns=_jit.I64,
)  # fmt: skip
def _join(
    first_rows: Any, first_values: Any, first_counts: Any, second_rows: Any, second_values: Any, second_counts: Any,
    keys: Any, offsets: Any, rows: Any, first: Any, second: Any,
) -> Any:  # fmt: skip
    offsets[0] = 0
    for q in range(first_rows.shape[0]):
        m = join(
            first_rows[q], first_values[q], first_counts[q], second_rows[q], second_values[q], second_counts[q], keys,
            offsets[q], rows, first, second,
        )  # fmt: skip
        if m < 0:
            return 0
        offsets[q + 1] = m
    return 1


@exact
def add_allowed(found: Any, count: Any, row: Any, mask: Any) -> Any:
    """Add a row that the mask allows while there is room; returns how many there would be."""
    if mask.shape[0] > 0 and mask[row] == 0:
        return count
    if count < found.shape[0]:
        found[count] = row
    return count + 1


@exact
def find_beside(
    start: Any, stop: Any, rows: Any, scores: Any, best: Any, previous: Any, following: Any, heads: Any, nexts: Any,
    targets: Any, mask: Any, heap_scores: Any, heap_rows: Any, found: Any,
) -> Any:  # fmt: skip
    """The neighbours of the best of one query into `found`; returns how many, -1 where a row is out of range."""
    n = previous.shape[0]
    size = 0
    for i in range(start, stop):
        size = push(heap_scores, heap_rows, size, best, scores[i], rows[i])
    count = 0
    for place in range(size):
        for side in range(2):
            at = heap_rows[place]
            for _ in range(2):
                at = np.int64(previous[at]) if side == 0 else np.int64(following[at])
                if at < 0:
                    break
                if at >= n:
                    return -1
                count = add_allowed(found, count, at, mask)
        edge, steps = np.int64(heads[heap_rows[place]]), 0
        while edge >= 0:
            steps += 1
            if edge >= targets.shape[0] or steps > targets.shape[0]:
                return -1
            at = np.int64(targets[edge])
            if at >= n:
                return -1
            if at >= 0:
                count = add_allowed(found, count, at, mask)
            edge = np.int64(nexts[edge])
    return count


@exact
def merge(
    start: Any, stop: Any, rows: Any, first: Any, second: Any, beside: Any, m: Any, out_rows: Any, out_first: Any,
    out_second: Any,
) -> Any:  # fmt: skip
    """Candidates and neighbours, both ascending, from place m on; returns where they end."""
    unknown = np.float32(np.nan)
    count = beside.shape[0]
    i, j = start, 0
    while i < stop or j < count:
        if j == count or (i < stop and rows[i] <= beside[j]):
            out_rows[m], out_first[m], out_second[m] = rows[i], first[i], second[i]
            i += 1
        else:
            out_rows[m], out_first[m], out_second[m] = beside[j], unknown, unknown
        while j < count and beside[j] == out_rows[m]:
            j += 1
        m += 1
    return m


@kernel(
    _jit.I64_1, _jit.I64_1, _jit.F32_1, _jit.F32_1, _jit.F64_1, _jit.I32_1, _jit.I32_1, _jit.I32_1, _jit.I32_1,
    _jit.I32_1, _jit.U8_1, _jit.OUT_F64, _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_F32,
    _jit.OUT_F32, returns=_jit.I64,
)  # fmt: skip
def _expand(
    offsets: Any, rows: Any, first: Any, second: Any, scores: Any, previous: Any, following: Any, heads: Any,
    nexts: Any, targets: Any, mask: Any, heap_scores: Any, heap_rows: Any, found: Any, wider: Any, out_rows: Any,
    out_first: Any, out_second: Any,
) -> Any:  # fmt: skip
    """Returns how many neighbours a query had at most, -1 where a row is out of range."""
    most = 0
    wider[0] = 0
    for q in range(offsets.shape[0] - 1):
        count = find_beside(
            offsets[q], offsets[q + 1], rows, scores, heap_scores.shape[0], previous, following, heads, nexts, targets,
            mask, heap_scores, heap_rows, found,
        )  # fmt: skip
        if count < 0:
            return -1
        most = max(most, count)
        if most <= found.shape[0]:
            wider[q + 1] = merge(
                offsets[q], offsets[q + 1], rows, first, second, np.sort(found[:count]), wider[q], out_rows, out_first,
                out_second,
            )  # fmt: skip
    return most


@exact
def order_one(start: Any, stop: Any, scores: Any, keys: Any, heap_scores: Any, heap_rows: Any, order: Any) -> None:
    """Places by descending score, ties by ascending key; keys mostly ascend with the place."""
    m = stop - start
    ascending = True
    for i in range(start + 1, stop):
        ascending &= keys[i] > keys[i - 1]
    size = 0
    if ascending:
        # Places stand for keys: their order is the same.
        for i in range(m):
            size = push(heap_scores, heap_rows, size, m, scores[start + i], i)
        sort_best_first(heap_scores, heap_rows, size)
        for i in range(m):
            order[start + i] = heap_rows[i]
    else:
        by_key = np.argsort(keys[start:stop], kind="mergesort")
        for i in range(m):
            size = push(heap_scores, heap_rows, size, m, scores[start + by_key[i]], i)
        sort_best_first(heap_scores, heap_rows, size)
        for i in range(m):
            order[start + i] = by_key[heap_rows[i]]


@kernel(_jit.I64_1, _jit.F64_1, _jit.I64_1, _jit.OUT_F64, _jit.OUT_I64, _jit.OUT_I64)
def _order_by_score(offsets: Any, scores: Any, keys: Any, heap_scores: Any, heap_rows: Any, order: Any) -> None:
    for q in range(offsets.shape[0] - 1):
        order_one(offsets[q], offsets[q + 1], scores, keys, heap_scores, heap_rows, order)
