"""A recall whose candidates the store finds: for stores that are larger than the memory of a process.

The store lists the records nearest by vector and those with the rarest words, under the whole filter; or all that the
filter admits, where these are few. Then their neighbours join. An index of these alone, with the word counts of
all records, goes through the pipeline that the index of a whole store goes through.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.index.fetched import CountedStatistics, index_of
from recallite.index.lexical import K1, B
from recallite.index.memory_index import MemoryIndex, Selection
from recallite.model.expressions import And, Comparison
from recallite.model.filters import Filter
from recallite.recall.asking import read_question
from recallite.recall.plan import EXPANDED
from recallite.recall.query import Queries, check_comparable
from recallite.recall.request import Request
from recallite.store.candidates import CandidateSearch, Chains
from recallite.store.transaction import Reader
from recallite.store.values import EmbedderRow, LinkBlock
from recallite.system.numerics import kernels
from recallite.text.standing import STANDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recallite.index.fetched import CountedStatistics

# Reading a record takes as long as visiting this number in the graph, some of which a filter leaves.
_READ_COST = 1.0
_FEW, _MANY = 1_000, 20_000
# Up to this number of records that have a word are scored; more frequent words are looked for together only.
_POSTINGS = 20_000
# So many standing instructions and preferences are all looked at, of more those nearest to the query.
_FEW_STANDING, _STANDING_NEAREST = 500, 16


class Fetched(NamedTuple):
    """Candidates as an index; rows of standing instructions and preferences, ascending, and which are instructions."""

    memory_index: MemoryIndex
    selection: Selection
    statistics: CountedStatistics
    standing: NDArray[np.int64]
    instructions: NDArray[np.bool_]
    embedder: EmbedderRow | None


def fetched(
    engine: Engine,
    reader: Reader,
    queries: Queries,
    request: Request,
    scopes: tuple[int, ...] | None,
    watched: int | None = None,
) -> Fetched:
    """The candidates of these queries, with the record `watched`.

    Words are weighed by the records of `scopes`, None for all.
    """
    search = reader.candidates
    assert search is not None
    embedder = reader.vectors.active_embedder()
    check_comparable(queries, embedder, engine.store.path)
    generation = -1 - int(reader.snapshot.identity().lexicon_epoch or 0)
    words = [_known(reader, generation, text) for text in queries.texts] if request.mode != "vector" else []
    terms = sorted({number for question_words in words for number in question_words.numbers})
    statistics = engine.figures.of(search, scopes, terms)
    finding = _Finding(engine, search, embedder, statistics, request)
    listed, seeds = finding.candidates(queries, words)
    standing, instructions = finding.standing(queries)
    ids = np.unique(np.concatenate([listed, standing, np.array([] if watched is None else [watched], dtype=np.int64)]))
    chains, links = search.chains(ids), reader.blocks.links(ids.tolist())
    every = np.union1d(ids, _between(chains, ids) if seeds is None else _beside(chains, links, seeds))
    index = index_of(reader, embedder, every.tolist(), chains, links)
    index.origin = finding.origin
    index.generation = generation
    mask = index.table.listing(np.sort(search.admitted(request.filter, request.now, every)).tolist())
    rows = index.table.rows_of(standing)
    return Fetched(index, Selection(mask), statistics, rows, np.isin(standing, instructions), embedder)


class _Known(NamedTuple):
    """The numbers of a question's known words, and the share of texts in general that contain each."""

    numbers: list[int]
    shares: list[float]


def _known(reader: Reader, generation: int, text: str) -> _Known:
    question = read_question(text)
    numbers = reader.lexicon.recalled(question.words, generation)
    known = [word in numbers for word in question.words]
    return _Known([numbers[word] for word in compress(question.words, known)], [*compress(question.shares, known)])


