"""Lists of ascending numbers, JIT: bytes are written and read one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.contract import I32, I64, U8
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._jit import kernel

_GREATEST = 2**31 - 1
_MOST_BYTES = 5


def pack_ascending(numbers: I32, offsets: I64) -> tuple[U8, I64] | None:
    out, ends = np.empty(_MOST_BYTES * len(numbers), np.uint8), np.zeros(len(offsets), np.int64)
    if not _pack_ascending.call(numbers, offsets, out, ends):
        return None
    return out[: ends[-1]].copy(), ends


@kernel(_jit.I32_1, _jit.I64_1, _jit.OUT_U8, _jit.OUT_I64, returns=_jit.I64)
def _pack_ascending(numbers: Any, offsets: Any, out: Any, ends: Any) -> Any:
    size = 0
    for row in range(offsets.shape[0] - 1):
        before = 0
        for at in range(np.uintp(offsets[row]), np.uintp(offsets[row + 1])):
            number = np.int64(numbers[at])
            left = number - before
            if left < 0:
                return 0
            before = number
            while left > 127:
                out[np.uintp(size)] = left & 127 | 128
                left >>= 7
                size += 1
            out[np.uintp(size)] = left
            size += 1
        ends[row + 1] = size
    return 1


def unpack_ascending(packed: U8, offsets: I64) -> I32 | None:
    out = np.empty(offsets[-1], np.int32)
    return out if _unpack_ascending.call(packed, offsets, out) else None


@kernel(_jit.U8_1, _jit.I64_1, _jit.OUT_I32, returns=_jit.I64)
def _unpack_ascending(packed: Any, offsets: Any, out: Any) -> Any:
    place, size = 0, packed.shape[0]
    for row in range(offsets.shape[0] - 1):
        number = 0
        for at in range(np.uintp(offsets[row]), np.uintp(offsets[row + 1])):
            shift, byte = 0, 128
            while byte >= 128:
                if place == size or shift == 7 * _MOST_BYTES:
                    return 0
                byte = np.int64(packed[np.uintp(place)])
                number += (byte & 127) << shift
                place += 1
                shift += 7
            if number > _GREATEST:
                return 0
            out[at] = number
    return np.int64(place == size)
