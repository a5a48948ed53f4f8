"""The store at one commit: the index under the request's filter, and a loader for what is not in the index."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.engine import Engine
from recollect.filters import Versions
from recollect.index.memory_index import Selection
from recollect.index.query_batch import IndexView
from recollect.index.table import RowFilter
from recollect.recall.query import Queries, check_comparable
from recollect.recall.request import Request
from recollect.store.protocol import Reader
from recollect.store.values import EmbedderRow, TermBlock
from recollect.text.standing import STANDING

if TYPE_CHECKING:
    from numpy.typing import NDArray


class StandingRows(NamedTuple):
    """The visible rows, int64 ascending, of standing instructions and preferences, and which are instructions."""

    rows: NDArray[np.int64]
    instructions: NDArray[np.bool_]


class RecordLoader:
    """What recall reads from the store while it runs; one reader, so one thread at a time.

    `standing` are the rows that may be brought after the hits; None where none is wanted or there is none.
    """

    def __init__(self, reader: Reader, embedder: EmbedderRow | None, standing: StandingRows | None) -> None:
        self._reader, self._embedder = reader, embedder
        self.standing = standing
        self._lock = threading.Lock()

    @property
    def embedder(self) -> str | None:
        """The name of the embedder whose vectors the store holds."""
        return None if self._embedder is None else self._embedder.name

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
        selection = select_rows(engine, reader, request)
        loader = RecordLoader(reader, embedder, find_standing(engine, reader, selection, request))
        statistics = engine.index.corpus_statistics(_statistics_scopes(reader, request))
        yield IndexView(engine.index, selection, statistics, loader.originals), loader


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


def find_standing(engine: Engine, reader: Reader, selection: Selection, request: Request) -> StandingRows | None:
    """The standing instructions and preferences that the selection admits; none beside groups, or in a story."""
    if request.profile.standing == 0 or request.group_by is not None or request.spread_over is not None:
        return None
    found = [engine.index.rows(("standing", name), partial(reader.records.standing_ids, name)) for name in STANDING]
    if selection.mask is not None:
        found = [rows[selection.mask[rows] == 1] for rows in found]
    rows = np.concatenate(found)
    if not len(rows):
        return None
    order = np.argsort(rows)
    return StandingRows(rows[order], order < len(found[STANDING.index("instruction")]))


def _statistics_scopes(reader: Reader, request: Request) -> tuple[int, ...] | None:
    """The scopes whose records give words their IDF: all of the handle's, whatever the filter; None is every scope."""
    base = request.filter.base
    return None if base == "/" else tuple(reader.scopes.within((base,)))
