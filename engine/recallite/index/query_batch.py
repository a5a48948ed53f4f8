"""A batch of queries against the in-memory index, under one filter and at one commit.

A batch numbers records by `rows`, which mean something only to the index as it is now; `keys` gives their row ids in
the store. What belongs to several queries is kept in flat arrays: query i has the entries from offsets[i] to
offsets[i + 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.store.values import NEVER
from recallite.system.numerics import kernels
from recallite.system.parallel import run_tasks
from recallite.text.vocabulary import share_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from recallite.index.corpus_statistics import CorpusStatistics
    from recallite.index.lexical import QueryTerms
    from recallite.index.memory_index import MemoryIndex, Selection
    from recallite.index.vectors import Originals


_EVERYTHING = np.empty(0, dtype=np.uint8)
_NO_WORDS = np.empty(0, dtype=np.int32)
_NO_MOMENTS = np.empty(0, dtype=np.int64)
# From this many records on, words are looked up while the vectors are scanned.
_SIDE_BY_SIDE = 200_000


class Found(NamedTuple):
    """The best rows of each query by one signal: rows int64 (q, k) and values float32 (q, k), best first.

    Of query i the first counts[i] are valid.
    """

    rows: NDArray[np.int64]
    values: NDArray[np.float32]
    counts: NDArray[np.int64]

    @classmethod
    def nothing(cls, queries: int) -> Found:
        """No rows for any query."""
        rows, values = np.empty((queries, 0), dtype=np.int64), np.empty((queries, 0), dtype=np.float32)
        return cls(rows, values, np.zeros(queries, dtype=np.int64))


Span = tuple[int, int, int]
"""The begin and the end of a time, and how long after it a time still counts; microseconds."""


class QueryCodes(NamedTuple):
    """Codes of the tokens of some queries: uint64 (t, words), with the shares weights float32 (t,), of `width` bits.

    Query i has the tokens from offsets[i] to offsets[i + 1].
    """

    codes: NDArray[np.uint64]
    weights: NDArray[np.float32]
    offsets: NDArray[np.int64]
    width: int


class _Columns(NamedTuple):
    """What the kernels take of all records; made once until the index changes."""

    codes: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8], NDArray[np.float32]] | tuple[()]
    graph: kernels.Graph
    records: kernels.Records

    @classmethod
    def of(cls, index: MemoryIndex) -> _Columns:
        """Those of an index as it is now."""
        table, graph = index.table, index.graph
        records = kernels.Records(
            table.ids, table.created_at, table.importance, table.moments, table.moments_until, table.resolved,
            index.words.speakers,
        )  # fmt: skip
        codes = () if index.vectors is None else index.vectors.codes
        return cls(codes, kernels.Graph(graph.previous, graph.next, table.sources, *graph.links, _EVERYTHING), records)


class IndexView:
    """The index under one filter, with the statistics that weigh words. Valid while `index.lock.reading()` is held."""

    def __init__(
        self, index: MemoryIndex, selection: Selection, statistics: CorpusStatistics, originals: Originals
    ) -> None:
        self.index, self.selection, self.statistics, self.originals = index, selection, statistics, originals

    def batch(
        self, vectors: NDArray[np.float32] | None, terms: Sequence[QueryTerms], spans: Sequence[Sequence[Span]]
    ) -> QueryBatch:
        """A batch of queries: unit vectors (q, dimension) or None, the numbers of their known words, and the spans of
        time that they name.
        """
        return QueryBatch(self, vectors, terms, spans)

    def visible_rows(self) -> NDArray[np.int64]:
        """Every row that the filter admits, ascending."""
        mask = self.selection.mask
        return np.arange(len(self.index.table)) if mask is None else np.flatnonzero(mask)


class QueryBatch:
    """Some queries under one filter."""

    def __init__(
        self,
        view: IndexView,
        vectors: NDArray[np.float32] | None,
        terms: Sequence[QueryTerms],
        spans: Sequence[Sequence[Span]],
    ) -> None:
        index = view.index
        self._view, self._index = view, index
        self._mask = view.selection.mask
        self._bytes = _EVERYTHING if self._mask is None else self._mask
        # Kernels are told that their arguments are known to fit.
        known = vectors is not None and index.vectors is not None
        self._vectors = np.ascontiguousarray(vectors, dtype=np.float32) if known else None
        self._count = len(terms)
        self._statistics = view.statistics
        self.slices = index.words.slices(terms, self._statistics)
        self._mentions = _mentions(terms, spans)

    def __len__(self) -> int:
        return self._count

    @property
    def has_vectors(self) -> bool:
        """Whether the queries are compared by vector."""
        return self._vectors is not None

    @property
    def records(self) -> int:
        """Records that words are weighed by: those of the handle's scope."""
        return self._statistics.records

    def unknown_idf(self, words: Sequence[str]) -> list[float]:
        """The IDF of words that no record contains."""
        shares = np.array([share_of(word) for word in words], dtype=np.float64)
        idf: list[float] = self._statistics.idf(np.zeros(len(words)), shares).tolist()
        return idf

    def search(self, wanted: int, *, by_vector: bool, by_words: bool) -> tuple[Found, Found]:
        """The `wanted` visible rows nearest to each query's vector, and those with the best BM25 above 0."""
        index, vectors = self._index, self._vectors
        nearest = best = Found.nothing(self._count)
        tasks: list[Callable[[], object]] = []
        if by_words and len(self.slices.idf):
            tasks.append(lambda: index.words.best(self.slices, self._statistics, self._mask, wanted))
        words = len(tasks)
        if by_vector and vectors is not None and index.vectors is not None:
            tasks += index.vectors.shortlist_tasks(vectors, self._view.selection.places, wanted)
        large = len(index.table) >= _SIDE_BY_SIDE
        results: list[object] = run_tasks(tasks) if large else [task() for task in tasks]
        if words:
            best = Found(*results[0])  # type: ignore[misc]
        if len(tasks) > words:
            nearest = self._rescored(results[words:], wanted)
        return nearest, best

    def _rescored(self, found: list, wanted: int) -> Found:  # type: ignore[type-arg]
        """Shortlists to records: a record with several parts ranks by its best part."""
        vectors, queries = self._index.vectors, self._vectors
        assert vectors is not None
        assert queries is not None
        # The parts of one record may fill the list: ask for more until there are enough records.
        for factor in (1, 4, 16, 64):
            if factor > 1:
                tasks = vectors.shortlist_tasks(queries, self._view.selection.places, wanted * factor)
                found = [task() for task in tasks]
            places, cosines = vectors.rescore(queries, found, wanted * factor)
            rows = vectors.owners(places)
            if not vectors.has_parts:
                return Found(rows, cosines, np.full(len(rows), rows.shape[1], dtype=np.int64))
            firsts = [np.sort(np.unique(each, return_index=True)[1])[:wanted] for each in rows]
            counts = np.array([len(each) for each in firsts], dtype=np.int64)
            if counts.min(initial=wanted) == wanted or places.shape[1] < wanted * factor:
                break
        kept = np.zeros((len(rows), int(counts.max(initial=0))), dtype=np.int64)
        for query, each in enumerate(firsts):
            kept[query, : len(each)] = each
        return Found(np.take_along_axis(rows, kept, axis=1), np.take_along_axis(cosines, kept, axis=1), counts)

    def rank(
        self,
        nearest: Found,
        best: Found,
        ceilings: NDArray[np.float32],
        parameters: kernels.RankParameters,
        rerank: NDArray[np.float64] | None = None,
        tokens: QueryCodes | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Every candidate of each query with its signals: see `recallite_kernels.rank_candidates`.

        Values that are NaN are measured; no measured cosine of query i exceeds ceilings[i], float32 (q,).
        """
        index, columns = self._index, self._columns()
        codes = compared = None
        if self._vectors is not None and index.vectors is not None:
            codes = kernels.Codes(self._vectors, ceilings, *columns.codes)
            if tokens is not None and len(index.tokens.codes):
                own, weights, offsets, width = tokens
                compared = kernels.Tokens(own, weights, offsets, index.tokens.starts, index.tokens.codes, width)
        return kernels.rank_candidates(
            kernels.Lists(*nearest, *best),
            codes,
            index.words.postings(self.slices, self._statistics),
            columns.graph._replace(mask=self._bytes),
            columns.records,
            parameters,
            rerank,
            self._mentions,
            compared,
            checked=True,
        )

    def _columns(self) -> _Columns:
        return self._index.kept("columns", None, partial(_Columns.of, self._index))

    def score_bound_candidates(
        self,
        offsets: NDArray[np.int64],
        rows: NDArray[np.int64],
        floors: NDArray[np.float64],
        word_ceilings: NDArray[np.float64],
        parameters: kernels.RankParameters,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The other visible rows that may reach the floors: see `recallite_kernels.score_bound_candidates`."""
        index = self._index
        codes = sketches = None
        if self._vectors is not None and index.vectors is not None:
            codes = kernels.Codes(self._vectors, np.zeros(self._count, dtype=np.float32), *index.vectors.codes)
            sketches = index.vectors.sketches_of(self._vectors)
        ends, found = kernels.score_bound_candidates(
            offsets, rows, floors, word_ceilings, codes, sketches, self._mask, self._columns().records, parameters
        )
        worded = np.ones(len(found), dtype=bool)
        vectors = index.vectors if codes is not None else None
        bare = np.arange(len(found)) if vectors is None else np.flatnonzero(vectors.parts(found) == 0)
        if len(bare):  # neither a vector nor a word in common with the query
            of_query = np.searchsorted(ends, bare, side="right") - 1
            counts = np.concatenate([[0], np.cumsum(np.bincount(of_query, minlength=self._count))])
            scores = np.full(len(bare), np.nan, dtype=np.float32)
            postings = index.words.postings(self.slices, self._statistics)
            kernels.bm25_for_rows(postings, counts.astype(np.int64), found[bare], scores, checked=True)
            worded[bare] = scores > 0
        kept = np.concatenate([[0], np.cumsum(worded)])
        return kept[ends].astype(np.int64), found[worded]

    def code_errors(self, queries: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The largest error of each row's cosine from int8 codes, against the query of that number."""
        if self._vectors is None or self._index.vectors is None:
            return np.zeros(len(rows))
        reach: NDArray[np.float64] = np.abs(self._vectors.astype(np.float64)).sum(axis=1)
        return 0.5 * reach[queries] * self._index.vectors.steps(rows) + 1e-5

    def exact_cosines(self, queries: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Cosine of each row's best part with the query of that number, from the float32 originals."""
        if self._vectors is None or self._index.vectors is None:
            return np.zeros(len(rows), dtype=np.float32)
        return self._index.vectors.exact_cosines(self._vectors.take(queries, axis=0), rows, self._view.originals)

    def nearest_of(self, rows: NDArray[np.int64], wanted: int, least: float) -> NDArray[np.int64]:
        """Of some ascending rows the `wanted` nearest to each query whose cosine is at least `least`, ascending."""
        vectors = self._index.vectors
        if vectors is None or self._vectors is None:
            return rows[:0]
        return vectors.nearest_of(self._vectors, rows, wanted, least)

    def keys(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row ids in the store."""
        return self._index.table.ids[rows]

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Words of each row."""
        lengths: NDArray[np.float32] = self._index.words.lengths[rows]
        return lengths

    @property
    def word_slices(self) -> kernels.WordSlices:
        """The postings of the queries' words."""
        return self._index.words.word_slices(self.slices)

    def sources(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Source of each row, -1 for none."""
        sources: NDArray[np.int32] = self._index.table.sources[rows]
        return sources

    def positioned(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each row has a position in its source, as turns of a transcript do."""
        positioned: NDArray[np.bool_] = self._index.table.positions.at(rows) != NEVER
        return positioned

    def moments(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """When what each row tells happened, in microseconds."""
        moments: NDArray[np.int64] = self._index.table.moments[rows]
        return moments

    def began(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """When what each row states began to hold, in microseconds.

        That is when it happened, but not after it was told: "the meeting is on Friday" holds from when it was said. A
        time that was found in the text does not put it before what was told earlier: "Dana moved to Bergen last month".
        """
        table = self._index.table
        told: NDArray[np.int64] = table.created_at[rows]
        return np.where(table.resolved[rows] == 1, told, np.minimum(table.moments[rows], told))

    @property
    def any_superseded(self) -> bool:
        """Whether any record has a successor."""
        return self._index.table.any_superseded

    def scopes(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Scope of each row."""
        scopes: NDArray[np.int32] = self._index.table.scopes[rows].astype(np.int32)
        return scopes


def _mentions(terms: Sequence[QueryTerms], spans: Sequence[Sequence[Span]]) -> kernels.Mentions:
    """What the queries name of records: their words, any of which may be a name, and times."""
    names = terms[0].numbers if len(terms) == 1 else np.concatenate([_NO_WORDS, *(each.numbers for each in terms)])
    begins = ends = fades = _NO_MOMENTS
    if any(spans):
        flat = np.array([span for each in spans for span in each], dtype=np.int64)
        begins, ends, fades = np.ascontiguousarray(flat.T)
    return kernels.Mentions(
        names, _offsets([len(each.numbers) for each in terms]), begins, ends, fades, _offsets([*map(len, spans)])
    )


def _offsets(counts: list[int]) -> NDArray[np.int64]:
    return np.array([0, *accumulate(counts)], dtype=np.int64)
