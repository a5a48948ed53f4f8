"""Words in Python: bytes are split and counted by its own types."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from recallite_kernels.contract import I8, I32, I64, U8
from recallite_kernels.words import FACTOR, FIRST, MOST, NAME, TAG_ONLY


def distinct_chunks(texts: U8, offsets: I64, folds: U8) -> tuple[U8, I32, I64]:
    folded = texts.tobytes().translate(folds.tobytes())
    numbers: dict[bytes, int] = {}
    listed: list[int] = []
    ends = [0]
    for start, stop in pairwise(offsets.tolist()):
        chunks = folded[start:stop].replace(b", ", b" ").replace(b". ", b" ").split(b" ")
        listed += [numbers.setdefault(chunk, len(numbers)) for chunk in chunks if chunk]
        ends.append(len(listed))
    joined = b"".join([chunk + b" " for chunk in numbers])
    return np.frombuffer(joined, np.uint8), np.array(listed, np.int32), np.array(ends, np.int64)


def sum_ngrams(characters: I32, offsets: I64, weights: I8, shortest: int, longest: int) -> I64:
    drop = np.uint64(65 - len(weights).bit_length())
    ends = np.repeat(offsets[1:], np.diff(offsets))
    units, places = characters.astype(np.uint64), np.arange(len(characters))
    codes = np.full(len(characters), FIRST, np.uint64)
    out = np.zeros((len(offsets) - 1, weights.shape[1]), np.int64)
    for size in range(1, longest + 1):
        codes = (codes[: max(len(characters) - size + 1, 0)] ^ units[size - 1 :]) * np.uint64(FACTOR)
        if size >= shortest:
            whole = (places + size <= ends)[: len(codes)]
            sums = np.zeros((len(characters) + 1, weights.shape[1]), np.int64)
            np.cumsum(weights[codes >> drop] * whole[:, None], axis=0, out=sums[1 : len(codes) + 1])
            sums[len(codes) + 1 :] = sums[len(codes)]
            out += sums[offsets[1:]] - sums[offsets[:-1]]
    return out


def count_words(
    entries: I32, offsets: I64, words: I32, word_offsets: I64, flags: U8, vocabulary: int
) -> tuple[I32, U8, I64]:
    listed = words.tolist()
    words_of = [listed[start:stop] for start, stop in pairwise(word_offsets.tolist())]
    flag_of, every = flags.tolist(), entries.tolist()
    places: list[int] = []
    counts: list[int] = []
    ends = [0]
    for start, stop in pairwise(offsets.tolist()):
        written: dict[int, int] = {}
        tagged: set[int] = set()
        text_words: set[int] = set()
        names: set[int] = set()
        for entry in every[start:stop]:
            flag = flag_of[entry]
            for word in words_of[entry]:
                written[word] = written.get(word, 0) + (flag != NAME)
            if flag:
                (names if flag == NAME else tagged).update(words_of[entry])
            else:
                text_words.update(words_of[entry])
        tagged -= text_words
        places += written
        counts += [
            min(count, MOST) | (TAG_ONLY if word in tagged else 0) | (NAME if word in names else 0)
            for word, count in written.items()
        ]
        ends.append(len(places))
    return np.array(places, np.int32), np.array(counts, np.uint8), np.array(ends, np.int64)
