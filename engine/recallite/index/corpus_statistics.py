"""The statistics that BM25 needs of the records that a handle may see."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recallite.system.numerics import kernels

_NOTHING = np.empty(0, dtype=np.int64)
_EVERY_ROW = np.empty(0, dtype=np.uint8)


class CorpusStatistics:
    """The number of records of a scope, their length, and the number of those that contain each word.

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
        # Counting postings under a mask takes as long as scoring them, and queries repeat words.
        self._counted: NDArray[np.int64] | None = None

    @property
    def average_length(self) -> float:
        """Words of the average record."""
        return self.words / self.records if self.records and self.words > 0 else 1.0

    def frequencies(self, terms: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]]:
        """The last fields of `kernels.Terms`, by which the kernel counts the records with each term."""
        if self._open_mask is None:
            return _NOTHING, _EVERY_ROW, _EVERY_ROW
        if self._counted is None:
            self._counted = np.full(len(terms), kernels.UNCOUNTED, dtype=np.int64)
        return self._counted, self._open_mask, _EVERY_ROW if self._held_mask is None else self._held_mask()