class _Finding:
    """The questions to the store for one view."""

    def __init__(
        self,
        engine: Engine,
        search: CandidateSearch,
        embedder: EmbedderRow | None,
        statistics: CountedStatistics,
        request: Request,
    ) -> None:
        self._path, self._figures = engine.store.path, engine.figures
        self._search, self._embedder, self._statistics, self._request = search, embedder, statistics, request
        self._filter, self._now = request.filter, request.now
        # How the candidates were found.
        self.origin = "server: every record that the filter admits"

    def candidates(
        self, queries: Queries, words: Sequence[_Known]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Row ids of the candidates, and of those whose neighbours may become candidates too.

        None for those where the candidates are every record that the filter admits.
        """
        request, records = self._request, self._statistics.records
        most = int(min(max(_FEW, (_READ_COST * request.wanted * records) ** 0.5), _MANY))
        if records <= most or not self._filter.scopes_only or self._filter.scopes not in ((), (self._filter.base,)):
            few = self._search.listed(self._filter, self._now, most)
            if few is not None:
                return few, None
        if not self._figures.ready(self._search, self._embedder):
            raise InvalidInput(
                f"{self._path} has no indexes to find candidates by: run recallite --db {self._path} warmup with "
                "candidates=server in the address, or give candidates=memory there"
            )
        self.origin = "server: the nearest by HNSW and those with the rarest words by GIN"
        lists = []
        if queries.vectors is not None and self._embedder is not None:
            lists += [self._nearest(self._filter, vector, request.wanted) for vector in queries.vectors]
        lists += [self._with_words(question_words) for question_words in words]
        depth = EXPANDED if request.profile.neighbor_boost > 0 else 0
        empty = np.empty(0, dtype=np.int64)
        return (
            np.unique(np.concatenate([empty, *lists])),
            np.unique(np.concatenate([empty, *(ids[:depth] for ids in lists)])),
        )

    def _with_words(self, words: _Known) -> NDArray[np.int64]:
        """The records that the filter admits and that have the rarest of these words, best first."""
        counted, wanted = self._statistics.counted, self._request.wanted
        numbers = np.array(words.numbers, dtype=np.int64)
        frequency = np.array([counted.get(term, -1) for term in words.numbers], dtype=np.int64)
        idf = kernels.smoothed_idf(self._statistics.records, np.maximum(frequency, 0), np.array(words.shares))
        order = [place for place in np.argsort(frequency, kind="stable").tolist() if frequency[place] >= 0]
        rare = [place for place, sum in zip(order, np.cumsum(frequency[order]), strict=True) if sum <= _POSTINGS]
        common = order[len(rare) :]
        scored = _Scored(self._statistics.average_length)
        by_term = self._search.with_each(numbers[rare].tolist()) if rare else {}
        for place in rare:
            scored.add(*by_term[int(numbers[place])], float(idf[place]))
        best = self._best_admitted(scored, wanted)
        # Frequent words are looked for together: as many of them as bring records.
        for count in range(len(common), 0, -1):
            if len(best) >= wanted:
                break
            joint = common[:count]
            scored.add(*self._search.with_all(numbers[joint].tolist(), _POSTINGS), float(idf[joint].sum()))
            best = self._best_admitted(scored, wanted)
        return best

    def _best_admitted(self, scored: _Scored, wanted: int) -> NDArray[np.int64]:
        """The best `wanted` that the filter admits; only as many are looked at as are needed."""
        ids = scored.best_first()
        best, start, size = ids[:0], 0, wanted + wanted // 4
        while start < len(ids) and len(best) < wanted:
            some = ids[start : start + size]
            admitted = self._search.admitted(self._filter, self._now, some)
            best = np.concatenate([best, some[np.isin(some, admitted)]])
            start, size = start + size, 4 * size
        return best[:wanted]

    def _standing(self, names: tuple[str, ...]) -> Filter:
        only = Comparison("standing", "in", names)
        where = self._filter.where
        return self._filter.replaced(where=only if where is None else And((where, only)))

    def standing(self, queries: Queries) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row ids of the standing instructions and preferences that may be brought, and of instructions that are few.

        Where there are many, they are those nearest to the queries.
        """
        request, none = self._request, np.empty(0, dtype=np.int64)
        if request.profile.standing_instructions == 0 or request.one_per_source or request.diversify_by is not None:
            return none, none
        every = self._standing(STANDING)
        ids = self._search.listed(every, self._now, _FEW_STANDING)
        if ids is not None and not len(ids):
            return none, none
        instructions = self._search.listed(
            self._standing(("instruction",)), self._now, request.profile.standing_instructions
        )
        if instructions is None:
            instructions = none
        if ids is None:
            vectors = queries.vectors if queries.vectors is not None and self._embedder is not None else ()
            near = [self._nearest(every, vector, _STANDING_NEAREST) for vector in vectors]
            ids = np.unique(np.concatenate([instructions, *near]))
        return ids, instructions

    def _nearest(self, filter_: Filter, vector: NDArray[np.float32], most: int) -> NDArray[np.int64]:
        assert self._embedder is not None
        return self._search.nearest(filter_, self._now, self._embedder, vector, most)


class _Scored:
    """Records by the IDF of the words that they have and by their length, as BM25 counts words that occur once."""

    def __init__(self, average_length: float) -> None:
        self._average_length = average_length
        self._ids: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        self._scores: list[NDArray[np.floating[Any]]] = [np.empty(0)]

    def add(self, ids: NDArray[np.int64], sizes: NDArray[np.int64], idf: float) -> None:
        """Add the records that have a word, with how many words each has."""
        self._ids.append(ids)
        self._scores.append(idf / (1 + K1 * (1 - B + B * sizes / self._average_length)))

    def best_first(self) -> NDArray[np.int64]:
        """All of them in order; of equal ones the oldest first."""
        ids, owners = np.unique(np.concatenate(self._ids), return_inverse=True)
        total = np.bincount(owners, weights=np.concatenate(self._scores), minlength=len(ids))
        return ids[np.lexsort((ids, -total))]


def _beside(chains: Chains, links: LinkBlock, seeds: NDArray[np.int64]) -> NDArray[np.int64]:
    """The records at most two places away from the seeds, and those that are linked to them."""
    near = seeds
    for _ in range(2):
        after, before = chains.after[np.isin(chains.before, near)], chains.before[np.isin(chains.after, near)]
        near = np.concatenate([near, after, before])
    linked = np.isin(links.sources, seeds) | np.isin(links.targets, seeds)
    return np.concatenate([near, links.sources[linked], links.targets[linked]])


def _between(chains: Chains, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The records with one of these before and one after them: through them the two are two places apart."""
    after, before = chains.after[np.isin(chains.before, ids)], chains.before[np.isin(chains.after, ids)]
    return np.intersect1d(after, before)
