"""Candidates that a store finds itself, for stores that are larger than the memory of a process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recallite.model.filters import Filter
from recallite.store.sql.repository import Repository
from recallite.store.values import EmbedderRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Chains(NamedTuple):
    """Neighbours in sources, row ids int64 (n,): `after` comes right after `before`."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]


class CorpusCounts(NamedTuple):
    """The number of current records in some scopes, their mean number of words, and the state of the store.

    `changes` grows with the writes to the store.
    """

    records: int
    average_length: float
    changes: int


class CandidateSearch(Repository):
    """Searches by indexes of the store."""

    @abstractmethod
    def ready(self, embedder: EmbedderRow | None) -> bool:
        """Whether the indexes are there: for words, and for the vectors of this embedder."""

    @abstractmethod
    def sizes(self, embedder: EmbedderRow | None) -> dict[str, int]:
        """The bytes of those of these indexes that are there, by name."""

    @abstractmethod
    def listed(self, filter: Filter, now: int, most: int) -> NDArray[np.int64] | None:
        """The row ids of all records that the filter admits; None where they are more than `most`."""

    @abstractmethod
    def admitted(self, filter: Filter, now: int, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row ids among these that the filter admits."""

    @abstractmethod
    def nearest(
        self, filter: Filter, now: int, embedder: EmbedderRow, vector: NDArray[np.float32], most: int
    ) -> NDArray[np.int64]:
        """The row ids of about the `most` records nearest to a vector, nearest first."""

    @abstractmethod
    def with_each(self, terms: Sequence[int]) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The row ids of the records that have each word, and their numbers of words; no filter is applied."""

    @abstractmethod
    def with_all(self, terms: Sequence[int], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same of at most `most` records that have all of these words."""

    @abstractmethod
    def chains(self, ids: NDArray[np.int64]) -> Chains:
        """The two records before and the two after each of these in its source."""

    @abstractmethod
    def changes(self) -> int:
        """A number that grows with the writes to the store."""

    @abstractmethod
    def corpus(self, scopes: Sequence[int] | None) -> CorpusCounts:
        """Figures of the current records in these scopes, None for all of them."""

    @abstractmethod
    def frequencies(self, scopes: Sequence[int] | None, terms: Sequence[int]) -> dict[int, int]:
        """The number of current records in these scopes that have each word; -1 if no closed version has it either."""
