"""Sketches, JIT: one bit per component, Hamming distance by popcount, selection by counting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from recollect_kernels.contract import F32, I64, U8, U16, U64
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import helper, kernel

LANES = 64  # rows of a block: those of one step of the scan, or compared with the limit at once
SPARSE = 32  # in a sparse mask, up to so many allowed rows of a block are computed one by one


def sketch(vectors: F32) -> U64:
    n, d = vectors.shape
    out = np.empty((n, -(-d // 64)), np.uint64)
    _sketch.call(vectors, out)
    return out


def hamming_distances(query: U64, sketches: U64, mask: U8, out: U16, histogram: I64) -> None:
    _distances.call(query, sketches, mask, np.empty(LANES + 1, np.uint64), out, histogram)


def hamming_select(distances: U16, histogram: I64, m: int) -> I64:
    rows = np.empty(max(m, 0), np.int64)
    if m > 0:
        _select.call(distances, histogram, np.empty(len(histogram), np.int64), rows)
    return rows


def _popcount(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


popcount: Any = intrinsic(_popcount)


@kernel(_jit.F32_2, _jit.OUT_U64_2)
def _sketch(vectors: Any, out: Any) -> None:
    n, d = vectors.shape
    for i in range(n):
        for word in range(out.shape[1]):
            bits = np.uint64(0)
            first = word * 64
            for j in range(min(64, d - first)):
                bits |= np.uint64(vectors[i, first + j] > 0) << np.uint64(j)
            out[i, word] = bits


@helper
def distance(query: Any, sketches: Any, row: Any) -> Any:
    total = np.uint64(0)
    for word in range(query.shape[0]):
        total += popcount(query[word] ^ sketches[row, word])
    return np.uint16(total)


@helper
def all_of_block(query: Any, sketches: Any, out: Any, first: Any, stop: Any) -> None:
    if query.shape[0] != 6:
        for i in range(first, stop):
            out[i] = distance(query, sketches, i)
        return
    # 384 dimensions: unrolled, so that eight rows at a time go through VPOPCNTQ where the machine has it. One
    # million rows then take what reading them takes (1.6 of 1.6 ms), and counting the distances 0.4 ms.
    q0, q1, q2, q3, q4, q5 = query[0], query[1], query[2], query[3], query[4], query[5]
    for i in range(first, stop):
        total = popcount(q0 ^ sketches[i, 0]) + popcount(q1 ^ sketches[i, 1])
        total += popcount(q2 ^ sketches[i, 2]) + popcount(q3 ^ sketches[i, 3])
        total += popcount(q4 ^ sketches[i, 4]) + popcount(q5 ^ sketches[i, 5])
        out[i] = np.uint16(total)


@kernel(_jit.U64_1, _jit.U64_2, _jit.U8_1, _jit.OUT_U64, _jit.OUT_U16, _jit.OUT_I64)
def _distances(query: Any, sketches: Any, mask: Any, chosen: Any, out: Any, histogram: Any) -> None:
    n = sketches.shape[0]
    masked = mask.size > 0
    outside = np.uint16(histogram.shape[0] - 1)
    total = 0
    for i in range(mask.shape[0]):
        total += mask[i] != 0
    # One way for all blocks: changing between them by each block's count took 5.2 ms
    # where 10 % are allowed, not 3.6.
    few = np.uint16(SPARSE if 16 * total < n else 0)
    for block in range(0, n, LANES):
        first, stop = np.uintp(block), np.uintp(min(block + LANES, n))
        if not masked:
            all_of_block(query, sketches, out, first, stop)
            for i in range(first, stop):
                histogram[np.uintp(out[i])] += 1
            continue
        allowed = np.uint16(0)
        for i in range(first, stop):
            allowed += np.uint16(mask[i] != 0)
        if allowed > few:
            all_of_block(query, sketches, out, first, stop)
            # No branch on the mask: at one half it would be guessed wrong every other time, 6 ms against 2.7.
            for i in range(first, stop):
                if mask[i] == 0:
                    out[i] = np.uint16(65535)
            for i in range(first, stop):
                histogram[np.uintp(min(out[i], outside))] += 1
            continue
        for i in range(first, stop):
            out[i] = np.uint16(65535)
        if allowed:
            found = np.uintp(0)
            for i in range(first, stop):
                chosen[found] = i
                found += np.uintp(mask[i] != 0)
            for at in range(np.uintp(0), found):
                row = np.uintp(chosen[at])
                out[row] = distance(query, sketches, row)
                histogram[np.uintp(out[row])] += 1
    histogram[np.uintp(outside)] = 0


@kernel(_jit.U16_1, _jit.I64_1, _jit.OUT_I64, _jit.OUT_I64)
def _select(distances: Any, histogram: Any, position: Any, rows: Any) -> None:
    """A counting sort of the distances up to the limit that the m-th nearest sets."""
    m = rows.shape[0]
    total = 0
    limit = 0
    for value in range(histogram.shape[0]):
        position[value] = total
        total += histogram[value]
        limit = value
        if total >= m:
            break
    n = distances.shape[0]
    highest = np.uint16(limit)
    for first in range(0, n, LANES):
        stop = min(first + LANES, n)
        near = np.uint16(0)
        for i in range(np.uintp(first), np.uintp(stop)):
            near += np.uint16(distances[i] <= highest)
        if near:
            for i in range(np.uintp(first), np.uintp(stop)):
                value = distances[i]
                if value <= highest and position[value] < m:
                    rows[position[value]] = i
                    position[value] += 1
