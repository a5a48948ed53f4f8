"""The map of the memories of one store: computed when it is asked for, kept, and brought up to date."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from recallite.errors import InvalidInput, RecalliteError
from recallite.model.checks import check_choice, now_us, to_datetime
from recallite.model.filters import Filter, FilterFields
from recallite.plugin import engine_of
from recallite.review.map.child import Child, MapFailed, umap_installed
from recallite.review.map.map_process import Job
from recallite.review.map.placing import placed_among, unit_vectors
from recallite.review.map.points import MapPoints, MapState, Method
from recallite.store import map_file
from recallite.store.map_file import POINT, MapHeader, SavedMap
from recallite.store.overview import Labels
from recallite.store.values import NEVER, EmbedderRow
from recallite.system.extras import install_command
from recallite.system.messages import fault_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.memory import Memory
    from recallite.store.protocol import Reader
    from recallite.store.values import Commit


# Which share of all is done at the begin of each stage, and what it takes: of 100,000 memories by UMAP.
_STAGES = {
    "reading": (0.0, 0.03), "starting": (0.03, 0.05), "components": (0.08, 0.01), "neighbours": (0.09, 0.16),
    "loading": (0.25, 0.05), "layout": (0.3, 0.7),
}  # fmt: skip


class MemoryMap:
    """Where each memory of a store stands on a plane, near to those that are like it.

    One instance serves all handles of a store in a process, from any thread. A child process computes the map; what is
    stored later is placed among its nearest neighbours, and what is forgotten leaves the map and its file. The map is
    computed when `start` is called, and again when more than half of the memories have come since.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._engine = engine_of(memory).core
        self._lock = threading.Lock()
        self._updating = threading.Lock()
        self._held: SavedMap | None = None
        self._seen: Commit | None = None
        self._read_file = self._in_file = False
        self._child: Child | None = None
        self._thread: threading.Thread | None = None
        self._stage, self._share = "reading", 0.0
        self._failure: str | None = None
        self._closed = False

    def state(self) -> MapState:
        """How far the map is."""
        if not self._read_file:
            with self._engine.store.read() as reader, self._updating:
                self._load(reader)
        held = self._held
        known: dict[str, Any] = {"failure": self._failure}
        if held is not None:
            known |= {
                "method": held.header.method, "computed_at": to_datetime(held.header.computed_at),
                "placed": len(held.points), "added": int(held.points["added"].sum()),
            }  # fmt: skip
        if self._computing:
            begin, length = _STAGES[self._stage]
            progress = round(begin + length * min(max(self._share, 0.0), 1.0), 4)
            return MapState(status="computing", stage=self._stage, progress=progress, **known)
        if self._failure is not None:
            return MapState(status="failed", **known)
        return MapState(status="absent" if held is None else "ready", **known)

    def start(self, method: Method | None = None) -> MapState:
        """Compute the map, in the background; nothing is done while it is being computed.

        None is "umap" if umap-learn is installed, else "pca". A handful of memories is always placed by "pca". Raises
        InvalidInput for "umap" without umap-learn.
        """
        if method is not None:
            check_choice(method, "method", ("umap", "pca"))
        if method == "umap" and not umap_installed():
            raise InvalidInput(f"umap-learn is not installed: {install_command('map')}, or take the method 'pca'")
        self._start(method or ("umap" if umap_installed() else "pca"))
        return self.state()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no map is being computed; returns whether that is so."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return not self._computing

    def points(
        self, handle: Memory | None = None, *, filter: Filter | None = None, **fields: Unpack[FilterFields]
    ) -> MapPoints:
        """The points of the memories that a filter (a `Filter`, or its fields) matches, in the order of storing.

        With a `handle` of the same store only those within its scope, whose names are relative to it; else those of the
        memory that the map was made with. It brings the map up to date first. Without a map there are no points, and
        none of the past: the filter takes no `as_of`.
        """
        asking = self._memory if handle is None else handle
        engine = engine_of(asking)
        if engine.core is not self._engine:
            raise InvalidInput("handle is of another store: give a handle of the store whose map this is")
        chosen = engine.within(filter, fields, takes_as_of=False)
        with self._engine.store.read() as reader:
            held = self._current(reader)
            labels = reader.overview.labels(chosen, now_us())
        return _points(labels, held, engine.scope)

    def close(self) -> None:
        """End the child process, if one is computing. Again, it does nothing."""
        with self._lock:
            self._closed = True
            child = self._child
        if child is not None:
            child.end()
        self.wait()

    @property
    def _computing(self) -> bool:
        thread = self._thread
        return thread is not None and thread.is_alive()

    def _start(self, method: Method) -> None:
        with self._lock:
            if self._computing or self._closed:
                return
            self._stage, self._share, self._failure = "reading", 0.0, None
            self._child = Child()
            self._thread = threading.Thread(
                target=self._compute, args=(self._child, method), name="recallite-map", daemon=True
            )
            self._thread.start()

    def _tell(self, stage: str, share: float) -> None:
        self._stage, self._share = stage, share

    # ── computing ──────────────────────────────────────────────────────────────────────────────────────────────

    def _compute(self, child: Child, method: Method) -> None:
        try:
            # The transaction ends before the computing: a long one keeps the WAL from being emptied.
            with self._engine.store.read() as reader:
                rows, fingerprint = self._sent_to(child, reader, method)
            used, points = child.result(self._tell)
            rows["x"], rows["y"] = points[:, 0], points[:, 1]
            header = MapHeader(method=used, asked=method, computed_at=now_us(), fingerprint=fingerprint)
            with self._updating:
                self._held, self._seen = SavedMap(header, rows), None
                self._read_file, self._in_file = True, False
            with self._engine.store.read() as reader:
                self._current(reader)
        except MapFailed as reason:
            self._failure = str(reason)
        except Exception as fault:  # of a store that was closed, say
            self._failure = fault_text(fault)
        finally:
            child.end()

    def _sent_to(self, child: Child, reader: Reader, method: Method) -> tuple[NDArray[np.void], str]:
        """Give the vectors of all records to the child; returns the records, and the fingerprint of the embedder."""
        embedder = reader.vectors.active_embedder()
        rows = _open_rows(reader)
        if embedder is not None:
            rows = rows[np.isin(rows["id"], reader.overview.with_vectors(embedder))]
        if embedder is None or not len(rows):
            raise MapFailed("no memory has a vector: store some with an embedder first")
        child.send(Job(method, len(rows), embedder.dimension), self._vectors(reader, rows, embedder))
        return rows, embedder.fingerprint

    def _vectors(self, reader: Reader, rows: NDArray[np.void], embedder: EmbedderRow) -> Iterator[NDArray[np.float32]]:
        read = 0
        for ids, vectors in unit_vectors(reader, rows["id"], embedder):
            read += len(ids)
            self._tell("reading", read / len(rows))
            yield vectors
        self._tell("starting", 0.0)

    # ── keeping ────────────────────────────────────────────────────────────────────────────────────────────────

    def _load(self, reader: Reader) -> None:
        """Read the file, once."""
        if self._read_file:
            return
        self._read_file = True
        if self._path is None or self._engine.store.encrypted:
            return
        saved, embedder = map_file.read(self._path), reader.vectors.active_embedder()
        if saved is not None and embedder is not None and saved.header.fingerprint == embedder.fingerprint:
            self._held, self._in_file = saved, True

    @property
    def _path(self) -> str | None:
        return self._engine.store.map_path

    def _current(self, reader: Reader) -> SavedMap | None:
        """The map as of this transaction, without what is gone, and with what is new."""
        with self._updating:
            self._load(reader)
            held, commit = self._held, reader.changes.commit()
            # What was written inside transaction() may be rolled back.
            if held is None or self._seen == commit or reader.uncommitted:
                return held
            embedder = reader.vectors.active_embedder()
            if embedder is None or embedder.fingerprint != held.header.fingerprint:
                self._held, self._seen = None, None
                return None
            rows = _open_rows(reader)
            kept = held.points[_same(held.points, rows)]
            new = rows[~_same(rows, kept)]
            new = new[np.isin(new["id"], reader.overview.with_vectors(embedder, new["id"]))]
            total = len(kept) + len(new)
            if 2 * (int(kept["added"].sum()) + len(new)) > total:
                if total and self._failure is None:
                    self._start(cast(Method, held.header.asked))
                new = new[:0]
            elif len(new):
                new = self._place(reader, new, kept, embedder)
            merged = np.concatenate([kept, new])
            merged = merged[np.argsort(merged["id"], kind="stable")]
            self._held, self._seen = SavedMap(held.header, merged), commit
            if len(new) or len(kept) != len(held.points) or not self._in_file:
                self._in_file = self._save(commit)
            return self._held

    def _place(
        self, reader: Reader, new: NDArray[np.void], kept: NDArray[np.void], embedder: EmbedderRow
    ) -> NDArray[np.void]:
        points = np.stack([kept["x"], kept["y"]], axis=1)
        placed = []
        with self._engine.index.current(reader):
            for ids, vectors in unit_vectors(reader, new["id"], embedder):
                found = placed_among(self._engine.index, vectors, kept["id"], points)
                each = new[np.searchsorted(new["id"], ids[: len(found)])]
                each["x"], each["y"], each["added"] = found[:, 0], found[:, 1], 1
                placed.append(each)
        return np.concatenate(placed) if placed else new[:0]

    def _save(self, commit: Commit) -> bool:
        """Write the file, where there may be one; returns whether it is written. It is derived: nothing is lost."""
        held, path, store = self._held, self._path, self._engine.store
        if held is None or path is None or store.encrypted:
            return False
        part = f"{path}-part"
        with suppress(OSError, RecalliteError):
            with suppress(FileNotFoundError):
                os.unlink(part)
            map_file.write(part, held.header, held.points)
            try:
                with store.atomic(wait=False) as writer:
                    # It may have been encrypted meanwhile.
                    return not store.encrypted and writer.snapshot.publish_map(commit, lambda: os.replace(part, path))
            finally:
                with suppress(OSError):
                    os.unlink(part)
        return False


