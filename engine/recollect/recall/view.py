"""The store at one commit: the index under the request's filter, and a loader for what is not in the index."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from recollect.engine import Engine
from recollect.filters import Versions
from recollect.index.memory_index import Selection
from recollect.index.query_batch import IndexView
from recollect.index.table import RowFilter
from recollect.recall.query import Queries, check_comparable
from recollect.recall.request import Request
from recollect.store.protocol import Reader
from recollect.store.values import EmbedderRow, TermBlock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RecordLoader:
    """What recall reads from the store while it runs; one reader, so one thread at a time."""

    def __init__(self, reader: Reader, embedder: EmbedderRow | None) -> None:
        self._reader, self._embedder = reader, embedder
        self._lock = threading.Lock()

    def originals(self, vector_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The stored float32 vectors with these ascending row ids."""
        assert self._embedder is not None
        with self._lock:
            return self._reader.blocks.exact_vectors(self._embedder.dimension, vector_ids)

    def contexts(self, keys: NDArray[np.int64]) -> list[str | None]:
        """The context of each of these records."""
        with self._lock:
            return self._reader.records.contexts(keys)

    def terms(self, keys: NDArray[np.int64]) -> TermBlock:
        """The words of these records."""
        with self._lock:
            return self._reader.blocks.terms(keys.tolist())


@contextmanager
def open_view(
    engine: Engine, reader: Reader, queries: Queries, request: Request
) -> Iterator[tuple[IndexView, RecordLoader]]:
    """The index at this read transaction's commit, under the request's filter."""
    with engine.index.current(reader):
        embedder = reader.vectors.active_embedder()
        check_comparable(queries, embedder, engine.store.path)
        loader = RecordLoader(reader, embedder)
        statistics = engine.index.corpus_statistics(_statistics_scopes(reader, request))
        yield IndexView(engine.index, select_rows(engine, reader, request), statistics, loader.originals), loader


def select_rows(engine: Engine, reader: Reader, request: Request) -> Selection:
    """The rows that the request's filter admits at the index's commit."""
    chosen = request.filter
    listed, rest = None, chosen.unindexed
    if rest is not None:
        versions: Versions = "open" if chosen.as_of is None else "any"
        key = rest, versions
        listed = engine.index.listing(key, partial(reader.records.matching_ids, rest, request.now, versions=versions))
    visible = RowFilter(
        now=request.now,
        as_of=chosen.as_of,
        scopes=tuple(reader.scopes.within(chosen.scopes)) if chosen.scopes else None,
        kinds=chosen.kinds or (),
        since=chosen.since,
        until=chosen.until,
        listed=listed,
    )
    return engine.index.selection(visible, rest)


def _statistics_scopes(reader: Reader, request: Request) -> tuple[int, ...] | None:
    """The scopes whose records give words their IDF: all of the handle's, whatever the filter; None is every scope."""
    base = request.filter.base
    return None if base == "/" else tuple(reader.scopes.within((base,)))
