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
    """The visible rows, int64 ascending, of standing instructions and preferences, which are instructions, and their
    row ids in the store.
    """

    rows: NDArray[np.int64]
    instructions: NDArray[np.bool_]
    keys: frozenset[int]


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
        """The stored float32 vectors with these row ids, in their order."""
        assert self._embedder is not None
        with self._lock:
            return self._reader.blocks.exact_vectors(self._embedder.dimension, vector_ids)

    def contexts(self, keys: NDArray[np.int64]) -> list[str | None]:
        """The context of each of these records."""
        with self._lock:
            return self._reader.records.contexts(keys)

    def texts(self, keys: NDArray[np.int64]) -> list[str]:
        """The text of each of these records."""
        with self._lock:
            found = self._reader.records.fetch(keys.tolist())
        return [found[key].text for key in keys.tolist()]

    def frames(self, keys: NDArray[np.int64]) -> NDArray[np.uint32]:
        """What each of these records states: frames and values, uint32 (records, `MAX_FRAMES`, 2), 0 for none."""
        with self._lock:
            return self._reader.statements.frames(keys)

    def superseded(self, keys: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Row ids, old and new, of the standing supersessions of these records."""
        with self._lock:
            return [(each.old_id, each.new_id) for each in self._reader.supersessions.of_old(keys.tolist())]

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
        embedder = engine.index.kept("embedder", None, reader.vectors.active_embedder)
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
        hidden=superseded_rows(engine, reader, request),
        as_of=chosen.as_of,
        scopes=tuple(reader.scopes.within(chosen.scopes)) if chosen.scopes else None,
        kinds=chosen.kinds or (),
        since=chosen.since,
        until=chosen.until,
        held_at=chosen.held_at,
        listed=listed,
    )
    return engine.index.selection(visible, rest)


def superseded_rows(engine: Engine, reader: Reader, request: Request) -> NDArray[np.int64] | None:
    """The rows that the request does not see since they are superseded; None where there are none."""
    chosen, index = request.filter, engine.index
    if chosen.include_superseded and chosen.held_at is None:
        return None
    known_at, held_at = chosen.as_of, chosen.held_at
    rows = index.table.superseded_rows(known_at, held_at)
    if len(rows):
        lapsed = reader.supersessions.lapsed(request.now if known_at is None else known_at)
        if lapsed:
            rows = np.setdiff1d(rows, index.table.rows_of(np.array(lapsed, dtype=np.int64)))
    if known_at is not None:
        undone = index.rows(("undone", known_at, held_at), partial(reader.supersessions.undone, known_at, held_at))
        rows = np.union1d(rows, undone) if len(undone) else rows
    return rows if len(rows) else None


def find_standing(engine: Engine, reader: Reader, selection: Selection, request: Request) -> StandingRows | None:
    """The standing instructions and preferences that the selection admits; none beside groups, or in a story."""
    if request.profile.standing == 0 or request.group_by is not None or request.spread_over is not None:
        return None
    found = engine.index.kept("standing", id(selection), lambda: (_standing_rows(engine, reader, selection), selection))
    return found[0] if len(found[0].rows) else None


def _standing_rows(engine: Engine, reader: Reader, selection: Selection) -> StandingRows:
    found = [engine.index.rows(("standing", name), partial(reader.records.standing_ids, name)) for name in STANDING]
    if selection.mask is not None:
        found = [rows[selection.mask[rows] == 1] for rows in found]
    rows = np.concatenate(found)
    order = np.argsort(rows)
    keys = frozenset(engine.index.table.ids[rows].tolist())
    return StandingRows(rows[order], order < len(found[STANDING.index("instruction")]), keys)


def _statistics_scopes(reader: Reader, request: Request) -> tuple[int, ...] | None:
    """The scopes whose records give words their IDF: all of the handle's, whatever the filter; None is every scope."""
    base = request.filter.base
    return None if base == "/" else tuple(reader.scopes.within((base,)))
