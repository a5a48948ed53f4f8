"""BM25 postings in memory: segments in one buffer, of which the last holds the newest records.

A record's words arrive as numbers and counts and are appended to the tail, which is inverted again into the last
segment. A full tail becomes a segment of its own; segments of similar size merge, up to 2 million postings. This bounds
the time of an append and the number of slices per word: a million records added one by one give about 20 segments.
Scores are computed per query, so an appended index and a rebuilt one give the same scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recallite.index.growable import Growable, IndexPart, check_lengths, check_offsets, check_within
from recallite.store.values import TermBlock
from recallite.system.numerics import kernels
from recallite.text.record_words import MOST, NAME
from recallite.text.vocabulary import share_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from recallite.index.corpus_statistics import CorpusStatistics


# Records are short and similar in length: on LoCoMo, RealMem and SciFact these values equal or beat 1.2 and 0.75.
K1 = 0.9
B = 0.4
# Inverting a tail of this many records takes 0.3 ms.
_TAIL_RECORDS = 256
_LARGEST_MERGE = 2**21


class QueryTerms(NamedTuple):
    """The known words of a query, their numbers int32 and the share of texts in general that contain each, float64."""

    numbers: NDArray[np.int32]
    shares: NDArray[np.float64]

    @classmethod
    def joined(cls, terms: Sequence[QueryTerms]) -> QueryTerms:
        """The known words of several queries."""
        numbers, shares = zip(cls.of({}), *terms, strict=True)
        return cls(np.concatenate(numbers), np.concatenate(shares))

    @classmethod
    def of(cls, words: Mapping[str, int]) -> QueryTerms:
        """Those of words with their numbers."""
        return cls(
            np.array(list(words.values()), dtype=np.int32),
            np.array([share_of(word) for word in words], dtype=np.float64),
        )


class _Segment(NamedTuple):
    """Postings of consecutive rows: `terms` ascending; term i has the buffer's slice starts[i]:starts[i+1]."""

    terms: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def size(self) -> int:
        return int(self.starts[-1] - self.starts[0])


class Slices(NamedTuple):
    """The words of some queries and their postings.

    Query i has the words from word_offsets[i] to word_offsets[i + 1], `idf` by word, and the slices of the buffer from
    slice_offsets[i] on; `words` gives the word of each slice. Slices are ordered by descending IDF, so that equal
    records sum in the same order and tie exactly. `in_vocabulary` is by query word: True where some record of the
    corpus contains it; the others are left out of the other fields.
    """

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    words: NDArray[np.int64]
    slice_offsets: NDArray[np.int64]
    idf: NDArray[np.float32]
    word_offsets: NDArray[np.int64]
    in_vocabulary: NDArray[np.bool_]


