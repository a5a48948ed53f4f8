"""Term lists as `record_terms` has them: the numbers of a record's words, ascending and packed, and a byte for each.

Packed numbers take two bytes each: see `recallite_kernels.pack_ascending`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import recallite_kernels as kernels
from recallite.errors import StoreCorrupt

CHANGED = (
    "the words of a record are not what was stored: another program, or the disk, changed them. Run: recallite rebuild"
)


def packed_lists(
    numbers: NDArray[np.int32], counts: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> list[tuple[bytes, bytes]]:
    """The values `terms` and `counts` of records: record i has numbers[offsets[i]:offsets[i + 1]] in any order."""
    # By record, then by number, in one sort.
    keys = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64) << 40, np.diff(offsets))
    keys |= numbers.astype(np.int64) << 8 | counts
    keys.sort()
    packed, ends = kernels.pack_ascending((keys >> 8 & 0x7FFFFFFF).astype(np.int32), offsets)
    terms, sorted_counts = packed.astype("<u2", copy=False).tobytes(), keys.astype(np.uint8).tobytes()
    return [
        (terms[2 * begin : 2 * end], sorted_counts[start:stop])
        for (begin, end), (start, stop) in zip(pairwise(ends.tolist()), pairwise(offsets.tolist()), strict=True)
    ]


def unpacked(terms: bytes, offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Unpack term lists that stand one behind the other, given the offsets of their numbers."""
    try:
        return kernels.unpack_ascending(np.frombuffer(terms, "<u2"), offsets)
    except ValueError:  # an odd number of bytes, or KernelError
        raise StoreCorrupt(CHANGED) from None


def numbers_in(lists: Sequence[bytes]) -> NDArray[np.int32]:
    """The numbers in values of `terms`, each once."""
    packed = b"".join(lists)
    if any(len(numbers) % 2 for numbers in lists):
        raise StoreCorrupt(CHANGED)
    ends = np.cumsum([0, *(len(numbers) // 2 for numbers in lists)])
    # A 0 is only part of a number.
    ended = np.concatenate([[0], np.cumsum(np.frombuffer(packed, "<u2") != 0)])
    return np.unique(unpacked(packed, ended[ends]))
