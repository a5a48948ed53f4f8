"""Pooling, JIT."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.contract import F32, I8, I64
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._jit import kernel


def pool_tokens(codes: I8, scales: F32, token_ids: I64, offsets: I64) -> F32:
    out = np.zeros((len(offsets) - 1, codes.shape[1]), np.float32)
    _pool_tokens.call(codes, scales, token_ids, offsets, np.empty(codes.shape[1]), out)
    return out


@kernel(_jit.I8_2, _jit.F32_1, _jit.I64_1, _jit.I64_1, _jit.OUT_F64, _jit.OUT_F32_2, fast=True)
def _pool_tokens(codes: Any, scales: Any, token_ids: Any, offsets: Any, sums: Any, out: Any) -> None:
    d = codes.shape[1]
    for i in range(out.shape[0]):
        sums[:] = 0.0
        for t in range(np.uintp(offsets[i]), np.uintp(offsets[i + 1])):
            token = np.uintp(token_ids[t])
            scale = np.float64(scales[token])
            for j in range(d):
                sums[j] += scale * np.float64(codes[token, j])
        squares = 0.0
        for j in range(d):
            squares += sums[j] * sums[j]
        if squares != 0.0:
            inverse = 1.0 / np.sqrt(squares)
            for j in range(d):
                out[i, j] = np.float32(sums[j] * inverse)
