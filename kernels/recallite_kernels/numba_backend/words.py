"""Words, JIT."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from recallite_kernels.contract import I8, I32, I64, U8
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._jit import exact, kernel
from recallite_kernels.words import FACTOR, FIRST, MOST, NAME, SEPARATOR, TAG_ONLY

_COMMA, _STOP = 44, 46
_FEWEST_SLOTS = 1 << 10
# Of FNV-1a. Each process begins with another number, so that nobody can choose chunks that share a slot.
_PRIME = 1099511628211
_SEED = int.from_bytes(os.urandom(8), "little") >> 1
_NUMBER = (1 << 32) - 1


def distinct_chunks(texts: U8, offsets: I64, folds: U8) -> tuple[U8, I32, I64]:
    most = (len(texts) + len(offsets)) // 2
    numbers, ends = np.empty(most, np.int32), np.zeros(len(offsets), np.int64)
    chunks, starts = np.empty(len(texts) + most, np.uint8), np.empty(most + 1, np.int64)
    size = max(_FEWEST_SLOTS, 1 << (len(texts) // 16).bit_length())  # texts have a distinct chunk in some 40 bytes
    while True:
        slots = np.full(size, -1, np.int64)
        count = _distinct_chunks.call(texts, offsets, folds, _SEED, slots, chunks, starts, numbers, ends)
        if count >= 0:
            return chunks[: starts[count]].copy(), numbers[: ends[-1]].copy(), ends
        size *= 4


@kernel(
    _jit.U8_1, _jit.I64_1, _jit.U8_1, _jit.I64, _jit.OUT_I64, _jit.OUT_U8, _jit.OUT_I64, _jit.OUT_I32, _jit.OUT_I64,
    returns=_jit.I64,
)  # fmt: skip
def _distinct_chunks(
    texts: Any, offsets: Any, folds: Any, seed: Any, slots: Any, chunks: Any, starts: Any, numbers: Any, ends: Any
) -> Any:
    """Return the number of chunks; -1 if they fill more than half of the slots."""
    count, total = 0, 0
    starts[0] = 0
    for text in range(offsets.shape[0] - 1):
        place, stop = offsets[text], offsets[text + 1]
        while place < stop:
            if folds[np.uintp(texts[np.uintp(place)])] == SEPARATOR:
                place += 1
                continue
            begin = place
            while place < stop and folds[np.uintp(texts[np.uintp(place)])] != SEPARATOR:
                place += 1
            end = place
            if place < stop:
                if folds[np.uintp(texts[np.uintp(end - 1)])] == _COMMA:
                    end -= 1
                if end > begin and folds[np.uintp(texts[np.uintp(end - 1)])] == _STOP:
                    end -= 1
                if end == begin:
                    continue
            number = number_of(texts, begin, end, folds, seed, slots, chunks, starts, count)
            if number == count:
                count += 1
                if 2 * count > slots.shape[0]:
                    return -1
            numbers[total] = number
            total += 1
        ends[text + 1] = total
    return count


@exact
def number_of(
    texts: Any, begin: Any, end: Any, folds: Any, seed: Any, slots: Any, chunks: Any, starts: Any, count: Any
) -> Any:
    """Return the number of a chunk; one that is not among the `count` in the table is added as the next."""
    first = starts[count]
    code = np.uint64(seed)
    for at in range(end - begin):  # where it would stand, if it is new
        byte = folds[np.uintp(texts[np.uintp(begin + at)])]
        chunks[np.uintp(first + at)] = byte
        code = (code ^ np.uint64(byte)) * np.uint64(_PRIME)
    code ^= code >> np.uint64(32)
    mask = slots.shape[0] - 1
    slot = np.int64(code) & mask
    high = np.int64(code >> np.uint64(33)) << 32
    while slots[np.uintp(slot)] >= 0:
        value = slots[np.uintp(slot)]
        if (value & ~_NUMBER) == high:
            number = value & _NUMBER
            start = starts[np.uintp(number)]
            size = starts[np.uintp(number + 1)] - start - 1
            if size == end - begin:
                at = 0
                while at < size and chunks[np.uintp(start + at)] == chunks[np.uintp(first + at)]:
                    at += 1
                if at == size:
                    return number
        slot = (slot + 1) & mask
    slots[np.uintp(slot)] = high | count
    chunks[np.uintp(first + end - begin)] = SEPARATOR
    starts[np.uintp(count + 1)] = first + end - begin + 1
    return count


def sum_ngrams(characters: I32, offsets: I64, weights: I8, shortest: int, longest: int) -> I64:
    out = np.zeros((len(offsets) - 1, weights.shape[1]), np.int64)
    _sum_ngrams.call(characters, offsets, weights, 65 - len(weights).bit_length(), shortest, longest, out)
    return out


@kernel(_jit.I32_1, _jit.I64_1, _jit.I8_2, _jit.I64, _jit.I64, _jit.I64, _jit.OUT_I64_2)
def _sum_ngrams(characters: Any, offsets: Any, weights: Any, drop: Any, shortest: Any, longest: Any, out: Any) -> None:
    for text in range(out.shape[0]):
        stop = offsets[text + 1]
        for begin in range(offsets[text], stop):
            code = np.uint64(FIRST)
            for at in range(begin, min(begin + longest, stop)):
                code = (code ^ np.uint64(characters[np.uintp(at)])) * np.uint64(FACTOR)
                if at - begin + 1 >= shortest:
                    row = np.uintp(code >> np.uint64(drop))
                    for kind in range(out.shape[1]):
                        out[text, kind] += weights[row, kind]


def count_words(
    entries: I32, offsets: I64, words: I32, word_offsets: I64, flags: U8, vocabulary: int
) -> tuple[I32, U8, I64]:
    most = int(np.diff(word_offsets)[entries].sum())
    places, counts = np.empty(most, np.int32), np.empty(most, np.uint8)
    ends = np.zeros(len(offsets), np.int64)
    seen = np.full(vocabulary, -1, np.int64)
    _count_words.call(entries, offsets, words, word_offsets, flags, seen, places, counts, ends)
    return places[: ends[-1]].copy(), counts[: ends[-1]].copy(), ends


@kernel(
    _jit.I32_1, _jit.I64_1, _jit.I32_1, _jit.I64_1, _jit.U8_1, _jit.OUT_I64, _jit.OUT_I32, _jit.OUT_U8, _jit.OUT_I64
)
def _count_words(
    entries: Any, offsets: Any, words: Any, word_offsets: Any, flags: Any, seen: Any, places: Any, counts: Any,
    ends: Any,
) -> None:  # fmt: skip
    total = 0
    for record in range(offsets.shape[0] - 1):
        begin = total
        for at in range(np.uintp(offsets[record]), np.uintp(offsets[record + 1])):
            entry = np.uintp(entries[at])
            flag = flags[entry]
            for which in range(np.uintp(word_offsets[entry]), np.uintp(word_offsets[entry + np.uintp(1)])):
                word = np.uintp(words[which])
                place = seen[word]
                if place < begin:
                    place = total
                    seen[word] = place
                    places[np.uintp(place)] = word
                    counts[np.uintp(place)] = TAG_ONLY
                    total += 1
                byte = counts[np.uintp(place)]
                if flag == NAME:
                    byte |= NAME
                else:
                    if (byte & MOST) < MOST:
                        byte += 1
                    if flag == 0:
                        byte &= 255 - TAG_ONLY
                counts[np.uintp(place)] = byte
        for place in range(begin, total):
            if (counts[np.uintp(place)] & MOST) == 0:  # a name only
                counts[np.uintp(place)] = NAME
        ends[record + 1] = total
