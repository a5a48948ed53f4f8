"""Questions answered from the in-memory index."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

import recollect_kernels as kernels
from recollect.index.protocol import Neighborhood

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.lexical import Slices
    from recollect.index.memory_index import MemoryIndex
    from recollect.index.table import Visible
    from recollect.store.loading import VectorBlock

__all__ = ["MemoryQuestion", "MemoryView"]

# How much of a neighbour's activation arrives: from one place away, and from two.
_REACH = np.array([1.0, 1.0, 0.7, 0.7])

ExactVectors = Callable[["NDArray[np.int64]"], "VectorBlock"]


class MemoryView:
    """The index under one filter. Use it while holding `index.lock.reading()`."""

    def __init__(self, index: MemoryIndex, visible: Visible, exact_vectors: ExactVectors) -> None:
        self.index = index
        self.mask = index.table.mask(visible)
        self.vector_mask = None if index.vectors is None else self.mask[index.vectors.owners]
        self.exact_vectors = exact_vectors

    def ask(self, vector: NDArray[np.float32] | None, terms: NDArray[np.int32], words: Sequence[str]) -> MemoryQuestion:
        """One query: a unit vector or None, and the numbers of its known words, and those words."""
        return MemoryQuestion(self, vector, terms)

    def visible_rows(self) -> NDArray[np.int64]:
        """Every row that the filter admits."""
        return np.flatnonzero(self.mask)


class MemoryQuestion:
    """One query under one filter; see `Question`."""

    def __init__(self, view: MemoryView, vector: NDArray[np.float32] | None, terms: NDArray[np.int32]) -> None:
        self._view = view
        self._index = view.index
        self._vector = vector if view.index.vectors is not None else None
        table = view.index.table
        self._slices: Slices = view.index.words.slices(terms, table.open_rows, None if table.all_open else table.open)
        self._bm25: NDArray[np.float32] | None = None

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
        if vectors is None or mask is None or self._vector is None:
            return np.empty(0, dtype=np.int64)
        rows = np.empty(0, dtype=np.int64)
        # A record's parts may crowd others out: ask again for more until there are enough records.
        for factor in (1, 4, 16, 64):
            places, _ = vectors.nearest(self._vector, mask, wanted * factor)
            owners = vectors.owners[places]
            rows = owners[np.sort(np.unique(owners, return_index=True)[1])][:wanted]
            if len(rows) == wanted or len(places) < wanted * factor:
                break
        return rows

    def best_words(self, wanted: int) -> NDArray[np.int64]:
        """The `wanted` visible rows with the best BM25 above 0."""
        if not len(self._slices.terms):
            return np.empty(0, dtype=np.int64)
        rows, scores = kernels.top_k(self._scores(), wanted, self._view.mask)
        return rows[scores > 0]

    def neighbors(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Visible rows beside these."""
        beside = self._beside(rows).ravel()
        found = [beside[beside >= 0]]
        graph = self._index.graph
        if graph.has_links:
            linked = [other for row in rows.tolist() for other in graph.links(row)]
            found.append(np.array([row for row in linked if self._view.mask[row]], dtype=np.int64))
        return np.unique(np.concatenate(found))

    def keys(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row ids in the store."""
        return self._index.table.ids[rows]

    def cosines(self, rows: NDArray[np.int64], *, exact: int) -> NDArray[np.float32]:
        """Cosine of each row's best part; the best `exact` from the float32 originals."""
        if self._vector is None or self._index.vectors is None or not len(rows):
            return np.zeros(len(rows), dtype=np.float32)
        cosines = self._index.vectors.row_cosines(self._vector, rows)
        if exact:
            head, _ = kernels.top_k(cosines, min(exact, len(rows)))
            head = np.sort(head)
            block = self._view.exact_vectors(self._index.table.ids[rows[head]])
            values = block.values @ self._vector
            keys, starts = np.unique(block.owners, return_index=True)
            places = np.searchsorted(keys, self._index.table.ids[rows[head]])
            if len(keys) == len(head):
                cosines[head] = np.maximum.reduceat(values, starts)[places]
        return cosines

    def words(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """BM25 of each row."""
        if not len(self._slices.terms):
            return np.zeros(len(rows), dtype=np.float32)
        return self._scores()[rows]

    def carried(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(rows, words): which of the query's known words each row carries."""
        return self._index.words.carried(self._slices, rows)

    def neighborhood(self, rows: NDArray[np.int64]) -> Neighborhood:
        """The edges among these rows, which ascend, and the company of each."""
        graph, count = self._index.graph, len(rows)
        beside = self._beside(rows)
        companions = np.minimum(1 + (beside >= 0).sum(axis=0), 3)
        own = np.arange(count, dtype=np.int64)
        origins = [np.tile(own, len(_REACH))]
        targets = [beside.ravel()]
        strengths = [np.repeat(_REACH, count)]
        chained = len(_REACH) * count
        if graph.has_links:
            links = [(place, graph.links(row)) for place, row in enumerate(rows.tolist())]
            origins.append(np.array([place for place, edges in links for _ in edges], dtype=np.int64))
            targets.append(np.array([other for _, edges in links for other in edges], dtype=np.int64))
            strengths.append(np.array([strength for _, edges in links for strength in edges.values()]))
        origin, target = np.concatenate(origins), np.concatenate(targets)
        place = np.minimum(np.searchsorted(rows, target), count - 1)
        inside = np.flatnonzero((target >= 0) & (rows[place] == target))
        inside = inside[np.argsort(origin[inside], kind="stable")]
        offsets = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(origin[inside], minlength=count), out=offsets[1:])
        return Neighborhood(offsets, place[inside], np.concatenate(strengths)[inside], inside >= chained, companions)

    def sources(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Source of each row, -1 for none."""
        return self._index.table.sources[rows]

    def created_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """When the store learnt each row."""
        return self._index.table.created_at[rows]

    def importance(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Importance of each row."""
        return self._index.table.importance[rows].astype(np.float64)

    def _beside(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(4, rows): the rows one and two places before and after in the source; -1 for none or hidden."""
        graph, mask = self._index.graph, self._view.mask
        before, after = graph.previous[rows], graph.next[rows]
        beside = np.stack(
            [
                before,
                after,
                np.where(before >= 0, graph.previous[before], -1),
                np.where(after >= 0, graph.next[after], -1),
            ]
        ).astype(np.int64)
        return np.where((beside >= 0) & (mask[beside] == 1), beside, -1)

    def _scores(self) -> NDArray[np.float32]:
        if self._bm25 is None:
            self._bm25 = self._index.words.scores(self._slices, self._index.table.open_rows)
        return self._bm25
