"""What recall asks of an index. Two answer alike: `MemoryQuestion` from RAM and `ColdQuestion` from SQL.

A question is one query under one filter at one commit. It speaks of records by `rows`, numbers that mean something
only to it; `keys` gives their row ids in the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Neighborhood", "Question"]


class Neighborhood(NamedTuple):
    """What stands beside given rows, as far as it is among them.

    Entry i has the edges targets[offsets[i]:offsets[i + 1]], places in the same rows, with strengths in [0, 1];
    `linked` says which are explicit links. `companions` is min(3, visible records in the row's source), itself
    included: 1 for a row without a source or alone in it.
    """

    offsets: NDArray[np.int64]
    targets: NDArray[np.int64]
    strengths: NDArray[np.float64]
    linked: NDArray[np.bool_]
    companions: NDArray[np.int64]


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

    def cosines(self, rows: NDArray[np.int64], *, exact: int) -> NDArray[np.float32]:
        """Cosine of each row's best part, 0 where it has none; the best `exact` from the float32 originals."""

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

    def neighborhood(self, rows: NDArray[np.int64]) -> Neighborhood:
        """The edges among these rows."""

    def sources(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Source of each row, -1 for none."""

    def created_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """When the store learnt each row, in microseconds."""

    def importance(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Importance of each row."""
