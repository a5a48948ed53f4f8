"""Questions answered from the in-memory index."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.index.protocol import Activation
from recollect.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.lexical import Slices
    from recollect.index.memory_index import MemoryIndex
    from recollect.index.table import Visible
    from recollect.index.vectors import Originals

__all__ = ["MemoryQuestion", "MemoryView"]

# How much of a neighbour's activation arrives: from one place away, and from two.
_NEAR, _FAR = 1.0, 0.7


class MemoryView:
    """The index under one filter. Use it while holding `index.lock.reading()`."""

    def __init__(self, index: MemoryIndex, visible: Visible, originals: Originals) -> None:
        self.index = index
        self.mask = index.table.mask(visible)
        self.vector_mask = None if index.vectors is None else index.vectors.mask(self.mask)
        self.originals = originals

    def ask(
        self, vector: NDArray[np.float32] | None, terms: NDArray[np.int32], words: Sequence[str], wanted: int
    ) -> MemoryQuestion:
        """One query: a unit vector or None, its known words as numbers and as text, how many candidates it wants."""
        return MemoryQuestion(self, vector, terms)

    def visible_rows(self) -> NDArray[np.int64]:
        """Every row that the filter admits."""
        return np.flatnonzero(self.mask)


class _Measured:
    """A signal's values by row, so that none is measured twice."""

    def __init__(self) -> None:
        self._rows = np.empty(0, dtype=np.int64)
        self._values = np.empty(0, dtype=np.float32)

    def keep(self, rows: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        """Remember the values of these rows, in any order, instead of those before."""
        order = np.argsort(rows)
        self._rows, self._values = rows[order], values[order]

    def of(
        self, rows: NDArray[np.int64], measure: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """The values of these rows, which ascend; `measure` gives those that are not known."""
        if not len(self._rows):
            values = measure(rows)
        else:
            place = np.searchsorted(self._rows, rows)
            place[place == len(self._rows)] = 0
            missing = np.flatnonzero(self._rows[place] != rows)
            values = self._values[place]
            if len(missing):
                values[missing] = measure(rows[missing])
        self._rows, self._values = rows, values
        return values


class MemoryQuestion:
    """One query under one filter; see `Question`."""

    def __init__(self, view: MemoryView, vector: NDArray[np.float32] | None, terms: NDArray[np.int32]) -> None:
        self._view = view
        self._index = view.index
        self._vector = vector if view.index.vectors is not None else None
        table = view.index.table
        self._cosines, self._bm25 = _Measured(), _Measured()
        self._slices: Slices = view.index.words.slices(terms, table.open_rows, None if table.all_open else table.open)

    @property
    def idf(self) -> NDArray[np.float32]:
        """IDF of the query's known words."""
        return self._slices.term_idf

    @property
    def unseen_idf(self) -> float:
        """IDF of a word that no record carries."""
        return math.log1p((self._index.records + 0.5) / 0.5)

    def nearest(self, wanted: int) -> NDArray[np.int64]:
        """The `wanted` visible rows nearest to the query's vector."""
        vectors, mask = self._index.vectors, self._view.vector_mask
        if vectors is None or self._vector is None:
            return np.empty(0, dtype=np.int64)
        # A record's parts may crowd others out: ask again for more until there are enough records.
        for factor in (1, 4, 16, 64):
            places, cosines = vectors.nearest(self._vector, mask, wanted * factor)
            rows = vectors.owners[places]
            if vectors.has_parts:
                best = np.sort(np.unique(rows, return_index=True)[1])[:wanted]
                rows, cosines = rows[best], cosines[best]
            if len(rows) == wanted or len(places) < wanted * factor:
                break
        self._cosines.keep(rows, cosines)
        return rows

    def best_words(self, wanted: int) -> NDArray[np.int64]:
        """The `wanted` visible rows with the best BM25 above 0."""
        if not len(self._slices.terms):
            return np.empty(0, dtype=np.int64)
        rows, scores = self._index.words.best(self._slices, self._index.table.open_rows, self._view.mask, wanted)
        self._bm25.keep(rows, scores)
        return rows

    def neighbors(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Visible rows beside these."""
        found = [self._beside(rows)]
        graph = self._index.graph
        if graph.has_links:
            linked = [other for row in rows.tolist() for other in graph.links(row)]
            found.append(np.array([row for row in linked if self._view.mask[row]], dtype=np.int64))
        return np.concatenate(found)

    def keys(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row ids in the store."""
        return self._index.table.ids[rows]

    def cosines(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Cosine of each row's best part, from int8 codes."""
        if self._vector is None or self._index.vectors is None:
            return np.zeros(len(rows), dtype=np.float32)
        vector, vectors = self._vector, self._index.vectors
        return self._cosines.of(rows, lambda missing: vectors.row_cosines(vector, missing))

    def exact_cosines(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Cosine of each row's best part, from the float32 originals."""
        if self._vector is None or self._index.vectors is None:
            return np.zeros(len(rows), dtype=np.float32)
        return self._index.vectors.exact_row_cosines(self._vector, rows, self._view.originals)

    def words(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """BM25 of each row."""
        if not len(self._slices.terms):
            return np.zeros(len(rows), dtype=np.float32)
        words, slices, records = self._index.words, self._slices, self._index.table.open_rows
        return self._bm25.of(rows, lambda missing: words.scores_of(slices, records, missing))

    def carried(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(rows, words): which of the query's known words each row carries."""
        return self._index.words.carried(self._slices, rows)

    def activation(self, rows: NDArray[np.int64], scores: NDArray[np.float64]) -> Activation:
        """One step of spreading activation among these rows, which ascend."""
        graph = self._index.graph
        by_chain, company = kernels.spread_chain(scores, rows, graph.previous, graph.next, self._view.mask, _NEAR, _FAR)
        if not graph.has_links:
            return Activation(by_chain, np.zeros(len(rows)), company, np.zeros(len(rows), dtype=np.bool_))
        places = {row: place for place, row in enumerate(rows.tolist())}
        edges = [
            [(places[other], strength) for other, strength in graph.links(row).items() if other in places]
            for row in places
        ]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in edges], out=offsets[1:])
        targets = np.array([place for each in edges for place, _ in each], dtype=np.int64)
        strengths = np.array([strength for each in edges for _, strength in each], dtype=np.float64)
        by_link = kernels.spread(scores, offsets, targets, strengths)
        return Activation(by_chain, by_link, company, np.diff(offsets) > 0)

    def sources(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Source of each row, -1 for none."""
        sources: NDArray[np.int64] = self._index.table.sources[rows]
        return sources

    def created_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """When the store learnt each row."""
        return self._index.table.created_at[rows]

    def importance(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Importance of each row."""
        return self._index.table.importance[rows].astype(np.float64)

    def _beside(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The visible rows one and two places before and after these in their sources."""
        graph = self._index.graph
        beside = []
        for links in (graph.previous, graph.next):
            once = links[rows]
            once = once[once >= 0]
            twice = links[once]
            beside += [once, twice[twice >= 0]]
        found: NDArray[np.int64] = np.concatenate(beside).astype(np.int64)
        visible: NDArray[np.int64] = found[self._view.mask[found] == 1]
        return visible
