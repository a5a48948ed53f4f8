"""The occasions on which the index snapshot is read and written."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from recallite.errors import RecalliteError
from recallite.index import snapshot
from recallite.store.transaction import Reader
from recallite.store.values import SnapshotIdentity
from recallite.system.telemetry import logger

if TYPE_CHECKING:
    from recallite.index.memory_index import MemoryIndex
    from recallite.store.store import Store


_log = logger(__name__)
# Fewer records than this load from the store in less than 50 ms.
_SMALLEST = 20_000
# Updating a snapshot by this many changes takes a tenth of the time of loading from the store.
_FAR_BEHIND = 2_000
_ATTEMPTS = 3
UNFIT = LookupError, TypeError, ValueError, msgspec.DecodeError
"""The errors that `MemoryIndex.adopt` raises for arrays that do not fit together."""


class _Written(NamedTuple):
    """The token of a snapshot, and the version of the index that it holds."""

    token: str
    version: int


class SnapshotManager:
    """Reads and writes the index snapshot of one open store.

    A snapshot is written after a load from the store, by a background thread that blocks no recall, and at close where
    much has changed. A failed write loses nothing: the file is derived. Once it is written, the index moves onto it and
    gives its memory back. With `low_memory`, arrays grow in files.
    """

    def __init__(self, store: Store, *, enabled: bool, low_memory: bool) -> None:
        self._store = store
        self._wanted = enabled and store.snapshot_path is not None
        self._low_memory = low_memory and store.snapshot_path is not None and not store.read_only
        self._thread: threading.Thread | None = None

    @property
    def _enabled(self) -> bool:
        # Mapped arrays cannot be encrypted.
        return self._wanted and not self._store.encrypted

    @property
    def _writes(self) -> bool:
        return self._enabled and not self._store.read_only

    @property
    def folder(self) -> str | None:
        """The folder for arrays that grow in files instead of taking memory; None lets them grow in memory."""
        return os.path.dirname(self._path) if self._low_memory else None

    @property
    def _path(self) -> str:
        return self._store.snapshot_path or ""

    def another(self) -> AbstractContextManager[Reader] | None:
        """A second read transaction; None for a store in memory, which has one connection, and for a server.

        Those who load at a time could wait there for each other's connections.
        """
        return None if self._store.in_memory or self._store.reads_scopes else self._store.read()

    def saved(self, reader: Reader) -> snapshot.Snapshot | None:
        """The snapshot, if it is intact, of this store, and not newer than this commit."""
        expected = reader.snapshot.identity()
        if not self._enabled or not expected.token:
            return None
        began = perf_counter()
        snapshot_read = snapshot.read(self._path)
        if snapshot_read is None:
            if os.path.exists(self._path):
                self.refused()
            return None
        header = snapshot_read.header
        fits = header.token.startswith(expected.token) and header.lexicon_epoch == expected.lexicon_epoch
        if not fits or header.fingerprint != expected.fingerprint or reader.changes.since(header.commit) is None:
            _log.info("index snapshot is of another state of the store: the index is loaded from the store")
            return None
        _log.info("index snapshot read in %.0f ms", (perf_counter() - began) * 1e3)
        return snapshot_read

    def refused(self) -> None:
        """Warn of a snapshot that cannot be used."""
        _log.warning("index snapshot %s is damaged: the index is loaded from the store", self._path)

    def drop(self) -> None:
        """Remove a snapshot that may hold traces of what another process has purged."""
        if self._enabled:
            self._store.drop_snapshot()

    def exists(self) -> bool:
        """Whether there is a snapshot file; it may still be damaged."""
        if not self._enabled:
            return False
        with self._store.read() as reader:
            return bool(reader.snapshot.identity().token) and os.path.exists(self._path)

    def loaded(self, index: MemoryIndex) -> None:
        """Write a snapshot in the background, if the index is large enough."""
        if self._writes and len(index.table) >= _SMALLEST and (self._thread is None or not self._thread.is_alive()):
            work = self._save_and_move
            self._thread = threading.Thread(target=work, args=(index,), name="recallite-snapshot", daemon=True)
            self._thread.start()

    def close(self, index: MemoryIndex) -> None:
        """Wait for a snapshot that is being written; write one if the index has changed much since the last."""
        if self._thread is not None:
            self._thread.join()
        if self._writes and self._behind(index):
            self._save(index)

    def _behind(self, index: MemoryIndex) -> bool:
        if index.commit is None or len(index.table) < _SMALLEST or index.purged:
            return False
        if index.changed > max(_FAR_BEHIND, len(index.table) // 100):
            return True
        try:
            with self._store.read() as reader:
                return not (reader.snapshot.identity().token and os.path.exists(self._path))
        except RecalliteError:
            return False

    def _save_and_move(self, index: MemoryIndex) -> None:
        """Write the snapshot and map the index from it, which gives its memory back."""
        written = self._save(index)
        snapshot_read = None if written is None else snapshot.read(self._path)
        if written is None or snapshot_read is None or snapshot_read.header.token != written.token:
            return
        with index.lock.writing():
            if index.version == written.version:
                try:
                    index.adopt(snapshot_read, index.embedder_id)
                except UNFIT:
                    self.refused()

    def _save(self, index: MemoryIndex) -> _Written | None:
        # A concurrent write makes an attempt fail; close() tries again. RuntimeError: the process ends without close(),
        # and its thread pool takes no more tasks.
        began, why = perf_counter(), "the store changes meanwhile"
        for _ in range(_ATTEMPTS):
            try:
                written = self._attempt(index)
                if written is not None:
                    taken_ms = (perf_counter() - began) * 1e3
                    _log.info("index snapshot written in %.0f ms, records: %d", taken_ms, len(index.table))
                    return written
            except (OSError, RecalliteError, RuntimeError) as fault:
                why = type(fault).__name__
        _log.warning("index snapshot not written (%s): the index is loaded from the store next time", why)
        return None

    def _attempt(self, index: MemoryIndex) -> _Written | None:
        with self._store.read() as reader:
            expected, token = reader.snapshot.identity(), reader.snapshot.new_token()
        with index.lock.reading():
            version, commit, changed = index.version, index.commit, index.changed
            if commit is None or index.embedder_id != expected.embedder_id:
                return None
            header = snapshot.Header(
                token=token,
                commit=commit,
                lexicon_epoch=expected.lexicon_epoch,
                fingerprint=expected.fingerprint,
                dimension=0 if index.vectors is None else index.vectors.dimension,
            )
            arrays = index.arrays()
        part, whole = f"{self._path}-part", self._path
        snapshot.write(part, header, arrays)
        try:
            with index.lock.reading():
                unchanged = index.version == version
            done = unchanged and self._publish(expected, header, lambda: os.replace(part, whole))
        finally:
            with suppress(OSError):
                os.unlink(part)
        if not done:
            return None
        index.changed -= changed
        return _Written(header.token, version)

    def _publish(self, expected: SnapshotIdentity, header: snapshot.Header, move: Callable[[], None]) -> bool:
        with self._store.atomic(wait=False) as writer:
            # The store may have been encrypted while the file was written.
            return self._enabled and writer.snapshot.publish(expected, header.token, header.commit, move)
