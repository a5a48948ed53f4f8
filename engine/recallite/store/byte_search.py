"""Searching a stream for many byte sequences at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection

import numpy as np

# What is compared at every place of the file.
LEAST_BYTES = 8
_CHUNK_BYTES = 1 << 22
# Fibonacci hashing: the highest 20 bits of a product are well mixed.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(44)


def found_in(read: Callable[[int], bytes], sought: Collection[bytes]) -> set[bytes]:
    """The sequences, each of at least LEAST_BYTES bytes, that occur in the stream that `read` reads.

    The last eight bytes of each are looked for at every place, through a table of 2^20 bits, and what has them is
    compared in full. The first eight of ids are a time, which many share.
    """
    if not sought:
        return set()
    by_end: dict[int, set[bytes]] = defaultdict(set)
    for sequence in sought:
        by_end[int.from_bytes(sequence[-LEAST_BYTES:], "little")].add(sequence)
    ends = np.array(sorted(by_end), dtype=np.uint64)
    slots = np.zeros(1 << 20, dtype=np.bool_)
    slots[ends * _FACTOR >> _SHIFT] = True
    overlap = max(map(len, sought)) - 1
    data = b""
    while chunk := read(_CHUNK_BYTES):
        data = data[-overlap:] + chunk
        for offset in range(min(LEAST_BYTES, len(data) - LEAST_BYTES + 1)):
            words = np.frombuffer(data, dtype="<u8", offset=offset, count=(len(data) - offset) // LEAST_BYTES)
            near = np.flatnonzero(slots[words * _FACTOR >> _SHIFT])
            for place in near[np.isin(words[near], ends)].tolist():
                left = by_end[int(words[place])]
                if left:
                    stop = offset + LEAST_BYTES * (place + 1)
                    left -= {sequence for sequence in left if data.endswith(sequence, 0, stop)}
    return set(sought).difference(*by_end.values())
