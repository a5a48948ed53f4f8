"""Graph kernels, JIT, in float64 without fastmath."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.contract import F64, I32, I64, U8
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import kernel


def spread(scores: F64, offsets: I64, targets: I64, strengths: F64) -> F64:
    out = np.zeros(len(scores))
    _spread.call(scores, offsets, targets, strengths, out)
    return out


def spread_chain(
    scores: F64, rows: I64, previous: I32, following: I32, mask: U8, near: float, far: float
) -> tuple[F64, I64] | None:
    out, company = np.zeros(len(rows)), np.ones(len(rows), np.int64)
    if not _spread_chain.call(scores, rows, previous, following, mask, near, far, out, company):
        return None
    return out, company


@kernel(_jit.F64_1, _jit.I64_1, _jit.I64_1, _jit.F64_1, _jit.OUT_F64)
def _spread(scores: Any, offsets: Any, targets: Any, strengths: Any, out: Any) -> None:
    for i in range(scores.shape[0]):
        for e in range(np.uintp(offsets[i]), np.uintp(offsets[i + 1])):
            out[i] = max(out[i], strengths[e] * scores[np.uintp(targets[e])])


@kernel(
    _jit.F64_1, _jit.I64_1, _jit.I32_1, _jit.I32_1, _jit.U8_1, _jit.F64, _jit.F64, _jit.OUT_F64, _jit.OUT_I64,
    returns=_jit.I64,
)  # fmt: skip
def _spread_chain(
    scores: Any, rows: Any, previous: Any, following: Any, mask: Any, near: Any, far: Any, out: Any, company: Any
) -> Any:
    m, n = rows.shape[0], previous.shape[0]
    masked = mask.shape[0] > 0
    for i in range(m):
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
                # Neighbours are mostly stored side by side: step away from i before halving.
                low, high, stride = i, i, 1
                if at > rows[i]:
                    while high < m and rows[high] < at:
                        low = high
                        high += stride
                        stride *= 2
                    high = min(high, m)
                else:
                    while low >= 0 and rows[low] > at:
                        high = low
                        low -= stride
                        stride *= 2
                    low = max(low, 0)
                while low < high:
                    middle = (low + high) >> 1
                    if rows[middle] < at:
                        low = middle + 1
                    else:
                        high = middle
                if low < m and rows[low] == at:
                    out[i] = max(out[i], (near if step == 0 else far) * scores[low])
    return 1