def _open_rows(reader: Reader) -> NDArray[np.void]:
    """The current versions of all records as rows without a place, ascending by id."""
    found = []
    for bounds in reader.blocks.ranges("columns"):
        columns = reader.blocks.column_range(bounds)
        is_open = columns.recorded_until == NEVER
        rows = np.zeros(int(is_open.sum()), dtype=POINT)
        rows["id"], rows["recorded_from"] = columns.ids[is_open], columns.recorded_from[is_open]
        found.append(rows)
    return np.concatenate(found) if found else np.zeros(0, dtype=POINT)


def _same(rows: NDArray[np.void], others: NDArray[np.void]) -> NDArray[np.bool_]:
    """Which rows are among the others, with the same text; both ascend by id."""
    if not len(others):
        return np.zeros(len(rows), dtype=np.bool_)
    places = np.minimum(np.searchsorted(others["id"], rows["id"]), len(others) - 1)
    there = others[places]
    same: NDArray[np.bool_] = (there["id"] == rows["id"]) & (there["recorded_from"] == rows["recorded_from"])
    return same


def _points(labels: Labels, held: SavedMap | None, base: str) -> MapPoints:
    points = np.zeros(0, dtype=POINT) if held is None else held.points
    place = np.searchsorted(points["id"], labels.ids)
    has = np.zeros(len(labels.ids), dtype=np.bool_)
    if len(points):
        place = np.minimum(place, len(points) - 1)
        has = points["id"][place] == labels.ids
    chosen, place = np.flatnonzero(has), place[has]
    scope, scopes = _numbered(labels.scopes[chosen], labels.scope_names)
    source, sources = _numbered(labels.sources[chosen], labels.source_names)
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(labels.kinds))}
    prefix = "" if base == "/" else base
    return MapPoints(
        ids=[labels.public_ids[number] for number in chosen.tolist()],
        x=points["x"][place],
        y=points["y"][place],
        scope=scope,
        scopes=[name.removeprefix(prefix) or "/" for name in scopes],
        kind=np.array([kinds[labels.kinds[number]] for number in chosen.tolist()], dtype=np.int32),
        kinds=[*kinds],
        source=source,
        sources=sources,
        missing=len(labels.ids) - len(chosen),
    )


def _numbered(ids: NDArray[np.int64], names: dict[int, str]) -> tuple[NDArray[np.int32], list[str]]:
    """Ids as places in a list of the names that occur; -1 stays."""
    every = np.unique(ids[ids >= 0])
    numbers = np.searchsorted(every, ids).astype(np.int32)
    numbers[ids < 0] = -1
    return numbers, [names[number] for number in every.tolist()]
