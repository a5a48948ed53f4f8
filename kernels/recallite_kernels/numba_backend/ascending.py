"""Lists of ascending numbers, JIT."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.contract import GREATEST, I32, I64, STEP, U16
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._jit import kernel


def unpack_ascending(packed: U16, offsets: I64) -> I32 | None:
    out = np.empty(offsets[-1], np.int32)
    return out if _unpack_ascending.call(packed, offsets, out) else None


@kernel(_jit.U16_1, _jit.I64_1, _jit.OUT_I32, returns=_jit.I64)
def _unpack_ascending(packed: Any, offsets: Any, out: Any) -> Any:
    place, size = np.uintp(0), np.uintp(packed.shape[0])
    for row in range(offsets.shape[0] - 1):
        number = 0
        for at in range(np.uintp(offsets[row]), np.uintp(offsets[row + 1])):
            left: Any = 0
            while left == 0:
                if place >= size:
                    return 0
                left = np.int64(packed[place])
                place += np.uintp(1)
                number += left if left else STEP
            if number > GREATEST:
                return 0
            out[at] = number
    return np.int64(place == size)
