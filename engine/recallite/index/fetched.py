"""An index of a few records, which a store has found, with the figures of all: it serves one recall."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recallite.index.corpus_statistics import CorpusStatistics
from recallite.index.loading import aligned
from recallite.index.memory_index import MemoryIndex
from recallite.index.vectors import VectorIndex
from recallite.store.candidates import CandidateSearch, Chains
from recallite.store.transaction import Reader
from recallite.store.values import EmbedderRow, LinkBlock
from recallite.system.numerics import kernels

SERVER_FROM = 3_000_000
"""The number of records from which on a server finds the candidates, if the settings leave it open."""
# The figures of all records are counted again when so large a share of them may have changed: a word that is in 1 %
# more records has an IDF that is 0.01 less.
_CHANGED_SHARE = 0.01
_KEPT_SCOPES = 64


def index_of(
    reader: Reader, embedder: EmbedderRow | None, ids: Sequence[int], chains: Chains, links: LinkBlock
) -> MemoryIndex:
    """An index of these records, ids ascending, with what chains and links them, at the commit that `reader` sees.

    It follows no changes and has no `commit`: other records may be in the store.
    """
    index = MemoryIndex()
    columns = reader.blocks.columns(ids)
    index.table.append(columns)
    index.table.put_frames(columns.ids, reader.statements.frames(columns.ids))
    index.words.extend(aligned(reader.blocks.terms(ids), columns.ids), index.table.open)
    before, after = index.table.rows_of(chains.before), index.table.rows_of(chains.after)
    known = (before >= 0) & (after >= 0)
    index.graph.load_chains(before[known], after[known])
    if embedder is not None:
        index.embedder_id, index.vectors = embedder.id, VectorIndex(embedder.dimension)
        index.vectors.add_rows(len(index.table))
        index.vectors.extend(reader.blocks.vectors(embedder.id, embedder.dimension, ids), index.table.rows_of)
        vector_ids = index.vectors.ids(np.arange(len(index.vectors)))
        index.tokens.extend(vector_ids, reader.blocks.token_codes(vector_ids))
    sources, targets = index.table.rows_of(links.sources), index.table.rows_of(links.targets)
    known = (sources >= 0) & (targets >= 0)
    if known.any():
        index.graph.add_links(sources[known], targets[known], links.strengths[known])
    return index


class CountedStatistics(CorpusStatistics):
    """Statistics of records that are not in the index, as the store counted them."""

    def __init__(self, records: int, average_length: float) -> None:
        super().__init__(records, records * average_length)
        self.counted: dict[int, int] = {}

    def frequencies(self, terms: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]]:
        """The counts of the store: the postings are those of the index alone, and say nothing of it."""
        counted = [self.counted.get(term, kernels.ABSENT) for term in terms.tolist()]
        nothing = np.empty(0, dtype=np.uint8)
        return np.array(counted, dtype=np.int64), nothing, nothing


class _Kept(NamedTuple):
    changes: int
    statistics: CountedStatistics


class CorpusFigures:
    """The statistics of the scopes that were asked for last, counted again when a hundredth may have changed;
    and whether the store has indexes.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}
        self._ready: set[int | None] = set()
        self._lock = threading.Lock()

    def ready(self, search: CandidateSearch, embedder: EmbedderRow | None) -> bool:
        """Whether the store has the indexes; asked until it has."""
        key = None if embedder is None else embedder.id
        if key not in self._ready and search.ready(embedder):
            self._ready.add(key)
        return key in self._ready

    def of(
        self, search: CandidateSearch, scopes: tuple[int, ...] | None, terms: Sequence[int] = ()
    ) -> CountedStatistics:
        """The statistics of these scopes, None for all, with the counts of these words."""
        changes = search.changes()
        with self._lock:
            entry = self._kept.get(scopes)
            if entry is None or abs(changes - entry.changes) > _CHANGED_SHARE * entry.statistics.records:
                counts = search.corpus(scopes)
                entry = _Kept(changes, CountedStatistics(counts.records, counts.average_length))
                self._kept.pop(scopes, None)
                while len(self._kept) >= _KEPT_SCOPES:
                    del self._kept[next(iter(self._kept))]
                self._kept[scopes] = entry
            counted = entry.statistics.counted
            # A word that nothing has may be remembered next: it is asked for again.
            missing = [term for term in terms if counted.get(term, -1) <= 0]
            if missing:
                counted.update(search.frequencies(scopes, missing))
        return entry.statistics
