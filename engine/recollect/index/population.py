"""The records that words are weighed by: how many there are, how long they are, in how many of them a word stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.numerics import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Population"]

# About 100 bytes each.
_KEPT_WORDS = 100_000


class Population:
    """The records of a handle's scope, as of one state of the index.

    A handle weighs words by what it may see and by nothing else: else its scores and its confidence would tell what
    other scopes hold. `open_mask` is 1 for the rows of the open ones, and `held_mask` gives 1 for closed versions too;
    None for an index whose rows are all open and all in the scope.
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

    def frequencies(
        self,
        terms: NDArray[np.int32],
        rows: NDArray[np.int32],
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        words: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """In how many open records each of `terms` stands, int64; -1 for one that not even a closed version carries.

        `rows` are the postings; slice i of them, from starts[i] to stops[i], is of the term at place words[i].
        """
        if self._open_mask is None:
            counted = _Postings(rows, starts, stops, words).records(None, len(terms))
            counted[counted == 0] = -1
            return counted
        # A pass over the postings with a mask takes as long as scoring them; queries ask for the same words again.
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
