"""What BM25 needs to know of the records that a handle may see: how many, how long, and how many contain each word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


# The counts of a small store are smoothed as if it had so many more records, with words as common as in conversations
# and notes in general.
PRIOR_RECORDS = 10.0
# Words whose counts are kept, about 100 bytes each.
_KEPT_WORDS = 100_000


class CorpusStatistics:
    """What BM25 needs to know of a scope: how many records it has, their length, and how many contain each word.

    A handle weighs words only by records that it may see: otherwise its scores and confidence would reveal what other
    scopes contain. `open_mask` is 1 for the rows of current records, and `held_mask` returns 1 for closed versions too;
    None where every row of the index is current and in the scope.
    """

    def __init__(
        self,
        records: int,
        words: float,
        open_mask: NDArray[np.uint8] | None = None,
        held_mask: Callable[[], NDArray[np.uint8]] | None = None,
    ) -> None:
        self.records, self.words = records, words
        self._open_mask, self._held_mask = open_mask, held_mask
        self._counted: dict[int, int] = {}

    @property
    def average_length(self) -> float:
        """Words of the average record."""
        return self.words / self.records if self.records and self.words > 0 else 1.0

    def idf(self, frequency: NDArray[Any], shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """The IDF of words that so many records contain, and this share of texts in general.

        Robertson-Sparck Jones with +1 inside the logarithm, as Lucene has it: never negative.
        """
        held = frequency + PRIOR_RECORDS * shares
        idf: NDArray[np.float64] = np.log1p((self.records + PRIOR_RECORDS - held + 0.5) / (held + 0.5))
        return idf

    def frequencies(
        self,
        terms: NDArray[np.int32],
        rows: NDArray[np.int32],
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        words: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """How many current records contain each of `terms`, int64; -1 for one that no closed version contains either.

        `rows` are the postings; their slice i, from starts[i] to stops[i], belongs to term words[i].
        """
        if self._open_mask is None:
            counted = _Postings(rows, starts, stops, words).records(None, len(terms))
            counted[counted == 0] = -1
            return counted
        # Counting postings under a mask takes as long as scoring them, and queries repeat words.
        known = self._counted
        found = np.array([known.get(term, -2) for term in terms.tolist()], dtype=np.int64)
        missing = found == -2
        if missing.any():
            some = missing[words]
            postings = _Postings(rows, starts[some], stops[some], words[some])
            counted = postings.records(self._open_mask, len(terms))
            counted[counted == 0] = -1
            absent = counted[postings.words] == -1
            if self._held_mask is not None and absent.any():
                closed = _Postings(rows, *(each[absent] for each in postings[1:])).records(
                    self._held_mask(), len(terms)
                )
                counted[closed > 0] = 0
            found[missing] = counted[missing]
            if len(known) > _KEPT_WORDS:
                self._counted = known = {}
            known.update(zip(terms[missing].tolist(), found[missing].tolist(), strict=True))
        return found


class _Postings(NamedTuple):
    rows: NDArray[np.int32]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    words: NDArray[np.int64]

    def records(self, mask: NDArray[np.uint8] | None, terms: int) -> NDArray[np.int64]:
        """By term, how many of its rows have a `mask` that is 1; all for None."""
        counts = self.stops - self.starts
        if mask is not None:
            counts = kernels.allowed_in_slices(self.rows, self.starts, self.stops, mask)
        return np.bincount(self.words, weights=counts, minlength=terms).astype(np.int64)
