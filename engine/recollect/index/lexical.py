"""BM25 postings in memory: sealed segments in one buffer, and a short tail of the newest records.

A record's words arrive as numbers and counts and join the tail. A full tail is inverted into a segment; segments of
like size merge, up to 2 million postings, so that no append waits for more than such a merge and a query meets few
slices per word: a million records that came one by one have some 20 segments. Impacts are computed per query, so an
appended index and a rebuilt one give the same scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recollect.index.growable import Growable, growables, restore
from recollect.numerics import kernels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from recollect.store.cold import Statistics
    from recollect.store.loading import TermBlock

__all__ = ["K1", "B", "LexicalIndex", "Slices"]

# Records are short and of like length: on LoCoMo, RealMem and SciFact these did as well as or better than 1.2 and 0.75.
K1 = 0.9
B = 0.4
_TAIL_RECORDS = 512
_LARGEST_MERGE = 2**21


class _Segment(NamedTuple):
    """Postings of consecutive rows: `terms` ascending; term i has the buffer's slice starts[i]:starts[i+1]."""

    terms: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def size(self) -> int:
        return int(self.starts[-1] - self.starts[0])


class Slices(NamedTuple):
    """The postings of a query's words: slices of the buffer, each with its word's place in `terms` and its IDF."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    idf: NDArray[np.float32]
    owners: list[int]
    terms: NDArray[np.int32]
    term_idf: NDArray[np.float32]


class LexicalIndex:
    """Words of rows 0..n-1."""

    def __init__(self) -> None:
        self._rows = Growable(np.int32)
        self._counts = Growable(np.uint8)
        self._lengths = Growable(np.float32)
        self._segments: list[_Segment] = []
        self._clear_tail()
        self._live_words = 0.0
        self._spare: list[NDArray[np.float32]] = []
        # Those of a whole store of which only some records are here; None where all are.
        self.statistics: Statistics | None = None

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        segments = sum(segment.terms.nbytes + segment.starts.nbytes for segment in self._segments)
        return segments + sum(each.nbytes for each in growables(self).values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that `restore` needs."""
        return {
            **{name: each.array for name, each in growables(self).items()},
            "terms": np.concatenate([segment.terms for segment in self._segments] or [np.empty(0, dtype=np.int32)]),
            "starts": np.concatenate([segment.starts for segment in self._segments] or [np.empty(0, dtype=np.int64)]),
            "segments": np.array([len(segment.terms) for segment in self._segments], dtype=np.int64),
            "live_words": np.array([self._live_words]),
        }

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave."""
        restore(self, saved)
        sizes = saved["segments"].array
        ends = np.cumsum(sizes)
        terms, starts = saved["terms"].array, saved["starts"].array
        self._segments = [
            _Segment(terms[end - size : end], starts[end - size + place : end + place + 1])
            for place, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True))
        ]
        self._tail_first_row = len(self) - (len(self._tail_offsets) - 1)
        self._live_words = float(saved["live_words"].array[0])

    def load(self, blocks: Iterable[TermBlock], live: NDArray[np.uint8]) -> None:
        """Append the words of all rows at once; they become one segment."""
        for block in blocks:
            self._append(block, live[len(self) :])
        self._seal()

    def extend(self, block: TermBlock, live: NDArray[np.uint8]) -> None:
        """Append the words of the next rows; `live` says which of them count in the statistics."""
        self._append(block, live)
        if len(self._tail_offsets) > _TAIL_RECORDS:
            self._seal()

    def _append(self, block: TermBlock, live: NDArray[np.uint8]) -> None:
        sums = np.add.reduceat(
            np.append(block.counts, 0).astype(np.int64), np.minimum(block.offsets[:-1], len(block.counts))
        )
        lengths = np.where(np.diff(block.offsets) > 0, sums, 0).astype(np.float32)
        self._lengths.extend(lengths)
        self._live_words += float(lengths[live[: len(lengths)] == 1].sum(dtype=np.float64))
        self._tail_terms.extend(block.terms)
        self._tail_counts.extend(block.counts)
        self._tail_offsets.extend(block.offsets[1:] + self._tail_offsets.array[-1])

    def discount(self, rows: NDArray[np.int64]) -> None:
        """Take rows that died out of the statistics."""
        self._live_words -= float(self._lengths.array[rows].sum(dtype=np.float64))

    def slices(
        self,
        terms: NDArray[np.int32],
        open_rows: int,
        open_mask: NDArray[np.uint8] | None,
    ) -> Slices:
        """The slices and IDF of query words; `open_mask` is None when every row counts."""
        starts, stops, owners = [], [], []
        frequency = np.zeros(len(terms), dtype=np.int64)
        for segment in self._segments:
            places = np.searchsorted(segment.terms, terms)
            for place, (term, at) in enumerate(zip(terms.tolist(), places.tolist(), strict=True)):
                if at < len(segment.terms) and segment.terms[at] == term:
                    start, stop = int(segment.starts[at]), int(segment.starts[at + 1])
                    starts.append(start)
                    stops.append(stop)
                    owners.append(place)
                    frequency[place] += (
                        stop - start if open_mask is None else int(open_mask[self._rows.array[start:stop]].sum())
                    )
        if self.statistics is not None:
            frequency, open_rows = self.statistics.frequencies, self.statistics.records
        elif len(self._tail_offsets) > 1:
            frequency += self._tail_frequency(terms, open_mask)
        # Robertson-Sparck Jones with +1 inside the logarithm, as Lucene has it: never negative.
        idf = np.log1p((open_rows - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
        # Word by word, so that equal records sum in the same order and tie exactly.
        order = np.argsort(owners, kind="stable") if len(self._segments) > 1 else np.arange(len(owners))
        words = np.array(owners, dtype=np.int64)[order]
        return Slices(
            np.array(starts, dtype=np.int64)[order],
            np.array(stops, dtype=np.int64)[order],
            idf[words],
            words.tolist(),
            terms,
            idf,
        )

    def best(
        self, slices: Slices, open_rows: int, mask: NDArray[np.uint8], wanted: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The `wanted` rows with the best BM25 above 0 whose `mask` is 1, best first, and their scores."""
        rows, scores = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        if len(slices.starts):
            scratch = self._scratch()
            rows, scores = kernels.bm25_top_k(*self._postings(slices, open_rows), mask, scratch, wanted)
            self._spare.append(scratch)
        if len(self._tail_offsets) > 1:
            first = self._tail_first_row
            tail = self._tail_scores(slices, open_rows)
            found = np.flatnonzero((tail > 0) & (mask[first:] == 1))
            rows, scores = np.concatenate([rows, found + first]), np.concatenate([scores, tail[found]])
            best = np.lexsort((rows, -scores))[:wanted]
            rows, scores = rows[best], scores[best]
        return rows, scores

    def scores_of(self, slices: Slices, open_rows: int, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """BM25 of these rows, float32; 0 where no word of the query stands."""
        scores = np.zeros(len(rows), dtype=np.float32)
        if len(slices.starts):
            scores = kernels.bm25_for_rows(*self._postings(slices, open_rows), rows)
        if len(self._tail_offsets) > 1:
            newest = rows >= self._tail_first_row
            scores[newest] = self._tail_scores(slices, open_rows)[rows[newest] - self._tail_first_row]
        return scores

    def _postings(self, slices: Slices, open_rows: int) -> tuple[Any, Any, Any, Any, Any, Any, float, float, float]:
        """What every BM25 kernel takes first."""
        return (
            self._rows.array,
            self._counts.array,
            slices.starts,
            slices.stops,
            slices.idf,
            self._lengths.array,
            self._average(open_rows),
            K1,
            B,
        )

    def _tail_scores(self, slices: Slices, open_rows: int) -> NDArray[np.float32]:
        return kernels.scan_forward(
            self._tail_terms.array,
            self._tail_counts.array,
            self._tail_offsets.array,
            slices.terms,
            slices.term_idf,
            self._lengths.array[self._tail_first_row :],
            self._average(open_rows),
            K1,
            B,
        )

    def _scratch(self) -> NDArray[np.float32]:
        """Zeros for one query, float32 (rows,); given back when it is all zero again."""
        while self._spare:
            scratch = self._spare.pop()
            if len(scratch) == len(self):
                return scratch
        return np.zeros(len(self), dtype=np.float32)

    def carried(self, slices: Slices, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(rows, words): which words each row carries."""
        out = np.zeros((len(rows), len(slices.terms)), dtype=np.bool_)
        for word, start, stop in zip(slices.owners, slices.starts.tolist(), slices.stops.tolist(), strict=True):
            held = self._rows.array[start:stop]
            places = np.minimum(np.searchsorted(held, rows), len(held) - 1)
            out[:, word] |= held[places] == rows
        tail_rows = rows - self._tail_first_row
        for place in np.flatnonzero(tail_rows >= 0).tolist():
            start, stop = self._tail_offsets.array[tail_rows[place] : tail_rows[place] + 2]
            out[place] = np.isin(slices.terms, self._tail_terms.array[start:stop])
        return out

    def _average(self, open_rows: int) -> float:
        """Words of the average record."""
        words = self._live_words
        if self.statistics is not None:
            words, open_rows = self.statistics.words, self.statistics.records
        return words / open_rows if open_rows and words > 0 else 1.0

    def _tail_frequency(self, terms: NDArray[np.int32], open_mask: NDArray[np.uint8] | None) -> NDArray[np.int64]:
        tail = self._tail_terms.array
        offsets = self._tail_offsets.array
        found = np.zeros(len(terms), dtype=np.int64)
        for place, term in enumerate(terms):
            at = np.flatnonzero(tail == term)
            if open_mask is None:
                found[place] = len(at)
            else:
                rows = np.searchsorted(offsets, at, side="right") - 1 + self._tail_first_row
                found[place] = int(open_mask[rows].sum())
        return found

    def _seal(self) -> None:
        """Invert the tail into a segment, then merge segments while the older is no more than twice the younger."""
        terms, starts, rows, counts = kernels.invert(
            self._tail_terms.array,
            self._tail_counts.array,
            self._tail_offsets.array,
            self._tail_first_row,
        )
        base = len(self._rows)
        self._rows.extend(rows)
        self._counts.extend(counts)
        self._segments.append(_Segment(terms, starts + base))
        self._clear_tail()
        while len(self._segments) > 1 and self._segments[-2].size <= 2 * self._segments[-1].size:
            if self._segments[-2].size + self._segments[-1].size > _LARGEST_MERGE:
                break
            self._merge_last_two()

    def _clear_tail(self) -> None:
        """An empty tail after all rows; the memory of the old one is given back."""
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
        # Where each posting goes: a word's older ones first.
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
