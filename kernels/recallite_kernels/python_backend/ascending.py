"""Lists of ascending numbers in NumPy: the numbers of one byte first, then the next byte of those that have one."""

from __future__ import annotations

import numpy as np

from recallite_kernels.contract import I32, I64, U8

_GREATEST = 2**31 - 1
_MOST_BYTES = 5


def pack_ascending(numbers: I32, offsets: I64) -> tuple[U8, I64] | None:
    left = np.diff(numbers.astype(np.int64), prepend=0)
    begins = offsets[:-1][offsets[:-1] < offsets[1:]]
    left[begins] = numbers[begins]
    if left.size and left.min() < 0:
        return None
    sizes = 1 + sum((left >= 1 << 7 * more).astype(np.int64) for more in range(1, _MOST_BYTES))
    ends = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(ends[-1], np.uint8)
    at = ends[:-1]
    while left.size:
        more = left > 127
        out[at] = left & 127 | more.astype(np.int64) << 7
        left, at = left[more] >> 7, at[more] + 1
    return out, ends[offsets]


def unpack_ascending(packed: U8, offsets: I64) -> I32 | None:
    ends = np.flatnonzero(packed < 128)
    if len(ends) != offsets[-1] or (packed.size and packed[-1] > 127):
        return None
    numbers = packed[ends].astype(np.int64)
    sizes = np.diff(ends, prepend=-1)
    if sizes.size and sizes.max() > _MOST_BYTES:
        return None
    longer = np.flatnonzero(sizes > 1)
    for before in range(1, _MOST_BYTES):
        longer = longer[sizes[longer] > before]
        numbers[longer] = numbers[longer] << 7 | packed[ends[longer] - before] & 127
    totals = np.cumsum(numbers)
    begins, lengths = offsets[:-1], np.diff(offsets)
    own = lengths > 0
    totals -= np.repeat((totals[begins[own]] - numbers[begins[own]]), lengths[own])
    return None if totals.size and totals.max() > _GREATEST else totals.astype(np.int32)
