"""What recall asks of an index.

`Questions` are some queries under one filter at one commit. They speak of records by `rows`, numbers that mean
something only to them; `keys` gives their row ids in the store. What belongs to several queries stands in flat arrays,
query i's from offsets[i] to offsets[i + 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.numerics import kernels

__all__ = ["Found", "Questions"]


class Found(NamedTuple):
    """The best rows of each query by one signal: rows int64 (q, k) and values float32 (q, k), best first.

    Of query i the first counts[i] count.
    """

    rows: NDArray[np.int64]
    values: NDArray[np.float32]
    counts: NDArray[np.int64]

    @classmethod
    def nothing(cls, queries: int) -> Found:
        """Found nothing."""
        rows, values = np.empty((queries, 0), dtype=np.int64), np.empty((queries, 0), dtype=np.float32)
        return cls(rows, values, np.zeros(queries, dtype=np.int64))


class Questions(Protocol):
    """Some queries, under one filter."""

    def __len__(self) -> int: ...

    @property
    def carried(self) -> NDArray[np.bool_]:
        """By asked word of all queries, whether any record of the handle's scope carries it.

        The others are as unknown as those that the store never saw; only carried words have an IDF and are counted.
        """

    @property
    def idf(self) -> NDArray[np.float32]:
        """IDF of the carried words of all queries, by what the handle's scope holds."""

    @property
    def word_offsets(self) -> NDArray[np.int64]:
        """Query i has the carried words from word_offsets[i] to word_offsets[i + 1]."""

    @property
    def unseen_idf(self) -> float:
        """IDF of a word that no record carries."""

    def search(self, wanted: int, *, by_vector: bool, by_words: bool) -> tuple[Found, Found]:
        """The `wanted` visible rows nearest to each query's vector, and those with the best BM25 above 0."""

    def rank(
        self,
        nearest: Found,
        best: Found,
        ceilings: NDArray[np.float32],
        choices: kernels.Choices,
        look: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Every candidate of each query with its signals: see `recollect_kernels.rank_candidates`.

        Values that are NaN are measured; no measured cosine of query i passes ceilings[i], float32 (q,).
        """

    def contenders(
        self,
        offsets: NDArray[np.int64],
        rows: NDArray[np.int64],
        floors: NDArray[np.float64],
        word_ceilings: NDArray[np.float64],
        choices: kernels.Choices,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The visible rows that may reach the floors beside those held: see `recollect_kernels.contenders`."""

    def code_errors(self, queries: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """By how much each row's cosine from codes may differ from the exact one with the query of that number."""

    def exact_cosines(self, queries: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Cosine of each row's best part with the query of that number, from the float32 originals."""

    def keys(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row ids in the store, int64."""

    def coverage(
        self, offsets: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The IDF mass of its query's words that each row carries, and by word whether any row carries it."""

    def sources(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Source of each row, -1 for none."""
