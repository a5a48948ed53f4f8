"""BM25 postings in memory: segments in shared buffers; the last holds the newest records. And the statistics of BM25.

A record's words arrive as numbers and counts and are appended to the tail, which is inverted again into the last
segment. A full tail becomes a segment of its own; segments of similar size merge, up to 2 million postings. This bounds
the time of an append and the number of slices per word: a million records added one by one give about 20 segments.
Scores are computed per query, so an appended index and a rebuilt one give the same scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.index.growable import Growable, IndexPart, check_lengths, check_offsets, check_within, extend, filled
from recallite.store.sql.blocks import TermBlock
from recallite.system.numerics import kernels
from recallite.text.reading import MOST, NAME

# Records are short and similar in length: on LoCoMo, RealMem and SciFact these values equal or beat 1.2 and 0.75.
K1 = 0.9
B = 0.4
# Inverting a tail of this many records takes 0.3 ms.
_TAIL_RECORDS = 256
_LARGEST_MERGE = 2**21
_NO_ROWS = np.empty(0, dtype=np.int32)


class LexicalIndex(IndexPart):
    """Words of rows 0..n-1."""

    _numbers = ("live_words",)
    # The words of all segments, ascending in each: segment i is from segments[i] to segments[i + 1].
    terms: NDArray[np.int32] = filled("_terms")
    # The begin of the postings of each word, and after each segment the end of its last ones, (terms + segments,).
    starts: NDArray[np.int64] = filled("_starts")
    segments: NDArray[np.int64] = filled("_segments")
    # The row of each posting, and the count of the word there.
    rows: NDArray[np.int32] = filled("_rows")
    counts: NDArray[np.uint8] = filled("_counts")
    # The first and the last word of each row's context if that is a name, (rows, 2); -1 for none, empty without names.
    speakers: NDArray[np.int32] = filled("_speakers")
    lengths: NDArray[np.float32] = filled("_lengths")  # words of each row

    def __init__(self) -> None:
        self._rows = Growable(np.int32)
        self._counts = Growable(np.uint8)
        self._lengths = Growable(np.float32)
        self._speakers = Growable(np.int32, (2,))
        self._terms = Growable(np.int32)
        self._starts = Growable(np.int64)
        self._segments = Growable(np.int64)
        self._segments.extend(np.zeros(1, dtype=np.int64))
        self._clear_tail()
        # How many postings are final; the tail's follow while the last segment is the tail's.
        self._sealed = 0
        self._tail_segment = False
        # Words of all rows that count in the statistics.
        self.live_words = 0.0
        # How often the segments before the last have changed.
        self.sealings = 1

    def __len__(self) -> int:
        return len(self._lengths.array)

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave."""
        super().restore(saved)
        self._tail_first_row = len(self) - (len(self._tail_offsets) - 1)
        self._tail_segment = len(self._tail_terms) > 0
        self._sealed = self._bounds(len(self._segments) - 2)[0] if self._tail_segment else len(self._rows)

    def check(self, rows: int, vectors: int) -> None:
        """Segments follow one another through the buffer; the rows of each word ascend strictly."""
        postings, words = self._rows.array, len(self._tail_terms)
        check_lengths(rows, self._lengths.array)
        check_lengths(rows if len(self._speakers) else 0, self._speakers.array)
        check_lengths(len(postings), self._counts.array)
        check_lengths(words, self._tail_counts.array)
        check_offsets(self._tail_offsets.array, 0, words)
        check_within(postings, 0, rows)
        check_offsets(self.segments, 0, len(self.terms))
        check_lengths(len(self.terms) + len(self.segments) - 1, self.starts)
        begins, end = np.zeros(len(postings) + 1, dtype=np.bool_), 0
        for segment in range(len(self.segments) - 1):
            starts = self._starts_of(segment)
            check_offsets(starts, end, int(starts[-1]))
            end = int(starts[-1])
            begins[starts] = True
        if end != len(postings) or not ((postings[1:] > postings[:-1]) | begins[1:-1]).all():
            raise ValueError("postings of a word are not in the order of their rows")

    def _terms_of(self, segment: int) -> NDArray[np.int32]:
        return self.terms[self.segments[segment] : self.segments[segment + 1]]

    def _starts_of(self, segment: int) -> NDArray[np.int64]:
        return self.starts[self.segments[segment] + segment : self.segments[segment + 1] + segment + 1]

    def _bounds(self, segment: int) -> tuple[int, int]:
        """The begin and the end of the postings of a segment."""
        starts = self._starts_of(segment)
        return int(starts[0]), int(starts[-1])

    def rows_of(self, term: int) -> NDArray[np.int32]:
        """The rows that have a word, by its number, ascending."""
        found = [_NO_ROWS]
        for segment in range(len(self.segments) - 1):
            terms, starts = self._terms_of(segment), self._starts_of(segment)
            place = int(terms.searchsorted(term))
            if place < len(terms) and terms[place] == term:
                found.append(self.rows[starts[place] : starts[place + 1]])
        return np.concatenate(found)

    def reserve(self, rows: int, postings: int) -> None:
        """Reserve capacity for these rows and about this number of postings, all of them in the tail."""
        self._lengths.reserve(rows)
        self._tail_offsets.reserve(rows + 1)
        self._tail_terms.reserve(postings)
        self._tail_counts.reserve(postings)

    def append(self, block: TermBlock, ids: NDArray[np.int64], live: NDArray[np.uint8]) -> None:
        """Append the words of the next rows to the tail; they are found when `invert` has been called.

        The rows are those of the records `ids`: one that the block lacks has no words. `live` marks the rows that count
        in the statistics.
        """
        if not np.array_equal(block.ids, ids):
            lengths, known = np.diff(block.offsets), np.isin(block.ids, ids)
            present, own = np.repeat(known, lengths), np.zeros(len(ids), dtype=np.int64)
            own[np.searchsorted(ids, block.ids[known])] = lengths[known]
            offsets = np.concatenate([[0], np.cumsum(own)]).astype(np.int64)
            block = TermBlock(ids, block.terms[present], block.counts[present], offsets)
        sizes = block.offsets[1:] - block.offsets[:-1]
        filled = sizes.nonzero()[0]
        frequencies = block.counts & np.uint8(MOST)
        lengths = np.zeros(len(sizes), dtype=np.float32)
        if len(filled):
            lengths[filled] = np.add.reduceat(frequencies, block.offsets[filled], dtype=np.int64)
        named = (block.counts & NAME).nonzero()[0]
        if len(named) and not len(self._speakers.array):
            self._speakers.extend_with(-1, len(self))
        if len(named) or len(self._speakers.array):
            # The words of a name, the second after the first.
            speakers = np.full((len(ids), 2), -1, dtype=np.int32)
            if len(named):
                owners = np.searchsorted(block.offsets, named, side="right") - 1
                again = np.append(False, owners[1:] == owners[:-1]).astype(np.int64)
                speakers[owners, again] = block.terms[named]
            self._speakers.extend(speakers)
        self.live_words += float(lengths[live[: len(lengths)] == 1].sum(dtype=np.float64))
        offsets = block.offsets[1:] + self._tail_offsets.array[-1]
        extend(
            (self._lengths, lengths), (self._tail_terms, block.terms), (self._tail_counts, frequencies),
            (self._tail_offsets, offsets),
        )  # fmt: skip

    def discount(self, rows: NDArray[np.int64]) -> None:
        """Remove deleted rows from the statistics."""
        self.live_words -= float(self._lengths.array[rows].sum(dtype=np.float64))

    def invert(self) -> None:
        """Make the tail the last segment. A full one becomes final, and segments of similar size merge."""
        if self._tail_segment:
            self._drop_last(1)
        self._rows.truncate(self._sealed)
        self._counts.truncate(self._sealed)
        if not len(self._tail_terms.array):
            self._tail_segment = False
        else:
            out = self._rows.claim(len(self._tail_terms.array)), self._counts.claim(len(self._tail_terms.array))
            terms, starts, _, _ = kernels.invert(
                self._tail_terms.array, self._tail_counts.array, self._tail_offsets.array, self._tail_first_row, out
            )
            self._append_segment(terms, starts + self._sealed)
            self._tail_segment = True
        if len(self._tail_offsets.array) <= _TAIL_RECORDS:
            return
        self._tail_segment = False
        self._sealed = len(self._rows.array)
        self.sealings += 1
        self._clear_tail()
        while len(self._segments.array) > 2:
            (older, middle), (_, younger) = (self._bounds(len(self._segments) - 1 - back) for back in (2, 1))
            if middle - older > 2 * (younger - middle) or younger - older > _LARGEST_MERGE:
                break
            self._merge_last_two()

    def _append_segment(self, terms: NDArray[np.int32], starts: NDArray[np.int64]) -> None:
        extend((self._terms, terms), (self._starts, starts))
        self._segments.extend(np.array([len(self._terms.array)]))

    def _drop_last(self, segments: int) -> None:
        """Drop the last segments; their postings stay."""
        left = len(self._segments) - segments
        self._segments.truncate(left)
        self._terms.truncate(int(self.segments[-1]))
        self._starts.truncate(int(self.segments[-1]) + left - 1)

    def _clear_tail(self) -> None:
        """An empty tail after all rows; frees the memory of the old one."""
        self._tail_terms = Growable(np.int32)
        self._tail_counts = Growable(np.uint8)
        self._tail_offsets = Growable(np.int64)
        self._tail_offsets.extend(np.zeros(1, dtype=np.int64))
        self._tail_first_row = len(self)

    def _merge_last_two(self) -> None:
        """Merge the last two segments in place: they are neighbours in the buffer, and the older has smaller rows."""
        last = len(self._segments) - 2
        start, stop = self._bounds(last - 1)[0], self._bounds(last)[1]
        # `np.union1d` imports numpy.ma, which takes 40 ms.
        terms = np.sort(np.concatenate([self._terms_of(last - 1), self._terms_of(last)]))
        terms = terms[np.append(True, terms[1:] != terms[:-1])]
        sizes = np.zeros((2, len(terms)), dtype=np.int64)
        for segment, size in zip((last - 1, last), sizes, strict=True):
            size[np.searchsorted(terms, self._terms_of(segment))] = np.diff(self._starts_of(segment))
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
        self._drop_last(2)
        self._append_segment(terms, starts)


