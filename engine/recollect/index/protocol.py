"""What recall asks of an index. Two answer alike: `MemoryQuestion` from RAM and `ColdQuestion` from SQL.

A question is one query under one filter at one commit. It speaks of records by `rows`, numbers that mean something
only to it; `keys` gives their row ids in the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Activation", "Question"]


class Activation(NamedTuple):
    """What reaches each of given rows in one step, from those among them.

    - by_chain, by_link: float64, the strongest score that arrives from the two records before and after in the same
      source, and over an explicit link, times the strength of the way
    - company: int64, min(3, visible records in the row's source): 1 without a source or alone in it
    - is_linked: whether the row has a link to another of the rows
    """

    by_chain: NDArray[np.float64]
    by_link: NDArray[np.float64]
    company: NDArray[np.int64]
    is_linked: NDArray[np.bool_]


class Question(Protocol):
    """One query, under one filter."""

    def nearest(self, wanted: int) -> NDArray[np.int64]:
        """The `wanted` visible rows nearest to the query's vector."""

    def best_words(self, wanted: int) -> NDArray[np.int64]:
        """The `wanted` visible rows with the best BM25 above 0."""

    def neighbors(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Visible rows beside these: up to two before and after in the same source, and linked."""

    def keys(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row ids in the store, int64."""

    def cosines(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Cosine of each row's best part, 0 where it has none; from int8 codes where there are such."""

    def exact_cosines(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """`cosines` from the stored float32 vectors, for the few that matter most."""

    def words(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """BM25 of each row."""

    def carried(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(rows, words): which of the query's known words each row carries."""

    @property
    def idf(self) -> NDArray[np.float32]:
        """IDF of the query's known words."""

    @property
    def unseen_idf(self) -> float:
        """IDF of a word that no record carries."""

    def activation(self, rows: NDArray[np.int64], scores: NDArray[np.float64]) -> Activation:
        """One step of spreading activation among these rows, which ascend."""

    def sources(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Source of each row, -1 for none."""

    def created_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """When the store learnt each row, in microseconds."""

    def importance(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Importance of each row."""
