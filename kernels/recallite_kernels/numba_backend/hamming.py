"""Sketches, JIT: one bit per component, Hamming distance by popcount, the nearest by counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.contract import F32, I64, LANES, U16, U64
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._jit import helper, intrinsic, kernel

GREATEST = np.float32(np.finfo(np.float32).max)
ROOM = 4096  # rows kept beyond those wanted before the farthest are dropped
GROUP = 64  # blocks: 48 KB of sketches, which stay in the second-level cache for all queries
SAMPLE = 64  # blocks whose rows give the first limit
SPARSE = 6  # if fewer rows than one in this number are wanted, each is measured alone
DEVIATIONS = 3.0  # of the sample's count; more rows are appended with more, fewer queries scanned twice


def sketch(vectors: F32) -> U64 | None:
    n, d = vectors.shape
    out = np.empty((n, -(-d // 64)), np.uint64)
    return out if _sketch.call(vectors, out) else None


def hamming_shortlist(
    queries: U64, sketches: U64, allowed: I64, listed: bool, start: int, stop: int, size: int
) -> tuple[I64, U16] | None:
    count, words = queries.shape
    size = min(size, stop - start)
    first, masks = _blocks(allowed, listed, start, stop, len(sketches))
    capacity = min(size + ROOM, stop - start)
    rows, distances = np.empty((count, size), np.int64), np.empty((count, size), np.uint16)
    in_range = _hamming_shortlist.call(
        queries, sketches, allowed, int(listed), start, stop,
        np.empty((count, capacity), np.int64), np.empty((count, capacity), np.uint16),
        np.full(count, 64 * words + 1, np.int64), np.zeros(count, np.int64), np.empty(64 * words + 2, np.int64),
        first, masks, np.empty(GROUP, np.uint16), rows, distances,
    )  # fmt: skip
    return (rows, distances) if in_range else None


def _blocks(allowed: I64, listed: bool, start: int, stop: int, blocks: int) -> tuple[int, U16]:
    """The first block with a row to look at, and a mask of rows for each block from there on, of listed ones still 0.

    No masks where the rows are few, or out of order or of range, as the kernel sees.
    """
    if not listed:
        first, last = start // LANES, -(-stop // LANES)
        masks = np.full(last - first, 65535, np.uint16)
        masks[:1] &= 65535 << start % LANES & 65535
        masks[-1:] &= 65535 >> -stop % LANES
        return first, masks
    if start < stop:
        first, last = allowed.item(start) // LANES, allowed.item(stop - 1) // LANES + 1
        if 0 <= first < last <= blocks and (last - first) * LANES <= SPARSE * (stop - start):
            return first, np.zeros(last - first, np.uint16)
    return 0, np.empty(0, np.uint16)


popcount = intrinsic("popcount")


@kernel(_jit.F32_2, _jit.OUT_U64_2, returns=_jit.I64)
def _sketch(vectors: Any, out: Any) -> Any:
    """Returns 0 if a component is not finite."""
    n, d = vectors.shape
    finite = True
    for i in range(n):
        for word in range(out.shape[1]):
            bits = np.uint64(0)
            first = word * 64
            for j in range(min(64, d - first)):
                finite &= abs(vectors[i, first + j]) <= GREATEST
                bits |= np.uint64(vectors[i, first + j] > 0) << np.uint64(j)
            out[i, word] = bits
    return 1 if finite else 0


@helper
def sketch_distance(queries: Any, q: Any, sketches: Any, row: Any) -> Any:
    """The Hamming distance of one row, uint64; six words, of 384 dimensions, are unrolled."""
    block, lane = np.uintp(row) // np.uintp(LANES), np.uintp(row) % np.uintp(LANES)
    if queries.shape[1] == 6:
        total = popcount(queries[q, 0] ^ sketches[block, 0, lane]) + popcount(queries[q, 1] ^ sketches[block, 1, lane])
        total += popcount(queries[q, 2] ^ sketches[block, 2, lane]) + popcount(queries[q, 3] ^ sketches[block, 3, lane])
        total += popcount(queries[q, 4] ^ sketches[block, 4, lane]) + popcount(queries[q, 5] ^ sketches[block, 5, lane])
        return total
    total = np.uint64(0)
    for word in range(np.uintp(queries.shape[1])):
        total += popcount(queries[q, word] ^ sketches[block, word, lane])
    return total


# The words of 16 rows stand side by side, so LLVM counts the bits of 4 or 8 rows at a time. Masks alone are stored, and
# the near rows, 1 or 2 of a hundred, measured again: storing and searching all distances took twice as long.
@helper
def mark_near(queries: Any, q: Any, sketches: Any, first: Any, last: Any, limit: Any, near: Any) -> None:
    """Write a bit for each row of some blocks that is nearer than the limit, uint16 (blocks,)."""
    if queries.shape[1] != 6:
        for block in range(np.uintp(first), np.uintp(last)):
            mask = np.uint64(0)
            for lane in range(np.uintp(LANES)):
                distance = sketch_distance(queries, q, sketches, block * np.uintp(LANES) + lane)
                mask |= np.uint64(distance < limit) << np.uint64(lane)
            near[block - np.uintp(first)] = np.uint16(mask)
        return
    q0, q1, q2 = queries[q, 0], queries[q, 1], queries[q, 2]
    q3, q4, q5 = queries[q, 3], queries[q, 4], queries[q, 5]
    for block in range(np.uintp(first), np.uintp(last)):
        mask = np.uint64(0)
        for lane in range(np.uintp(LANES)):
            total = popcount(q0 ^ sketches[block, 0, lane]) + popcount(q1 ^ sketches[block, 1, lane])
            total += popcount(q2 ^ sketches[block, 2, lane]) + popcount(q3 ^ sketches[block, 3, lane])
            total += popcount(q4 ^ sketches[block, 4, lane]) + popcount(q5 ^ sketches[block, 5, lane])
            mask |= np.uint64(total < limit) << np.uint64(lane)
        near[block - np.uintp(first)] = np.uint16(mask)


@helper
def keep_nearest(rows: Any, distances: Any, count: Any, size: Any, histogram: Any) -> Any:
    """Drop all but the `size` nearest, in their order; returns the greatest distance kept.

    Rows come in ascending order, so a later row of that distance loses the tie: only nearer ones are taken from then.
    """
    histogram[:] = 0
    for at in range(np.uintp(count)):
        histogram[np.uintp(distances[at])] += 1
    below = 0
    limit = 0
    while below + histogram[limit] < size:
        below += histogram[limit]
        limit += 1
    ties = size - below
    nearest = np.uintp(0)
    for at in range(np.uintp(count)):
        distance = np.int64(distances[at])
        if distance < limit or (distance == limit and ties > 0):
            ties -= distance == limit
            rows[nearest] = rows[at]
            distances[nearest] = distances[at]
            nearest += np.uintp(1)
    return limit


@helper
def guess_limit(queries: Any, q: Any, sketches: Any, first: Any, masks: Any, rows: Any, size: Any, counted: Any) -> Any:
    """A distance that a few more rows than wanted are nearer than, from a sample of the blocks."""
    counted[:] = 0
    seen = 0
    stride = masks.shape[0] // SAMPLE
    for place in range(np.uintp(0), np.uintp(SAMPLE * stride), np.uintp(stride)):
        for lane in range(np.uintp(LANES)):
            if masks[place] >> lane & 1:
                row = (np.uintp(first) + place) * np.uintp(LANES) + lane
                counted[np.uintp(sketch_distance(queries, q, sketches, row))] += 1
                seen += 1
    wanted = size * seen / rows
    wanted += DEVIATIONS * (np.sqrt(wanted) + 1.0)
    limit, below = 0, 0
    while below < wanted and limit < counted.shape[0] - 1:
        below += counted[limit]
        limit += 1
    return limit


# Held rows and their number in local variables: a function that appends would count references, 0.1 ms for 1,000 rows.
@helper
def scan_blocks(
    queries: Any, sketches: Any, first: Any, masks: Any, size: Any, rows: Any, distances: Any, limits: Any, counts: Any,
    histogram: Any, near: Any,
) -> None:  # fmt: skip
    """Append the rows of blocks from `first` whose mask is set and that are nearer than each query's limit.

    A full buffer is cut to the nearest, which sets the limit.
    """
    capacity, one = rows.shape[1], np.uint64(1)
    for group in range(0, masks.shape[0], GROUP):
        some = min(GROUP, masks.shape[0] - group)
        for q in range(np.uintp(queries.shape[0])):
            count, limit = np.uintp(counts[q]), np.uint64(limits[q])
            mark_near(queries, q, sketches, first + group, first + group + some, limit, near)
            for block in range(np.uintp(some)):
                left = np.uint64(near[block]) & np.uint64(masks[np.uintp(group) + block])
                while left:
                    lane = np.uintp(popcount((left & (~left + one)) - one))
                    left &= left - one
                    row = (np.uintp(first + group) + block) * np.uintp(LANES) + lane
                    distance = sketch_distance(queries, q, sketches, row)
                    if distance < limit:
                        rows[q, count] = np.int64(row)
                        distances[q, count] = np.uint16(distance)
                        count += np.uintp(1)
                        if count == capacity and capacity > size:
                            limit = np.uint64(keep_nearest(rows[q], distances[q], count, size, histogram))
                            count = np.uintp(size)
            counts[q], limits[q] = count, limit


@helper
def scan_rows(
    queries: Any, sketches: Any, allowed: Any, start: Any, stop: Any, size: Any, rows: Any, distances: Any, limits: Any,
    counts: Any, histogram: Any,
) -> None:  # fmt: skip
    """`scan_blocks` of the rows that allowed[start:stop] names, in their order, where they are few or out of order."""
    capacity = rows.shape[1]
    for group in range(start, stop, GROUP * LANES):
        end = min(group + GROUP * LANES, stop)
        for q in range(np.uintp(queries.shape[0])):
            count, limit = np.uintp(counts[q]), np.uint64(limits[q])
            for at in range(np.uintp(group), np.uintp(end)):
                distance = sketch_distance(queries, q, sketches, allowed[at])
                if distance < limit:
                    rows[q, count] = allowed[at]
                    distances[q, count] = np.uint16(distance)
                    count += np.uintp(1)
                    if count == capacity and capacity > size:
                        limit = np.uint64(keep_nearest(rows[q], distances[q], count, size, histogram))
                        count = np.uintp(size)
            counts[q], limits[q] = count, limit


@kernel(
    _jit.U64_2, _jit.U64_3, _jit.I64_1, _jit.I64, _jit.I64, _jit.I64, _jit.OUT_I64_2, _jit.OUT_U16_2,
    _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_I64, _jit.I64, _jit.OUT_U16, _jit.OUT_U16, _jit.OUT_I64_2, _jit.OUT_U16_2,
    returns=_jit.I64,
)  # fmt: skip
def _hamming_shortlist(
    queries: Any, sketches: Any, allowed: Any, listed: Any, start: Any, stop: Any, held_rows: Any,
    held_distances: Any, limits: Any, counts: Any, histogram: Any, first: Any, masks: Any, near: Any, rows: Any,
    distances: Any,
) -> Any:  # fmt: skip
    """One pass that appends what is nearer than a guessed limit, and a second where the guess was too low.

    Returns 0 if an allowed row is out of range.
    """
    size, looked_at, greatest = rows.shape[1], stop - start, 64 * queries.shape[1] + 1
    in_range, ascending = True, True
    for at in range(np.uintp(start), np.uintp(stop if listed else start)):
        in_range &= bool(np.uintp(allowed[at]) < np.uintp(sketches.shape[0] * LANES))
        ascending &= at == np.uintp(start) or bool(allowed[at - np.uintp(1)] < allowed[at])
    if not in_range:
        return 0
    if listed and (not ascending or masks.shape[0] == 0):
        scan_rows(
            queries, sketches, allowed, start, stop, size, held_rows, held_distances, limits, counts, histogram
        )  # fmt: skip
    else:
        for at in range(np.uintp(start), np.uintp(stop if listed else start)):
            row = np.uintp(allowed[at])
            masks[row // np.uintp(LANES) - np.uintp(first)] |= np.uint16(1 << (row % np.uintp(LANES)))
        for q in range(np.uintp(queries.shape[0] if masks.shape[0] >= 4 * SAMPLE and looked_at >= 4 * size else 0)):
            limits[q] = guess_limit(queries, q, sketches, first, masks, looked_at, size, histogram)
        # If the guess was too low, that query alone is scanned again.
        for _ in range(2):
            scan_blocks(
                queries, sketches, first, masks, size, held_rows, held_distances, limits, counts, histogram, near
            )  # fmt: skip
            enough = True
            for q in range(queries.shape[0]):
                enough &= counts[q] >= size
                limits[q] = 0 if counts[q] >= size else greatest  # nothing is nearer than 0
                counts[q] = counts[q] if counts[q] >= size else 0
            if enough:
                break
    for q in range(queries.shape[0]):
        if counts[q] > size:
            keep_nearest(held_rows[q], held_distances[q], counts[q], size, histogram)
            counts[q] = size
        # A counting sort by distance; equal ones stay in order of row.
        histogram[:] = 0
        for at in range(np.uintp(counts[q])):
            histogram[np.uintp(held_distances[q, at]) + np.uintp(1)] += 1
        for value in range(1, histogram.shape[0]):
            histogram[value] += histogram[value - 1]
        for at in range(np.uintp(counts[q])):
            distance = np.uintp(held_distances[q, at])
            rank = np.uintp(histogram[distance])
            histogram[distance] += 1
            rows[q, rank] = held_rows[q, at]
            distances[q, rank] = held_distances[q, at]
    return 1