# The statistics that BM25 needs of the records that a handle may see.

_NOTHING = np.empty(0, dtype=np.int64)
_EVERY_ROW = np.empty(0, dtype=np.uint8)


class CorpusStatistics:
    """The number of records of a scope, their length, and for each word the number of records that contain it.

    A handle weighs words only by records that it may see: otherwise its scores and confidence would reveal what other
    scopes contain. `frequencies` are the last fields of `kernels.Terms`, by which the kernel counts the records with
    each term: nothing where every row of the index is current and in the scope, else `counts`, `open_mask`, which is 1
    for the rows of current records, and `held_mask`, which is 1 for closed versions too.
    """

    def __init__(
        self,
        records: int,
        words: float,
        counts: NDArray[np.int64] = _NOTHING,
        open_mask: NDArray[np.uint8] = _EVERY_ROW,
        held_mask: NDArray[np.uint8] | None = None,
    ) -> None:
        self.records = records
        # Words of the average record.
        self.average_length = words / records if records and words > 0 else 1.0
        self.frequencies = counts, open_mask, _EVERY_ROW if held_mask is None else held_mask


class TermCounts:
    """For each term of each segment, the number of its rows in a corpus, as kernels have counted it.

    Counting postings under a mask takes as long as scoring them, and queries repeat words. While records are only
    added, what was counted in the segments before the last holds.
    """

    def __init__(self) -> None:
        self._counts = Growable(np.int64)
        self._of = 0, 0

    def of(self, words: LexicalIndex) -> NDArray[np.int64]:
        """The counts for an index that has grown, or not."""
        now = words.sealings, len(words)
        if now != self._of:
            # Those of all segments but the tail's hold.
            sealed = int(words.segments[-2]) if words._tail_segment else len(words.terms)
            self._counts.truncate(sealed if now[0] == self._of[0] else 0)
            self._counts.extend_with(kernels.UNCOUNTED, len(words.terms) - len(self._counts))
            self._of = now
        return self._counts.array
