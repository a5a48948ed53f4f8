"""MaxSim over 1-bit codes, JIT: popcounts, the least distance of each query token kept in a register."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.contract import F32, I64, U64
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import helper, kernel
from recollect_kernels.numba_backend.hamming import popcount


def max_sim(query: U64, weights: F32, codes: U64, offsets: I64, dimension: int) -> F32:
    out = np.empty(len(offsets) - 1, np.float32)
    _max_sim.call(query, weights, codes, offsets, dimension, out)
    return out


@helper
def least_distance(query: Any, token: Any, codes: Any, first: Any, stop: Any) -> Any:
    least = np.uint64(65535)
    if query.shape[1] != 6:
        for row in range(first, stop):
            total = np.uint64(0)
            for word in range(query.shape[1]):
                total += popcount(query[token, word] ^ codes[row, word])
            least = min(least, total)
        return least
    # 384 dimensions: unrolled, the query's words in registers.
    q0, q1, q2 = query[token, 0], query[token, 1], query[token, 2]
    q3, q4, q5 = query[token, 3], query[token, 4], query[token, 5]
    for row in range(first, stop):
        total = popcount(q0 ^ codes[row, 0]) + popcount(q1 ^ codes[row, 1]) + popcount(q2 ^ codes[row, 2])
        total += popcount(q3 ^ codes[row, 3]) + popcount(q4 ^ codes[row, 4]) + popcount(q5 ^ codes[row, 5])
        least = min(least, total)
    return least


@kernel(_jit.U64_2, _jit.F32_1, _jit.U64_2, _jit.I64_1, _jit.I64, _jit.OUT_F32)
def _max_sim(query: Any, weights: Any, codes: Any, offsets: Any, dimension: Any, out: Any) -> None:
    for record in range(out.shape[0]):
        first, stop = np.uintp(offsets[record]), np.uintp(offsets[record + 1])
        score = 0.0
        if first < stop:
            for token in range(query.shape[0]):
                distance = np.float64(least_distance(query, token, codes, first, stop))
                score += np.float64(weights[token]) * (1.0 - 2.0 * distance / dimension)
        out[record] = score