class LexicalIndex(IndexPart):
    """Words of rows 0..n-1."""

    def __init__(self) -> None:
        self._rows = Growable(np.int32)
        self._counts = Growable(np.uint8)
        self._lengths = Growable(np.float32)
        # Numbers of the first and the last word of the context, where it is a name; -1 for none. Empty while none is.
        self._speakers = Growable(np.int32, (2,))
        self._segments: list[_Segment] = []
        self._clear_tail()
        # How many postings are final; those of the tail follow while the last segment is the tail's.
        self._sealed = 0
        self._tail_segment = False
        self._live_words = 0.0
        self._spare: list[NDArray[np.float32]] = []

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        segments = sum(segment.terms.nbytes + segment.starts.nbytes for segment in self._segments)
        return segments + super().nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that `restore` needs."""
        return {
            **super().arrays(),
            "terms": np.concatenate([segment.terms for segment in self._segments] or [np.empty(0, dtype=np.int32)]),
            "starts": np.concatenate([segment.starts for segment in self._segments] or [np.empty(0, dtype=np.int64)]),
            "segments": np.array([len(segment.terms) for segment in self._segments], dtype=np.int64),
            "live_words": np.array([self._live_words]),
        }

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave."""
        super().restore(saved)
        sizes = saved["segments"].array
        ends = np.cumsum(sizes)
        terms, starts = saved["terms"].array, saved["starts"].array
        check_lengths(int(sizes.sum()), terms, starts[len(sizes) :])
        self._segments = [
            _Segment(terms[end - size : end], starts[end - size + place : end + place + 1])
            for place, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True))
        ]
        self._tail_first_row = len(self) - (len(self._tail_offsets) - 1)
        self._tail_segment = len(self._tail_offsets) > 1
        self._sealed = int(self._segments[-1].starts[0]) if self._tail_segment else len(self._rows)
        self._live_words = float(saved["live_words"].array[0])

    def check(self, rows: int, vectors: int) -> None:
        """Segments follow one another through the buffer; the rows of each word ascend strictly."""
        postings, words = self._rows.array, len(self._tail_terms)
        check_lengths(rows, self._lengths.array)
        check_lengths(rows if len(self._speakers) else 0, self._speakers.array)
        check_lengths(len(postings), self._counts.array)
        check_lengths(words, self._tail_counts.array)
        check_offsets(self._tail_offsets.array, 0, words)
        check_within(postings, 0, rows)
        begins, end = np.zeros(len(postings) + 1, dtype=np.bool_), 0
        for segment in self._segments:
            check_lengths(len(segment.terms) + 1, segment.starts)
            check_offsets(segment.starts, end, int(segment.starts[-1]))
            end = int(segment.starts[-1])
            begins[segment.starts] = True
        if end != len(postings) or not ((postings[1:] > postings[:-1]) | begins[1:-1]).all():
            raise ValueError("postings of a word are not in the order of their rows")

    def extend(self, block: TermBlock, live: NDArray[np.uint8]) -> None:
        """Append the words of the next rows; `live` marks those that count in the statistics."""
        self.append(block, live)
        self.invert()

    def reserve(self, rows: int, postings: int) -> None:
        """Reserve capacity for so many rows and about so many postings, all of them in the tail."""
        self._lengths.reserve(rows)
        self._tail_offsets.reserve(rows + 1)
        self._tail_terms.reserve(postings)
        self._tail_counts.reserve(postings)

    @property
    def speakers(self) -> NDArray[np.int32]:
        """The words of each row's context where that is a name, int32 (rows, 2); -1 for none, empty without names."""
        return self._speakers.array

    def append(self, block: TermBlock, live: NDArray[np.uint8]) -> None:
        """Append the words of the next rows to the tail; they are found when `invert` has been called."""
        sizes = np.diff(block.offsets)
        held = np.flatnonzero(sizes)
        counts = block.counts & np.uint8(MOST)
        lengths = np.zeros(len(sizes), dtype=np.float32)
        if len(held):
            lengths[held] = np.add.reduceat(counts, block.offsets[held], dtype=np.int64)
        named = np.flatnonzero(block.counts & NAME)
        if len(named) and not len(self._speakers):
            self._speakers.extend_with(-1, len(self))
        if len(named) or len(self._speakers):
            self._speakers.extend(_speakers(block, named))
        self._lengths.extend(lengths)
        self._live_words += float(lengths[live[: len(lengths)] == 1].sum(dtype=np.float64))
        self._tail_terms.extend(block.terms)
        self._tail_counts.extend(counts)
        self._tail_offsets.extend(block.offsets[1:] + self._tail_offsets.array[-1])

    def discount(self, rows: NDArray[np.int64]) -> None:
        """Remove deleted rows from the statistics."""
        self._live_words -= float(self._lengths.array[rows].sum(dtype=np.float64))

    @property
    def live_words(self) -> float:
        """Words of all rows that count in the statistics."""
        return self._live_words

    @property
    def lengths(self) -> NDArray[np.float32]:
        """Words of each row."""
        return self._lengths.array

    def slices(self, terms: Sequence[QueryTerms], statistics: CorpusStatistics) -> Slices:
        """The slices of the words of each query, and their IDF."""
        asked, shares = terms[0] if len(terms) == 1 else QueryTerms.joined(terms)
        word_offsets = np.array([0, *accumulate(len(each.numbers) for each in terms)], dtype=np.int64)
        starts, stops, owners = [], [], []
        for segment in self._segments:
            if not len(segment.terms):
                continue
            places = segment.terms.searchsorted(asked)
            held = (segment.terms.take(places, mode="clip") == asked).nonzero()[0]
            places = places[held]
            starts.append(segment.starts[places])
            stops.append(segment.starts[places + 1])
            owners.append(held)
        begin, end, words = _joined(starts), _joined(stops), _joined(owners)
        frequency = statistics.frequencies(asked, self._rows.array, begin, end, words)
        in_vocabulary: NDArray[np.bool_] = frequency >= 0
        if not in_vocabulary.all():
            before = np.insert(np.cumsum(in_vocabulary, dtype=np.int64), 0, 0)
            kept = in_vocabulary[words]
            begin, end, words = begin[kept], end[kept], before[words[kept]]
            frequency, word_offsets = frequency[in_vocabulary], before[word_offsets]
            shares = shares[in_vocabulary]
        idf = statistics.idf(frequency, shares).astype(np.float32)
        if len(terms) == 1:
            order = np.lexsort((words, -idf[words]))
            slice_offsets = np.array([0, len(words)], dtype=np.int64)
        else:
            query = word_offsets.searchsorted(words, side="right")
            order = np.lexsort((words, -idf[words], query))
            slice_offsets = query[order].searchsorted(np.arange(1, len(terms) + 2))
        return Slices(begin[order], end[order], words[order], slice_offsets, idf, word_offsets, in_vocabulary)

    def best(
        self, slices: Slices, statistics: CorpusStatistics, mask: NDArray[np.uint8] | None, wanted: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """The `wanted` rows with the best BM25 above 0 whose `mask` is 1, best first, per query.

        Rows (q, wanted), their scores, and how many of them count (q,).
        """
        scratch = self._scratch()
        found = kernels.bm25_top_k(self.postings(slices, statistics), mask, scratch, wanted, checked=True)
        self._spare.append(scratch)
        return found

    def word_slices(self, slices: Slices) -> kernels.WordSlices:
        """What `kernels.assess` and `kernels.rank_by_forest` take of the words of queries."""
        return kernels.WordSlices(
            self._rows.array, slices.starts, slices.stops, slices.words, slices.slice_offsets, slices.idf,
            slices.word_offsets,
        )  # fmt: skip

    def postings(self, slices: Slices, statistics: CorpusStatistics) -> kernels.Postings:
        """What every BM25 kernel takes."""
        return kernels.Postings(
            self._rows.array,
            self._counts.array,
            slices.starts,
            slices.stops,
            slices.idf[slices.words],
            slices.slice_offsets,
            self._lengths.array,
            statistics.average_length,
            K1,
            B,
        )

    def _scratch(self) -> NDArray[np.float32]:
        """Zeros for one query at a time, float32 (rows,); returned to the pool when all are zero again."""
        while self._spare:
            scratch = self._spare.pop()
            if len(scratch) == len(self):
                return scratch
        return np.zeros(len(self), dtype=np.float32)

    def invert(self) -> None:
        """Make the tail the last segment. A full one becomes final, and segments of similar size merge."""
        if self._segments and len(self._tail_offsets) > 1 and self._tail_segment:
            self._segments.pop()
        self._rows.truncate(self._sealed)
        self._counts.truncate(self._sealed)
        out = self._rows.claim(len(self._tail_terms)), self._counts.claim(len(self._tail_terms))
        terms, starts, _, _ = kernels.invert(
            self._tail_terms.array, self._tail_counts.array, self._tail_offsets.array, self._tail_first_row, out
        )
        self._segments.append(_Segment(terms, starts + self._sealed))
        self._tail_segment = len(self._tail_offsets) <= _TAIL_RECORDS
        if self._tail_segment:
            return
        self._sealed = len(self._rows)
        self._clear_tail()
        while len(self._segments) > 1 and self._segments[-2].size <= 2 * self._segments[-1].size:
            if self._segments[-2].size + self._segments[-1].size > _LARGEST_MERGE:
                break
            self._merge_last_two()

    def _clear_tail(self) -> None:
        """An empty tail after all rows; frees the memory of the old one."""
        self._tail_terms = Growable(np.int32)
        self._tail_counts = Growable(np.uint8)
        self._tail_offsets = Growable(np.int64)
        self._tail_offsets.extend(np.zeros(1, dtype=np.int64))
        self._tail_first_row = len(self)

    def _merge_last_two(self) -> None:
        """Merge the last two segments in place: they are neighbours in the buffer, and the older has smaller rows."""
        older, younger = self._segments[-2:]
        start, stop = int(older.starts[0]), int(younger.starts[-1])
        terms = np.union1d(older.terms, younger.terms)
        sizes = np.zeros((2, len(terms)), dtype=np.int64)
        for segment, size in zip((older, younger), sizes, strict=True):
            size[np.searchsorted(terms, segment.terms)] = np.diff(segment.starts)
        starts = np.concatenate([[start], start + np.cumsum(sizes.sum(axis=0))])
        # The target of each posting: a word's older postings first.
        targets = np.concatenate(
            [
                np.repeat(first - np.cumsum(size) + size, size) + np.arange(size.sum())
                for first, size in ((starts[:-1] - start, sizes[0]), (starts[:-1] - start + sizes[0], sizes[1]))
            ]
        )
        for buffer in (self._rows, self._counts):
            merged = np.empty(stop - start, dtype=buffer.array.dtype)
            merged[targets] = buffer.array[start:stop]
            buffer.array[start:stop] = merged
        self._segments[-2:] = [_Segment(terms, starts)]


def _speakers(block: TermBlock, places: NDArray[np.int64]) -> NDArray[np.int32]:
    """The words at these places, which are names, by record: int32 (records, 2), the second after the first."""
    speakers = np.full((len(block.ids), 2), -1, dtype=np.int32)
    if len(places):
        owners = np.searchsorted(block.offsets, places, side="right") - 1
        again = np.append(False, owners[1:] == owners[:-1]).astype(np.int64)
        speakers[owners, again] = block.terms[places]
    return speakers


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
