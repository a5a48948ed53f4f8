"""The in-memory index: columns, vectors, words and neighbours of every record, updated from the change feed.

Below it: its lock for many readers or one writer, `view_of`, which gives it under one filter to the kernel of a recall,
and the rows that meet the conditions of a filter.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from recallite.errors import InvalidInput
from recallite.index.growable import IndexPart
from recallite.index.lexical import CorpusStatistics, LexicalIndex, TermCounts
from recallite.index.loading import load
from recallite.index.snapshot import UNFIT, Snapshot, SnapshotManager
from recallite.index.table import INSTRUCTION, RecordGraph, RecordTable, RowFilter
from recallite.index.vectors import TokenIndex, VectorIndex
from recallite.model.filters import And, Comparison, Expression, Filter, Not, Versions
from recallite.store.sql.blocks import LinkBlock
from recallite.store.sql.meta import Change, Commit
from recallite.store.sql.vectors import EmbedderRow
from recallite.store.transaction import Reader
from recallite.system.numerics import distinct, kernels

_GENERATIONS = itertools.count(1)
_FRAMES_AT_ONCE = 8192
# A filter is resolved once between two commits. A resolved one takes a byte per record and 8 per admitted record.
# This many values are cached, and more while they are small: masks of a hundred scopes in 100,000 records.
_VALUES_CACHED = 16
_BYTES_CACHED = 32 * 2**20
# The most changed records that are read one by one, in 2 ms, before a listing is read as a whole again.
_TOUCHED_KEPT = 1000
# Values that the addition of current records does not change: what supersedes what, counts of old terms.
_OUTLIVE_ADDITION = frozenset(("lapses", "chains", "rows", "counts"))

Value = TypeVar("Value")


class MemoryIndex:
    """Derived from the store and rebuildable at any time: it follows the caller's read transaction.

    Use its parts only inside `current`; `catch_up` takes the write lock when there are changes. `snapshots` reads and
    writes the index snapshot; None works without one. With a `scope` it holds the records of this and its descendants.
    """

    def __init__(self, snapshots: SnapshotManager | None = None, scope: str = "/") -> None:
        self.scope = scope
        self.lock = ReadWriteLock()
        self.commit: Commit | None = None
        self.version = 0
        self.loads = 0
        # Another for every load of any index in the process: the numbers of words hold for one.
        self.generation = next(_GENERATIONS)
        # The store's embedder at `commit`.
        self.embedder: EmbedderRow | None = None
        # What it was loaded from ("nothing", "store", "snapshot"), and how many records changed since.
        self.origin = "nothing"
        self.changed = 0
        # Whether arrays hold traces of purged records, which belong in no snapshot.
        self.purged = False
        # The first and last row ids of records that wait to be compared, and so have no frames in the store; and the
        # records that a recall has read the frames of.
        self.waiting: list[tuple[int, int]] = []
        self._frames_read: set[int]
        # Whether a recall has read it since it was last updated.
        self.recalled = False
        # Called in a load from the store when all words are read.
        self.before_inverting: Callable[[], object] = lambda: None
        self._snapshots = snapshots
        # The ids of the records that each change had, since listings were dropped.
        self._touched: list[set[int]]
        # What was computed since the last change, with its bytes: resolved filters, statistics, listings.
        self._values: dict[tuple[str, Hashable], tuple[Any, int]] = {}
        self._value_bytes = 0
        self._values_lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self.table = RecordTable()
        self.words = LexicalIndex()
        self.graph = RecordGraph(self.table)
        self.vectors: VectorIndex | None = None
        self.tokens = TokenIndex()
        self._touched, self._frames_read = [], set()
        self._keep_in_folder()

    def _keep_in_folder(self) -> None:
        if self._snapshots is not None and self._snapshots.folder is not None:
            for _, part in self._parts():
                for array in part.growables().values():
                    array.folder = self._snapshots.folder

    def corpus_statistics(self, scopes: tuple[int, ...] | None, kinds: tuple[str, ...] = ()) -> CorpusStatistics:
        """The statistics of the current records in these scopes, None for all, and of these kinds, () for all.

        They are cached until the index changes.
        """

        def count() -> CorpusStatistics:
            table, versions_mask, all_open = self.table, None, self.table.all_open
            if not all_open:
                versions_mask = table.mask(RowFilter(now=0, scopes=scopes, kinds=kinds), closed=True)
            if scopes is None and not kinds:
                if all_open:
                    return CorpusStatistics(table.open_rows, self.words.live_words)
                mask, records, words = table.open, table.open_rows, self.words.live_words
            else:
                mask = self._scope_mask(scopes, kinds)
                records = int(np.count_nonzero(mask))
                words = float(self.words.lengths[mask.view(np.bool_)].sum(dtype=np.float64))
            with self._values_lock:
                counts = self._values.setdefault(("counts", (scopes, kinds)), (TermCounts(), 0))[0].of(self.words)
            return CorpusStatistics(records, words, counts, mask, versions_mask)

        return self.cached("statistics", (scopes, kinds), count)

    def _scope_mask(self, scopes: tuple[int, ...] | None, kinds: tuple[str, ...] = ()) -> NDArray[np.uint8]:
        return self.cached(
            "scopes", (scopes, kinds), lambda: self.table.mask(RowFilter(now=0, scopes=scopes, kinds=kinds))
        )

    def listing(self, key: Hashable, read_ids: Callable[[Sequence[int] | None], Sequence[int]]) -> NDArray[np.uint8]:
        """1 for the rows of the records that `read_ids` returns, among some ids or (None) of all; cached by `key`.

        After a change only the changed records are read again.
        """
        seen = len(self._touched)
        listed: NDArray[np.uint8]
        listed, before = self.cached("listing", key, lambda: (self.table.listing(read_ids(None)), seen))
        if before == seen:
            return listed
        ids = sorted(set().union(*self._touched[before:]))
        grown = np.zeros(len(self.table), dtype=np.uint8)
        grown[: len(listed)] = listed
        grown[self.table.known_rows(ids)] = 0
        grown[self.table.known_rows(read_ids(ids))] = 1
        self.cached("listing", key, lambda: (grown, seen), anew=True)
        return grown

    def rows(self, key: Hashable, read_ids: Callable[[], Sequence[int]]) -> NDArray[np.int64]:
        """The rows, ascending, of the records that `read_ids` returns, cached by `key` until the index changes."""
        return self.cached("rows", key, lambda: np.sort(self.table.known_rows(read_ids())))

    def selection(self, row_filter: RowFilter, listing: Hashable = None) -> NDArray[np.uint8] | None:
        """The mask of the rows that a filter admits, None for all, cached until the index changes.

        `listing` is the key of its `condition_mask`.
        """
        moment = row_filter.now if row_filter.as_of is None else row_filter.as_of
        # Time passes, but a selection changes only when a record expires.
        expired = self.table.expired_rows(moment)
        hidden = -1 if row_filter.hidden is None else len(row_filter.hidden)
        key = (*structs.astuple(row_filter)[1:-2], listing, len(expired), hidden)

        def select() -> NDArray[np.uint8] | None:
            if row_filter.only_scopes and not len(expired):
                scopes = row_filter.scopes
                return None if scopes is None and self.table.all_open else self._scope_mask(scopes)
            mask = self.table.mask(row_filter)
            mask[expired] = 0
            return mask

        return self.cached("selection", key, select)

    def cached(self, kind: str, key: Hashable, make: Callable[[], Value], *, anew: bool = False) -> Value:
        """The value that `make` returns, cached by kind and key until the index changes or it is made `anew`."""
        values, name = self._values, (kind, key)
        entry = values.get(name)
        if entry is not None and not anew:
            return entry[0]  # type: ignore[no-any-return]
        value, size = make(), 0
        # The masks of statistics are cached by themselves.
        for array in value if isinstance(value, tuple) else (value,):
            if isinstance(array, np.ndarray):
                size += array.nbytes
        with self._values_lock:  # recalls share the index: another thread may add while the oldest is being found
            self._value_bytes -= values.pop(name, (None, 0))[1]
            while len(values) >= _VALUES_CACHED and self._value_bytes + size > _BYTES_CACHED:
                self._value_bytes -= values.pop(next(iter(values)))[1]
            self._value_bytes += size
            values[name] = value, size
        return value

    def _drop_values(self, *, only_added: bool) -> None:
        """Drop cached values that do not outlive a change; `only_added`: it only added current records."""
        self._values = {
            key: entry
            for key, entry in self._values.items()
            if (key[0] == "listing" and self._touched)
            or (only_added and (key[0] in _OUTLIVE_ADDITION or (key[0] == "selection" and entry[0] is None)))
        }
        self._value_bytes = sum(map(itemgetter(1), self._values.values()))

    def describe(self) -> dict[str, Any]:
        """Figures for `stats`."""
        return {
            "records": len(self.table),
            "vectors": 0 if self.vectors is None else len(self.vectors),
            "bytes": sum(part.nbytes for _, part in self._parts()),
            "commit": self.commit,
            "origin": self.origin,
        }

    def hold(self, reader: Reader) -> None:
        """Hold the index at exactly the commit that `reader` sees, until `lock.release_reading`.

        Where another thread has already updated the index further, the transaction moves on to the newest commit.
        """
        while True:
            self.lock.acquire_reading()
            if self.matches(reader):
                self.recalled = True
                return
            self.lock.release_reading()
            if not self.catch_up(reader):
                reader.changes.refresh()

    @contextmanager
    def current(self, reader: Reader) -> Iterator[None]:
        """`hold` the index."""
        self.hold(reader)
        try:
            yield
        finally:
            self.lock.release_reading()

    def catch_up(self, reader: Reader) -> bool:
        """Update to the commit that `reader` sees; False where the index was there, or further, already."""
        if reader.began is not None and reader.uncommitted:  # it may be rolled back, and other threads share the index
            raise InvalidInput(
                "memories that were written inside transaction() can be recalled after it: recall before the first "
                "write, or use get() and list()"
            )
        if self.commit is not None and reader.changes.contained_in(self.commit):
            return False
        with self.lock.writing():  # another thread may have updated it meanwhile
            if self.commit is None or not reader.changes.contained_in(self.commit):
                self._update(reader)
        return True

    def follow(self, reader: Reader, most: int) -> None:
        """Update after a write of at most `most` records, so that the next recall need not.

        Only once after a recall: writes without a recall between them are cheaper to read together. Waits for nobody.
        """
        if not self.recalled or not self.lock.try_writing():
            return
        try:
            changes = None if self.commit is None else reader.changes.since(self.commit)
            if changes and sum(change.last_id - change.first_id + 1 for change in changes) <= most:
                self._update(reader, changes)
        finally:
            self.lock.release_writing()

    def _update(self, reader: Reader, changes: Sequence[Change] | None = None) -> None:
        """Update to the commit that `reader` sees, by `changes` if they were read already; call it in the lock."""
        others = None
        try:
            if self.commit is None and self._snapshots is not None and self.scope == "/":
                saved = self._snapshots.saved(reader)
                if saved is not None:
                    try:
                        self.adopt(saved, reader.vectors.active_embedder())
                        self._note_load("snapshot")
                    except UNFIT:
                        self._reset()
                        self._snapshots.refused()
            if changes is None and self.commit is not None:
                changes = reader.changes.since(self.commit)
            if changes is not None and {"insert"}.issuperset(map(attrgetter("operation"), changes)):
                others = self.table.others
            if changes is None or not self._apply(reader, changes):
                self._load(reader)
                others = None
            self.waiting = reader.comparisons.ranges()
            self.commit = reader.changes.commit()
        except BaseException:  # a lost server, for instance: half of a change is no index
            self._reset()
            self.commit = self.embedder = others = None
            raise
        finally:
            self.version += 1
            self.recalled = False
            self._drop_values(only_added=others is not None and others == self.table.others)

    def matches(self, reader: Reader) -> bool:
        """Whether it is at exactly the commit that `reader` sees."""
        return self.commit is not None and reader.changes.matches(self.commit)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All parts as arrays, for a snapshot. Call it in `lock.reading()`; valid while `version` is unchanged."""
        return {
            f"{part}.{name}": array for part, index_part in self._parts() for name, array in index_part.arrays().items()
        }

    def adopt(self, saved: Snapshot, embedder: EmbedderRow | None) -> None:
        """Replace all parts by a snapshot's. If they do not fit together it raises, and nothing is loaded."""
        self._reset()
        self.commit = None
        self.vectors = VectorIndex(saved.header.dimension) if saved.header.dimension else None
        self.embedder = embedder
        for name, part in self._parts():
            prefix = f"{name}."
            part.restore({key[len(prefix) :]: array for key, array in saved.arrays.items() if key.startswith(prefix)})
        for _, part in self._parts():
            part.check(len(self.table), 0 if self.vectors is None else len(self.vectors))
        self._keep_in_folder()
        self._drop_values(only_added=False)  # views of the arrays before
        self.commit = saved.header.commit

    def _parts(self) -> list[tuple[str, IndexPart]]:
        parts: list[tuple[str, IndexPart]] = [("table", self.table), ("words", self.words), ("graph", self.graph)]
        return parts if self.vectors is None else [*parts, ("vectors", self.vectors), ("tokens", self.tokens)]

    def _drop_saved(self) -> None:
        if self._snapshots is not None and self.scope == "/":
            self._snapshots.drop()

    def _load(self, reader: Reader) -> None:
        self._drop_saved()
        self._reset()
        self._note_load("store")
        embedder = self.embedder = reader.vectors.active_embedder()
        if embedder is not None:
            self.vectors = VectorIndex(embedder.dimension)
            self._keep_in_folder()
        another = (lambda: None) if self._snapshots is None else self._snapshots.another
        load(reader, another, self, embedder)
        self._load_links(reader.blocks.within(self.scope).links())
        for first in range(0, len(self.table), _FRAMES_AT_ONCE):
            some = self.table.ids[first : first + _FRAMES_AT_ONCE]
            self.table.put_frames(some, reader.statements.frames(some))
        self.table.put_standing(reader.records.standing())
        if self._snapshots is not None and self.scope == "/":
            self._snapshots.loaded(self)

    def _note_load(self, origin: str) -> None:
        self.loads += 1
        self.generation = next(_GENERATIONS)
        self.origin, self.changed, self.purged = origin, 0, False

    def _apply(self, reader: Reader, changes: Sequence[Change]) -> bool:
        """Apply changes in place; False where reloading is cheaper."""
        if reader.vectors.active_embedder() != self.embedder:
            return False
        touched: dict[str, set[int]] = defaultdict(set)
        for change in changes:
            touched[change.operation].update(range(change.first_id, change.last_id + 1))
        if touched["delete"]:
            self.purged = True
            self._drop_saved()
        moved_in: set[int] = set()
        if self.scope != "/" and touched["update"]:
            here = set(reader.blocks.within(self.scope).columns(sorted(touched["update"])).ids.tolist())
            before = self._held(touched["update"])
            moved_in = here - before
            touched["insert"] |= moved_in
            touched["delete"] |= before - here
        # The feed tells which records to ask for, the store what is there: a change that is told twice does no harm.
        new = touched["insert"] | touched["text"] | touched["delete"]
        gone = self._held(new) if new and min(new) <= self.table.last_id else set()
        self._touched.append(touched["update"] | new)
        self._frames_read -= touched["update"] | touched["frames"] | new
        if sum(map(len, self._touched)) > _TOUCHED_KEPT:
            self._touched = []
        self.changed += sum(map(len, touched.values()))
        limit = max(1000, len(self.table) // 2)
        if len(new - touched["delete"]) > limit or self.table.dead_rows + len(gone) > limit:
            return False
        if gone:
            rows = self.table.rows_of(np.array(sorted(gone), dtype=np.int64))
            open_rows = rows[self.table.open[rows] == 1]
            self.graph.remove(open_rows)
            for row in open_rows.tolist():
                self.graph.unlink(row)
            self.table.tombstone(sorted(gone))
            self.words.discount(open_rows)
        self._append(reader, sorted(new))
        if changed := sorted(touched["update"] - gone - new):
            columns = reader.blocks.within(self.scope).columns(changed)
            rows = self.table.known_rows(columns.ids)
            self.graph.remove(rows)
            self.table.overwrite(columns)
            self.table.put_frames(columns.ids, reader.statements.frames(columns.ids))  # a change of kind changes them
            self.graph.insert(rows)
        if stated := touched["frames"] - new:
            changed_ids = np.array(sorted(self._held(stated)), np.int64)
            self.table.put_frames(changed_ids, reader.statements.frames(changed_ids))
        if new or touched["update"]:
            ids = sorted(new | touched["update"])
            self.table.put_standing(reader.records.standing(ids), ids)
        relinked = sorted(touched["link"] | moved_in | (touched["text"] - touched["delete"]))
        if relinked:
            for row in self.table.known_rows(relinked).tolist():
                self.graph.unlink(row)
            self._load_links(reader.blocks.links(relinked))
        return True

    def _held(self, ids: set[int]) -> set[int]:
        ascending = np.array(sorted(ids), dtype=np.int64)
        rows = self.table.rows_of(ascending)
        live = rows >= 0
        live[live] = self.table.present[rows[live]] == 1
        return set(ascending[live].tolist())

    def _append(self, reader: Reader, ids: list[int]) -> None:
        if not ids or not len((columns := reader.blocks.within(self.scope).columns(ids)).ids):
            return
        ids = columns.ids.tolist()
        rows = self.table.append(columns)
        self.table.order_tags()
        self.table.put_frames(columns.ids, reader.statements.frames(columns.ids))
        self.words.append(reader.blocks.terms(ids), columns.ids, self.table.open[rows])
        self.words.invert()
        self.graph.append(rows)
        if self.vectors is not None and self.embedder is not None:
            self.vectors.add_rows(len(self.table))
            block = reader.blocks.vectors(self.embedder.id, self.vectors.dimension, ids)
            added = self.vectors.extend(block, self.table.rows_of)
            self.tokens.extend(added, reader.blocks.token_codes(added))

    def read_waiting_frames(self, reader: Reader, rows: NDArray[np.int64]) -> bool:
        """Read the frames of those of some rows that wait to be compared.

        Returns whether this may put some of the rows before others: only what says that it is over, or what two state.
        """
        new = []
        for row_id in self.table.ids[rows].tolist():
            # Ten million records that came in batches are a thousand ranges, ascending.
            i = bisect_right(self.waiting, row_id, key=itemgetter(0)) - 1
            if i >= 0 and row_id <= self.waiting[i][1] and row_id not in self._frames_read:
                new.append(row_id)
        if not new:
            return False
        ids = np.array(new, dtype=np.int64)
        self.table.put_frames(ids, reader.statements.frames(ids, of_texts=True))
        self._frames_read.update(new)
        stated = self.table.frames[rows, :, 0]
        stated = stated[stated > 0]
        return len(distinct(stated)) < len(stated) or bool((stated == kernels.arguments.OVER).any())

    def _load_links(self, links: LinkBlock) -> None:
        sources, targets = self.table.rows_of(links.sources), self.table.rows_of(links.targets)
        known = (sources >= 0) & (targets >= 0)
        if known.any():
            self.graph.add_links(sources[known], targets[known], links.strengths[known])


class ReadWriteLock:
    """Readers share; a writer waits for them, and new readers wait for a waiting writer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._readers = 0
        self._writing = False
        self._waiting = 0

    def acquire_reading(self) -> None:
        """Hold the lock with other readers, until `release_reading`."""
        with self._lock:
            while self._writing or self._waiting:
                self._changed.wait()
            self._readers += 1

    def release_reading(self) -> None:
        """Let the lock go."""
        with self._lock:
            self._readers -= 1
            if self._waiting and not self._readers:
                self._changed.notify_all()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock with other readers."""
        self.acquire_reading()
        try:
            yield
        finally:
            self.release_reading()

    def try_writing(self) -> bool:
        """Hold the lock alone, until `release_writing`, if nobody holds it or waits for it."""
        with self._lock:
            if self._writing or self._readers or self._waiting:
                return False
            self._writing = True
            return True

    def release_writing(self) -> None:
        """Let the lock go."""
        with self._lock:
            self._writing = False
            self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone."""
        with self._changed:
            self._waiting += 1
            while self._writing or self._readers:
                self._changed.wait()
            self._waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            self.release_writing()


# The index under one filter, as the kernel of a recall reads it.

# If fewer vectors than one in this number are visible, each sketch is looked at alone.
_SPARSE = 6
_NONE = np.empty(0, dtype=np.int64)
_NO_MASK = np.empty(0, dtype=np.uint8)
_NO_VECTORS = VectorIndex(0)


def view_of(
    index: MemoryIndex,
    mask: NDArray[np.uint8] | None,
    statistics: CorpusStatistics,
    standing: NDArray[np.int64],
    chains: NDArray[np.int64],
) -> kernels.View:
    """The index under the mask of a filter; valid while `index.lock.reading()` is held and the index does not change.

    `standing` are the visible rows of standing instructions and preferences, ascending; `chains` are pairs of rows and
    of what superseded them.
    """
    table, graph, words = index.table, index.graph, index.words
    terms = words.terms
    return kernels.View(
        kernels.Terms(
            terms, words.starts, words.segments, words.rows, words.counts, words.lengths, statistics.average_length,
            float(statistics.records), *statistics.frequencies,
        ),
        _vectors(index, mask),
        kernels.Graph(
            graph.previous, graph.next, table.sources, graph.heads, graph.nexts, graph.targets, graph.strengths,
            _NO_MASK if mask is None else mask,
        ),
        kernels.Records(
            table.ids, table.created_at, table.importance, table.moments, table.moments_until, table.resolved,
            table.authorities, words.speakers,
        ),
        kernels.Stated(table.frames, table.positioned, table.scopes, chains), standing,
        (table.standing[standing] == INSTRUCTION).astype(np.uint8),
    )  # fmt: skip


def view_within(index: MemoryIndex, view: kernels.View, mask: NDArray[np.uint8]) -> kernels.View:
    """A view of the index under a narrower mask, without standing records."""
    graph, none = view.graph._replace(mask=mask), view.standing[:0]
    return view._replace(vectors=_vectors(index, mask), graph=graph, standing=none, instructions=view.instructions[:0])


def _vectors(index: MemoryIndex, mask: NDArray[np.uint8] | None) -> kernels.Vectors:
    vectors = _NO_VECTORS if index.vectors is None else index.vectors
    n, sketches = len(vectors.scales), vectors.sketches
    admitted = None if mask is None else vectors.admitted(mask)
    visible = n if admitted is None else int(np.count_nonzero(admitted))
    indices, masks = _NONE, np.empty(0, dtype=np.uint16)
    if visible <= kernels.SCAN_ALL or visible * _SPARSE < n:
        indices = np.arange(n, dtype=np.int64) if admitted is None else np.flatnonzero(admitted)
    else:
        masks = np.full(len(sketches), 2**kernels.LANES - 1, dtype=np.uint16)
        if n % kernels.LANES:
            masks[-1] = 2 ** (n % kernels.LANES) - 1
        if admitted is not None:
            packed = np.packbits(admitted, bitorder="little")
            masks.view(np.uint8)[: len(packed)] = packed
    return kernels.Vectors(
        sketches, masks, indices, visible, vectors.first_places, vectors.parts_of_rows, vectors.owners_by_vector,
        vectors.codes, vectors.scales, vectors.residuals, index.tokens.starts, index.tokens.codes,
    )  # fmt: skip


# The rows that meet the conditions of a filter: tags, sources and kinds by the index, all others by the store.

_INDEXED = frozenset(("tags", "source", "kind"))
# What changes in many records at a time, of which the feed does not name each.
_UNNAMED = frozenset(("importance", "embedding_state"))


def met_conditions(
    index: MemoryIndex, reader: Reader, conditions: Filter, now: int, versions: Versions
) -> NDArray[np.uint8]:
    """1 for the rows that meet the tags and the `where` of a filter, among these versions."""

    def by_store(expression: Expression) -> NDArray[np.uint8]:
        asked = conditions.replaced(tags=None, where=expression)

        def read_ids(among: Sequence[int] | None) -> list[int]:
            return reader.records.matching_ids(asked, now, versions=versions, among=among)

        if _UNNAMED.isdisjoint(_fields(expression)):
            return index.listing((asked, versions), read_ids)
        return index.table.listing(read_ids(None))

    parts = [] if conditions.where is None else [conditions.where]
    if conditions.tags:
        parts.append(Comparison("tags", "in", conditions.tags))
    return _meeting(And(tuple(parts)), index, reader, by_store)


def _meeting(
    expression: Expression,
    index: MemoryIndex,
    reader: Reader,
    by_store: Callable[[Expression], NDArray[np.uint8]],
) -> NDArray[np.uint8]:
    if not _is_indexed(expression):
        return by_store(expression)
    if isinstance(expression, Comparison):
        named = [str(name) for name in _names(expression)]
        if expression.field == "kind":
            return index.table.of_kinds(named)
        if expression.field == "tags":
            return index.table.with_tags(reader.scopes.tags_named(named))
        return index.table.of_sources(reader.scopes.sources_named(named))
    if isinstance(expression, Not):
        others: NDArray[np.uint8] = _meeting(expression.part, index, reader, by_store) ^ np.uint8(1)
        return others
    masks = [_meeting(part, index, reader, by_store) for part in expression.parts if _is_indexed(part)]
    if unindexed := tuple(part for part in expression.parts if not _is_indexed(part)):
        masks.append(by_store(type(expression)(unindexed)))
    return reduce(np.bitwise_and if isinstance(expression, And) else np.bitwise_or, masks)


def _is_indexed(expression: Expression) -> bool:
    """Whether the index has something of an expression: columns or lists of what it names."""
    if isinstance(expression, Not):
        return _is_indexed(expression.part)
    if not isinstance(expression, Comparison):
        return any(map(_is_indexed, expression.parts))
    is_name = expression.operator in ("eq", "in") and all(isinstance(name, str) for name in _names(expression))
    return expression.field in _INDEXED and is_name


def _fields(expression: Expression) -> set[str]:
    if isinstance(expression, Comparison):
        return {expression.field}
    return set().union(*map(_fields, (expression.part,) if isinstance(expression, Not) else expression.parts))


def _names(compared: Comparison) -> tuple[object, ...]:
    return compared.value if isinstance(compared.value, tuple) else (compared.value,)
