"""Words in Python: bytes are split and counted by its own types."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from recallite_kernels.contract import I32, I64, U8, U64
from recallite_kernels.words import MOST, NAME, TAG_ONLY


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


def find_strings(texts: U8, offsets: I64, strings: U8, string_offsets: I64, marks: U64) -> U64:
    whole, every = texts.tobytes(), strings.tobytes()
    out = np.zeros(len(offsets) - 1, np.uint64)
    for (start, stop), mark in zip(pairwise(string_offsets.tolist()), marks, strict=True):
        if start == stop:
            out |= mark
            continue
        string, places = every[start:stop], []
        place = whole.find(string)
        while place >= 0:
            places.append(place)
            place = whole.find(string, place + 1)
        if places:
            begins = np.array(places)
            rows = np.searchsorted(offsets, begins, side="right") - 1
            out[rows[begins + len(string) <= offsets[rows + 1]]] |= mark
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
