"""When the sidecar is read and written, and what an index may ask of its store beside the caller's transaction."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from recollect.errors import RecollectError
from recollect.index import sidecar
from recollect.store.protocol import Reader
from recollect.store.values import SnapshotIdentity

if TYPE_CHECKING:
    from recollect.index.memory_index import MemoryIndex
    from recollect.store.protocol import Store

__all__ = ["Keeper"]

# Below this loading from the store takes under 50 ms.
_SMALLEST = 20_000
# A sidecar that is so far behind takes as long to bring up to date as a tenth of a load.
_FAR_BEHIND = 2_000
_ATTEMPTS = 3


class Keeper:
    """Keeps the index of one open store beside it on disk.

    After a load from the store, and at close where much has changed, a sidecar is written by a thread of its own; it
    blocks no recall, and where it cannot be written nothing is lost. With `low_memory` the codes of vectors stay in
    files and the index moves onto its own sidecar once that is written.
    """

    def __init__(self, store: Store, *, enabled: bool, low_memory: bool) -> None:
        self._store = store
        self._wanted = enabled and store.snapshot_path is not None
        self._low_memory = low_memory and not store.in_memory
        self._thread: threading.Thread | None = None

    @property
    def _enabled(self) -> bool:
        # Mapped arrays cannot be encrypted.
        return self._wanted and not self._store.encrypted

    @property
    def folder(self) -> str | None:
        """Where arrays lie that shall not take memory; None where all may."""
        return os.path.dirname(self._path) if self._low_memory else None

    @property
    def _path(self) -> str:
        return self._store.snapshot_path or ""

    def another(self) -> AbstractContextManager[Reader] | None:
        """A second read transaction; None where all share one connection."""
        return None if self._store.in_memory else self._store.read()

    def saved(self, reader: Reader) -> sidecar.Saved | None:
        """The sidecar, where it is whole and of this store, at this commit or before."""
        expected = reader.snapshot.identity()
        if not self._enabled or not expected.token:
            return None
        found = sidecar.read(self._path, folder=self.folder)
        if found is None or found.header.sequence > reader.changes.last():
            return None
        header = found.header
        made_of = (header.token, header.lexicon_epoch, header.fingerprint)
        return found if made_of == expected[:3] else None

    def has_sidecar(self) -> bool:
        """Whether there seems to be one; only reading it tells whether it is whole."""
        if not self._enabled:
            return False
        with self._store.read() as reader:
            return bool(reader.snapshot.identity().token) and os.path.exists(self._path)

    def loaded(self, index: MemoryIndex) -> None:
        """Write a sidecar in the background, where it pays."""
        if self._enabled and len(index.table) >= _SMALLEST and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._save, args=(index,), name="recollect-sidecar", daemon=True)
            self._thread.start()

    def close(self, index: MemoryIndex) -> None:
        """Finish what is being written, and write what has changed much."""
        if self._thread is not None:
            self._thread.join()
        if self._enabled and self._behind(index):
            self._save(index)

    def _behind(self, index: MemoryIndex) -> bool:
        if index.sequence < 0 or len(index.table) < _SMALLEST:
            return False
        if index.changed > max(_FAR_BEHIND, len(index.table) // 100):
            return True
        try:
            with self._store.read() as reader:
                return not reader.snapshot.identity().token
        except RecollectError:
            return False

    def _save(self, index: MemoryIndex) -> None:
        # A write that comes between spoils an attempt; what is too busy now is written at close.
        for _ in range(_ATTEMPTS):
            with suppress(OSError, RecollectError):
                if self._attempt(index):
                    return

    def _attempt(self, index: MemoryIndex) -> bool:
        with self._store.read() as reader:
            expected = reader.snapshot.identity()
        with index.lock.reading():
            version, sequence, changed = index.version, index.sequence, index.changed
            header = sidecar.Header(
                token=sidecar.new_token(),
                sequence=sequence,
                lexicon_epoch=expected.lexicon_epoch,
                fingerprint=expected.fingerprint,
                dimension=0 if index.vectors is None else index.vectors.dimension,
            )
            if index.embedder_id != expected.embedder_id:
                return False
            arrays = index.arrays()
        part, whole = f"{self._path}-part", self._path
        sidecar.write(part, header, arrays)
        try:
            with index.lock.reading():
                unspoilt = index.version == version
            done = unspoilt and self._publish(expected, header, lambda: os.replace(part, whole))
        finally:
            with suppress(OSError):
                os.unlink(part)
        if done:
            index.changed -= changed
            if self._low_memory:
                self._move(index, whole, version, expected.embedder_id)
        return done

    def _publish(self, expected: SnapshotIdentity, header: sidecar.Header, move: Callable[[], None]) -> bool:
        with self._store.atomic(wait=False) as writer:
            # The store may have got a key while the file was written.
            return self._enabled and writer.snapshot.publish(expected, header.token, header.sequence, move)

    def _move(self, index: MemoryIndex, path: str, version: int, embedder_id: int | None) -> None:
        """Put the index onto its sidecar: what is only mapped takes no memory."""
        found = sidecar.read(path, folder=self.folder)
        with index.lock.writing():
            if found is not None and index.version == version:
                index.adopt(found, embedder_id)
