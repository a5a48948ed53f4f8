"""The store at one commit, as the kernel of a recall reads it: the index under the request's filter."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.engine import Engine
from recallite.index.kernel_view import view_of
from recallite.index.memory_index import MemoryIndex, Selection
from recallite.index.row_filter import RowFilter
from recallite.index.table import INSTRUCTION
from recallite.model.filters import Versions
from recallite.recall.query import Queries, check_comparable
from recallite.recall.request import Request
from recallite.store.transaction import Reader

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.system.numerics import kernels

_NO_CHAINS = np.empty((2, 0), dtype=np.int64)
_NO_ROWS = np.empty(0, dtype=np.int64)


class _Lapsed(NamedTuple):
    """Rows that are current though superseded: all that superseded them has expired, or does not hold yet.

    The numbers of successions that have expired and begun tell whether the rows are others than before.
    """

    rows: NDArray[np.int64]
    expired: int
    begun: int


_NOTHING_LAPSED = _Lapsed(_NO_ROWS, 0, 0)


class Opened(NamedTuple):
    """A view of the index at the reader's commit, and the embedder of its vectors; the index is held until its end.

    `embedder_name` is the name of that embedder, None without vectors.
    """

    reader: Reader
    memory_index: MemoryIndex
    view: kernels.View
    embedder_name: str | None

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.memory_index.lock.release_reading()


def open_view(engine: Engine, reader: Reader, queries: Queries, request: Request) -> Opened:
    """The index at this read transaction's commit, under the request's filter."""
    index = engine.index_within(request.filter.base)
    index.hold(reader)
    try:
        embedder = index.kept("embedder", None, reader.vectors.active_embedder)
        check_comparable(queries, embedder, engine.store.path)
        view = _view_under(index, reader, request)
    except BaseException:
        index.lock.release_reading()
        raise
    return Opened(reader, index, view, None if embedder is None else embedder.name)


def _view_under(index: MemoryIndex, reader: Reader, request: Request) -> kernels.View:
    """The view of a filter, made once until the index changes or a record expires."""
    filter_ = request.filter
    moment, table = request.now if filter_.as_of is None else filter_.as_of, index.table
    expired = len(table.expired_rows(moment)) if table.any_expires else 0
    lapsed = _lapsed(index, reader, moment, filter_.valid_at) if table.any_superseded else _NOTHING_LAPSED
    grouped = request.one_per_source or request.diversify_by is not None
    key = filter_, request.profile.standing_instructions > 0 and not grouped, expired, lapsed[1:]
    return index.kept("view", key, partial(_made, index, reader, request, lapsed.rows))


def _made(index: MemoryIndex, reader: Reader, request: Request, lapsed: NDArray[np.int64]) -> kernels.View:
    selection = _select_rows(index, reader, request, lapsed)
    standing = _NO_ROWS
    if request.profile.standing_instructions > 0 and not request.one_per_source and request.diversify_by is None:
        standing = np.flatnonzero(index.table.standing)
        if selection.mask is not None:
            standing = standing[selection.mask[standing] == 1]
    chains = _NO_CHAINS
    if request.filter.include_superseded and index.table.any_superseded:
        chains = index.kept("chains", None, partial(_chains, index, reader))
    statistics = index.corpus_statistics(_statistics_scopes(reader, request))
    return view_of(index, selection, statistics, standing, index.table.standing[standing] == INSTRUCTION, chains)


def _chains(index: MemoryIndex, reader: Reader) -> NDArray[np.int64]:
    """Rows and what superseded them, ascending by the first."""
    ids = index.table.ids[index.table.superseded_rows()]
    pairs = np.array(
        [(pair.old_id, pair.new_id) for pair in reader.supersessions.of_old(ids.tolist())], dtype=np.int64
    ).reshape(-1, 2)
    rows = np.stack([index.table.rows_of(pairs[:, 0]), index.table.rows_of(pairs[:, 1])])
    rows = rows[:, (rows >= 0).all(axis=0)]
    return np.ascontiguousarray(rows[:, np.argsort(rows[0], kind="stable")])


def _select_rows(index: MemoryIndex, reader: Reader, request: Request, lapsed: NDArray[np.int64]) -> Selection:
    """The rows that the request's filter admits at the index's commit."""
    filter_ = request.filter
    listed, rest = None, filter_.unindexed
    if rest is not None:
        versions: Versions = "open" if filter_.as_of is None else "any"
        key = rest, versions
        listed = index.listing(key, partial(reader.records.matching_ids, rest, request.now, versions=versions))
    visible = RowFilter(
        now=request.now,
        hidden=_superseded_rows(index, reader, request, lapsed),
        as_of=filter_.as_of,
        scopes=tuple(reader.scopes.within(filter_.scopes)) if filter_.scopes else None,
        kinds=filter_.kinds or (),
        since=filter_.since,
        until=filter_.until,
        valid_at=filter_.valid_at,
        listed=listed,
    )
    return index.selection(visible, rest)


def _lapsed(index: MemoryIndex, reader: Reader, moment: int, valid_at: int | None) -> _Lapsed:
    """The rows that are current though superseded; of a valid time only by what has expired."""
    times, ids, begins, announced = index.kept("lapses", None, lambda: _lapses(index, reader))
    count, begun = bisect_right(times, moment), bisect_right(begins, moment)
    again = index.table.rows_of(ids[:count]) if count else _NO_ROWS
    rows = again if begun == len(begins) or valid_at is not None else np.concatenate([again, announced[begun:]])
    return _Lapsed(rows, count, begun)


def _lapses(index: MemoryIndex, reader: Reader) -> tuple[list[int], NDArray[np.int64], list[int], NDArray[np.int64]]:
    """Find when rows are current again, or cease to be because of an announced successor: times and rows."""
    lapses = reader.supersessions.lapses()
    ids = np.array([row_id for _, row_id in lapses], dtype=np.int64)
    begins, announced = index.table.announced_rows()
    return [moment for moment, _ in lapses], ids, begins.tolist(), announced


def _superseded_rows(
    index: MemoryIndex, reader: Reader, request: Request, lapsed: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """The rows that the request does not see since they are superseded; None where there are none."""
    filter_ = request.filter
    known_at, valid_at = filter_.as_of, filter_.valid_at
    if (filter_.include_superseded and valid_at is None) or (known_at is None and not index.table.any_superseded):
        return None
    rows = index.table.superseded_rows(known_at, valid_at)
    if len(rows) and len(lapsed):
        rows = np.setdiff1d(rows, lapsed)
    if known_at is not None:
        moment = known_at if valid_at is None else valid_at
        undone = index.rows(("undone", known_at, moment), partial(reader.supersessions.undone, known_at, moment))
        rows = np.union1d(rows, undone) if len(undone) else rows
    return rows if len(rows) else None


def _statistics_scopes(reader: Reader, request: Request) -> tuple[int, ...] | None:
    """The scopes whose records give words their IDF: all of the handle's, whatever the filter; None is every scope."""
    base = request.filter.base
    return None if base == "/" else tuple(reader.scopes.within((base,)))
