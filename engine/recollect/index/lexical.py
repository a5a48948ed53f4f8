"""BM25 postings in memory: segments in one buffer, of which the last holds the newest records.

A record's words arrive as numbers and counts and join the tail, which is inverted anew into the last segment. A full
one stays; segments of like size merge, so that n appends cost O(n log n) in all and a query meets O(log n) slices per
word. Impacts are computed per query, so an appended index and a rebuilt one give the same scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.index.growable import Growable
from recollect.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.store.cold import Statistics
    from recollect.store.loading import TermBlock

__all__ = ["K1", "B", "LexicalIndex", "Slices"]

# Records are short and of like length: on LoCoMo, RealMem and SciFact these did as well as or better than 1.2 and 0.75.
K1 = 0.9
B = 0.4
# Inverting a tail of so many records takes 0.3 ms.
_TAIL_RECORDS = 256


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
    slice_offsets[i] on; `words` says which word each slice is of. Slices stand by descending IDF: equal records sum in
    the same order and tie exactly.
    """

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    words: NDArray[np.int64]
    slice_offsets: NDArray[np.int64]
    idf: NDArray[np.float32]
    word_offsets: NDArray[np.int64]


class LexicalIndex:
    """Words of rows 0..n-1."""

    def __init__(self) -> None:
        self._rows = Growable(np.int32)
        self._counts = Growable(np.uint8)
        self._lengths = Growable(np.float32)
        self._segments: list[_Segment] = []
        self._tail_terms = Growable(np.int32)
        self._tail_counts = Growable(np.uint8)
        self._tail_offsets = Growable(np.int64)
        self._tail_offsets.extend(np.zeros(1, dtype=np.int64))
        self._tail_first_row = 0
        # Postings that stay where they are; the tail's come after them while the last segment is the tail's.
        self._sealed = 0
        self._tail_segment = False
        self._live_words = 0.0
        self._spare: list[NDArray[np.float32]] = []
        # Those of a whole store of which only some records are here; None where all are.
        self.statistics: Statistics | None = None

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        buffers = self._rows, self._counts, self._lengths, self._tail_terms, self._tail_counts
        return sum(buffer.nbytes for buffer in buffers) + sum(
            segment.terms.nbytes + segment.starts.nbytes for segment in self._segments
        )

    def extend(self, block: TermBlock, live: NDArray[np.uint8]) -> None:
        """Append the words of the next rows; `live` says which of them count in the statistics."""
        sums = np.add.reduceat(
            np.append(block.counts, 0).astype(np.int64), np.minimum(block.offsets[:-1], len(block.counts))
        )
        lengths = np.where(np.diff(block.offsets) > 0, sums, 0).astype(np.float32)
        self._lengths.extend(lengths)
        self._live_words += float(lengths[live == 1].sum(dtype=np.float64))
        self._tail_terms.extend(block.terms)
        self._tail_counts.extend(block.counts)
        self._tail_offsets.extend(block.offsets[1:] + self._tail_offsets.array[-1])
        self._invert_tail()

    def discount(self, rows: NDArray[np.int64]) -> None:
        """Take rows that died out of the statistics."""
        self._live_words -= float(self._lengths.array[rows].sum(dtype=np.float64))

    def slices(self, terms: Sequence[NDArray[np.int32]], open_rows: int, open_mask: NDArray[np.uint8] | None) -> Slices:
        """The slices and IDF of the words of each query; `open_mask` is None when every row counts."""
        asked = terms[0] if len(terms) == 1 else np.concatenate(terms)
        word_offsets = np.cumsum([0, *map(len, terms)], dtype=np.int64)
        starts, stops, owners = [], [], []
        for segment in self._segments:
            if not len(segment.terms):
                continue
            places = np.minimum(np.searchsorted(segment.terms, asked), len(segment.terms) - 1)
            held = np.flatnonzero(segment.terms[places] == asked)
            starts.append(segment.starts[places[held]])
            stops.append(segment.starts[places[held] + 1])
            owners.append(held)
        begin, end, words = _joined(starts), _joined(stops), _joined(owners)
        if self.statistics is not None:
            frequency, open_rows = self.statistics.frequencies, self.statistics.records
        else:
            counts = end - begin
            if open_mask is not None:
                counts = kernels.allowed_in_slices(self._rows.array, begin, end, open_mask)
            frequency = np.bincount(words, weights=counts, minlength=len(asked))
        # Robertson-Sparck Jones with +1 inside the logarithm, as Lucene has it: never negative.
        idf = np.log1p((open_rows - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
        query = np.searchsorted(word_offsets, words, side="right") if len(terms) > 1 else words * 0 + 1
        order = np.lexsort((words, -idf[words], query))
        slice_offsets = np.searchsorted(query[order], np.arange(1, len(terms) + 2))
        return Slices(begin[order], end[order], words[order], slice_offsets, idf, word_offsets)

    def best(
        self, slices: Slices, open_rows: int, mask: NDArray[np.uint8] | None, wanted: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """The `wanted` rows with the best BM25 above 0 whose `mask` is 1, best first, per query.

        Rows (q, wanted), their scores, and how many of them count (q,).
        """
        scratch = self._scratch()
        found = kernels.bm25_top_k(*self.postings(slices, open_rows), mask, scratch, wanted)
        self._spare.append(scratch)
        return found

    def coverage(
        self, slices: Slices, offsets: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The IDF mass of its query's words that each row carries, and by word whether any row carries it."""
        carried, met = kernels.word_coverage(
            self._rows.array, slices.starts, slices.stops, slices.words, slices.slice_offsets, slices.idf, offsets, rows
        )
        return carried, met.view(np.bool_)

    def postings(self, slices: Slices, open_rows: int) -> kernels.Postings:
        """What every BM25 kernel takes."""
        return kernels.Postings(
            self._rows.array,
            self._counts.array,
            slices.starts,
            slices.stops,
            slices.idf[slices.words],
            slices.slice_offsets,
            self._lengths.array,
            self._average(open_rows),
            K1,
            B,
        )

    def _scratch(self) -> NDArray[np.float32]:
        """Zeros for one query at a time, float32 (rows,); given back when it is all zero again."""
        while self._spare:
            scratch = self._spare.pop()
            if len(scratch) == len(self):
                return scratch
        return np.zeros(len(self), dtype=np.float32)

    def _average(self, open_rows: int) -> float:
        """Words of the average record."""
        words = self._live_words
        if self.statistics is not None:
            words, open_rows = self.statistics.words, self.statistics.records
        return words / open_rows if open_rows and words > 0 else 1.0

    def _invert_tail(self) -> None:
        """Make the tail the last segment. When it is full it stays one, and segments of like size merge."""
        if self._segments and len(self._tail_offsets) > 1 and self._tail_segment:
            self._segments.pop()
        self._rows.truncate(self._sealed)
        self._counts.truncate(self._sealed)
        terms, starts, rows, counts = kernels.invert(
            self._tail_terms.array, self._tail_counts.array, self._tail_offsets.array, self._tail_first_row
        )
        self._rows.extend(rows)
        self._counts.extend(counts)
        self._segments.append(_Segment(terms, starts + self._sealed))
        self._tail_segment = len(self._tail_offsets) <= _TAIL_RECORDS
        if self._tail_segment:
            return
        self._sealed = len(self._rows)
        self._tail_first_row = len(self)
        self._tail_terms.truncate(0)
        self._tail_counts.truncate(0)
        self._tail_offsets.truncate(1)
        while len(self._segments) > 1 and self._segments[-2].size <= 2 * self._segments[-1].size:
            self._merge_last_two()

    def _merge_last_two(self) -> None:
        """Merge the last two segments in place: they are neighbours in the buffer, and the older has smaller rows."""
        older, younger = self._segments[-2:]
        start, stop = int(older.starts[0]), int(younger.starts[-1])
        owners = np.concatenate([np.repeat(segment.terms, np.diff(segment.starts)) for segment in (older, younger)])
        order = np.argsort(owners, kind="stable")
        self._rows.array[start:stop] = self._rows.array[start:stop][order]
        self._counts.array[start:stop] = self._counts.array[start:stop][order]
        terms, counts = np.unique(owners, return_counts=True)
        starts = np.concatenate([[start], start + np.cumsum(counts)]).astype(np.int64)
        self._segments[-2:] = [_Segment(terms.astype(np.int32), starts)]


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
