"""Lists of ascending numbers in NumPy: one sum over all differences."""

from __future__ import annotations

import numpy as np

from recallite_kernels.contract import GREATEST, I32, I64, STEP, U16


def unpack_ascending(packed: U16, offsets: I64) -> I32 | None:
    lengths = np.diff(offsets)
    # So short a list has no number of 2^31, and what the sum over all loses above 32 bits cancels in a difference.
    if len(packed) == offsets[-1] and packed.all() and lengths.max(initial=0) <= GREATEST // STEP:
        totals = np.zeros(len(packed) + 1, np.int32)
        np.cumsum(packed, dtype=np.int32, out=totals[1:])
        return totals[1:] - np.repeat(totals[offsets[:-1]], lengths)
    ended = packed != 0
    if ended.sum() != offsets[-1] or (packed.size and not ended[-1]):
        return None
    sums = np.concatenate([[0], np.cumsum(np.where(ended, packed, STEP), dtype=np.int64)[ended]])
    numbers = sums[1:] - np.repeat(sums[offsets[:-1]], lengths)
    return None if numbers.max(initial=0) > GREATEST else numbers.astype(np.int32)
