"""Sketches in NumPy: one bit per component, and the nearest by Hamming distance."""

from __future__ import annotations

import numpy as np

from recollect_kernels.contract import F32, I64, LANES, U8, U16, U64

BLOCK_ROWS = 8192


def sketch(vectors: F32) -> U64 | None:
    if not np.isfinite(vectors).all():
        return None
    n, d = vectors.shape
    words = -(-d // 64)
    packed = np.zeros((n, words * 8), np.uint8)
    packed[:, : -(-d // 8)] = np.packbits(vectors > 0, axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False).reshape(n, words)


def hamming_shortlist(
    queries: U64, sketches: U64, allowed: I64, listed: bool, start: int, stop: int, size: int
) -> tuple[I64, U16] | None:
    some = allowed[start:stop]
    if listed and some.size and not 0 <= int(some.min()) <= int(some.max()) < len(sketches) * LANES:
        return None
    size = min(size, stop - start)
    rows, nearest = np.empty((len(queries), size), np.int64), np.empty((len(queries), size), np.uint16)
    distances = np.empty(stop - start, np.uint16)
    for place, query in enumerate(queries):
        for first in range(start, stop, BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, stop)
            own = distances[first - start : last - start]
            if listed:
                each = allowed[first:last]
                words = sketches[each // LANES, :, each % LANES]
                own[:] = bit_count(words ^ query).sum(axis=1, dtype=np.uint16)
            else:
                begin = first // LANES
                words = sketches[begin : -(-last // LANES)]
                counts = bit_count(words ^ query[:, None]).sum(axis=1, dtype=np.uint16)
                own[:] = counts.ravel()[first - begin * LANES : last - begin * LANES]
        # Sorted by distance and place in one key; only the nearest are sorted.
        key = distances.astype(np.int64) << 32 | np.arange(stop - start)
        chosen = np.sort(np.partition(key, size - 1)[:size] if 0 < size < len(key) else key)
        at = chosen & 0xFFFFFFFF
        rows[place] = allowed[at + start] if listed else at + start
        nearest[place] = distances[at]
    return rows, nearest


def bit_count(words: U64) -> U8:
    if hasattr(np, "bitwise_count"):
        counts: U8 = np.bitwise_count(words)
        return counts
    # numpy 1.26 has no popcount: a table of 65,536 bytes, read four times per word.
    parts: U8 = _sixteen_bits()[words.view(np.uint16)].reshape(*words.shape, 4)
    summed: U8 = parts.sum(axis=-1, dtype=np.uint8)
    return summed


_TABLE: list[U8] = []


def _sixteen_bits() -> U8:
    if not _TABLE:
        byte = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)
        _TABLE.append((byte[:, None] + byte[None, :]).ravel())
    return _TABLE[0]
