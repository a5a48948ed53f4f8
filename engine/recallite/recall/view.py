"""The store at one commit: the index under the request's filter, and a loader for what is not in the index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recallite.engine import Engine
from recallite.index.memory_index import MemoryIndex, Selection
from recallite.index.query_batch import IndexView
from recallite.index.table import RowFilter
from recallite.model.filters import Versions
from recallite.recall.query import Queries, check_comparable
from recallite.recall.record_loader import RecordLoader, StandingRows
from recallite.recall.request import Request
from recallite.recall.server_candidates import fetched_view
from recallite.store.protocol import Reader
from recallite.text.standing import STANDING

if TYPE_CHECKING:
    from numpy.typing import NDArray


def apart(engine: Engine, reader: Reader, queries: Queries, request: Request, *, decomposed: bool) -> list[Queries]:
    """The queries by the views that they share: all share the index; candidates from the server are of one query."""
    if decomposed or len(queries.texts) < 2 or not engine.server_finds(reader, _statistics_scopes(reader, request)):
        return [queries]
    return [queries.only(place) for place in range(len(queries.texts))]


@contextmanager
def open_view(
    engine: Engine, reader: Reader, queries: Queries, request: Request, watched: int | None = None
) -> Iterator[tuple[IndexView, RecordLoader]]:
    """The index at this read transaction's commit, under the request's filter; or one of candidates from the server.

    That has the record `watched` too, whether it is a candidate or not.
    """
    scopes = _statistics_scopes(reader, request)
    if engine.server_finds(reader, scopes):
        yield fetched_view(engine, reader, queries, request, scopes, watched)
        return
    index = engine.index_within(request.filter.base)
    with index.current(reader):
        embedder = index.kept("embedder", None, reader.vectors.active_embedder)
        check_comparable(queries, embedder, engine.store.path)
        selection = select_rows(index, reader, request)
        loader = RecordLoader(reader, embedder, find_standing(index, reader, selection, request))
        statistics = index.corpus_statistics(scopes)
        yield IndexView(index, selection, statistics, loader.originals), loader


def select_rows(index: MemoryIndex, reader: Reader, request: Request) -> Selection:
    """The rows that the request's filter admits at the index's commit."""
    chosen = request.filter
    listed, rest = None, chosen.unindexed
    if rest is not None:
        versions: Versions = "open" if chosen.as_of is None else "any"
        key = rest, versions
        listed = index.listing(key, partial(reader.records.matching_ids, rest, request.now, versions=versions))
    visible = RowFilter(
        now=request.now,
        hidden=superseded_rows(index, reader, request),
        as_of=chosen.as_of,
        scopes=tuple(reader.scopes.within(chosen.scopes)) if chosen.scopes else None,
        kinds=chosen.kinds or (),
        since=chosen.since,
        until=chosen.until,
        held_at=chosen.held_at,
        listed=listed,
    )
    return index.selection(visible, rest)


def superseded_rows(index: MemoryIndex, reader: Reader, request: Request) -> NDArray[np.int64] | None:
    """The rows that the request does not see since they are superseded; None where there are none."""
    chosen = request.filter
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


def find_standing(index: MemoryIndex, reader: Reader, selection: Selection, request: Request) -> StandingRows | None:
    """The standing instructions and preferences that the selection admits; none beside groups, or in a story."""
    if request.profile.standing == 0 or request.group_by is not None or request.spread_over is not None:
        return None
    found = index.kept("standing", id(selection), lambda: (_standing_rows(index, reader, selection), selection))
    return found[0] if len(found[0].rows) else None


def _standing_rows(index: MemoryIndex, reader: Reader, selection: Selection) -> StandingRows:
    found = [index.rows(("standing", name), partial(reader.records.standing_ids, name)) for name in STANDING]
    if selection.mask is not None:
        found = [rows[selection.mask[rows] == 1] for rows in found]
    rows = np.concatenate(found)
    order = np.argsort(rows)
    keys = frozenset(index.table.ids[rows].tolist())
    return StandingRows(rows[order], order < len(found[STANDING.index("instruction")]), keys)


def _statistics_scopes(reader: Reader, request: Request) -> tuple[int, ...] | None:
    """The scopes whose records give words their IDF: all of the handle's, whatever the filter; None is every scope."""
    base = request.filter.base
    return None if base == "/" else tuple(reader.scopes.within((base,)))
