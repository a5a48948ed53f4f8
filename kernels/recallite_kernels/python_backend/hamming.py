"""Sketches in NumPy: one bit per component, and the nearest by Hamming distance."""

from __future__ import annotations

import numpy as np

from recallite_kernels.contract import F32, I64, LANES, U8, U16, U64

BLOCKS = 1024  # read at a time: of 384 dimensions 0.8 MB; a quarter of it took a third longer
SPARSE = 6  # if fewer rows than one in this number are wanted, each is measured alone
WORDS_A_BYTE = 3  # of 64 bits each, that one byte can count
WORD_LANES = 8  # bytes that are added as one number


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
    count, some = stop - start, allowed[start:stop]
    first, last = start // LANES, -(-stop // LANES)
    if listed and count:
        least, most = int(some.min()), int(some.max())
        if least < 0 or most >= len(sketches) * LANES:
            return None
        first, last = least // LANES, most // LANES + 1
    size = min(size, count)
    rows, nearest = np.empty((len(queries), size), np.int64), np.empty((len(queries), size), np.uint16)
    for place, query in enumerate(queries):
        if not listed:
            distances = _of_blocks(query, sketches[first:last])[start - first * LANES : stop - first * LANES]
        elif (last - first) * LANES <= SPARSE * count:
            distances = _of_blocks(query, sketches[first:last]).take(some - first * LANES)
        else:
            distances = bit_count(sketches[some // LANES, :, some % LANES] ^ query).sum(axis=1, dtype=np.uint16)
        if size < count:
            at = np.flatnonzero(distances <= np.partition(distances, max(size - 1, 0))[max(size - 1, 0)])
            at = at.take(distances.take(at).argsort(kind="stable")[:size])
        else:
            at = distances.argsort(kind="stable")
        rows[place] = some.take(at) if listed else at + start
        nearest[place] = distances.take(at)
    return rows, nearest


def _of_blocks(query: U64, blocks: U64) -> U16:
    """The distances of all rows of some blocks."""
    many, words = blocks.shape[0], blocks.shape[1]
    # The query beside itself for each row, so that NumPy runs through a whole block at once.
    beside, flat = np.repeat(query, LANES), blocks.reshape(many, words * LANES)
    differing = np.empty((min(many, BLOCKS), words * LANES), np.uint64)
    distances = np.empty((many, LANES), np.uint16)
    for first in range(0, many, BLOCKS):
        part = distances[first : first + BLOCKS]
        np.bitwise_xor(flat[first : first + BLOCKS], beside, out=differing[: len(part)])
        _add_words(bit_count(differing[: len(part)]).reshape(len(part), words, LANES), part)
    return distances.ravel()


def _add_words(counts: U8, distances: U16) -> None:
    """Write the sums of the bits of each row's words; bytes of 8 rows are added as one number, a third of the time."""
    numbers = counts.view(np.uint64)
    summed = np.empty((len(counts), LANES // WORD_LANES), np.uint64)
    for first in range(0, counts.shape[1], WORDS_A_BYTE):
        for half in range(LANES // WORD_LANES):
            sums = summed[:, half]
            sums[:] = numbers[:, first, half]
            for word in range(first + 1, min(first + WORDS_A_BYTE, counts.shape[1])):
                sums += numbers[:, word, half]
        if first:
            distances += summed.view(np.uint8)
        else:
            distances[:] = summed.view(np.uint8)


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
