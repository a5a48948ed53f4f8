"""The index snapshot: the in-memory index in a file, so that a million records load without reading the store.

The file is `<database>-index`, derived and private to its owner (mode 0600). It can be deleted at any time, and it is
ignored where anything does not match: format, size, checksums, or the store's token, lexicon and embedder.
`SnapshotManager` knows the occasions on which it is read and written; `read` and `write` know the file.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recallite.errors import RecalliteError
from recallite.index.growable import Growable
from recallite.store.sql.meta import Commit
from recallite.store.transaction import Reader
from recallite.system.files import (
    Mapped,
    create_private,
    private_copy,
    read_at,
    read_into,
    unlinked,
    unload,
    write_at,
    zeros,
)
from recallite.system.parallel import run_tasks
from recallite.system.telemetry import logger

if TYPE_CHECKING:
    from recallite.index.memory_index import MemoryIndex
    from recallite.store.store import Store


_log = logger(__name__)
# Of 2,000 records a snapshot loads in 10 ms of processor time, the store in 50, which each command would wait for.
_SMALLEST = 1_000
# Updating a snapshot by this many changes takes a tenth of the time of loading from the store.
_FAR_BEHIND = 2_000
_ATTEMPTS = 3
UNFIT = LookupError, TypeError, ValueError, msgspec.DecodeError
"""The errors that `MemoryIndex.adopt` raises for arrays that do not fit together."""


class SnapshotManager:
    """Reads and writes the index snapshot of one open store.

    A snapshot is written after a load from the store, by a background thread that blocks no recall, and at close where
    much has changed or this process has stored many records. A failed write loses nothing: the file is derived. Once it
    is written, the index moves onto it and gives its memory back. With `low_memory`, arrays grow in files.
    """

    def __init__(self, store: Store, *, enabled: bool, low_memory: bool) -> None:
        self._store, self._allowed = store, enabled
        self._path = store.snapshot_path or ""
        self.folder = os.path.dirname(self._path) if low_memory and self._path and not store.read_only else None
        """The folder for arrays that grow in files instead of taking memory; None lets them grow in memory."""
        self._thread: threading.Thread | None = None
        self._closing = False
        # The last row id before the first write of this process.
        self.last_before: int | None = None

    @property
    def _enabled(self) -> bool:
        # Mapped arrays cannot be encrypted.
        return self._allowed and self._path != "" and not self._store.encrypted

    @property
    def _writes(self) -> bool:
        return self._enabled and not self._store.read_only

    def another(self) -> AbstractContextManager[Reader] | None:
        """A second read transaction; None for a store in memory, which has one connection, and for a server.

        Loads at the same time could otherwise wait for each other's connections.
        """
        return None if self._store.in_memory or self._store.reads_scopes else self._store.read()

    def saved(self, reader: Reader) -> Snapshot | None:
        """The snapshot, if it is intact, of this store, and not newer than this commit."""
        expected = reader.snapshot.identity()
        if not self._enabled or not expected.token:
            return None
        began = perf_counter()
        snapshot_read = read(self._path)
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
        busy = self._closing or (self._thread is not None and self._thread.is_alive())
        if self._writes and len(index.table) >= _SMALLEST and not busy:
            self._thread = threading.Thread(
                target=self._save_and_move, args=(index,), name="recallite-snapshot", daemon=True
            )
            self._thread.start()

    def before_write(self, reader: Reader) -> None:
        """Note how many records there were, if this process has not written any before."""
        if self._writes:
            self.last_before = reader.records.last_id()

    def is_worth_loading(self, index: MemoryIndex) -> bool:
        """Whether this process has stored many records and not loaded the index: another one would load it slowly."""
        if index.commit is not None or self.last_before is None or not self._writes:
            return False
        return self._store.size() - self.last_before >= _SMALLEST

    def close(self, index: MemoryIndex) -> None:
        """Wait for a snapshot that is being written; write one if the index has changed much since the last."""
        self._closing = True
        if self._thread is not None:
            self._thread.join()
        with suppress(RecalliteError, RuntimeError):  # the process ends, and its thread pool takes no more tasks
            if self.is_worth_loading(index):
                with self._store.read() as reader:
                    index.catch_up(reader)
        if self._writes and index.commit is not None and len(index.table) >= _SMALLEST and not index.purged:
            with suppress(RecalliteError):
                if index.changed > max(_FAR_BEHIND, len(index.table) // 100) or not self.exists():
                    self._save(index)

    def _save_and_move(self, index: MemoryIndex) -> None:
        """Write the snapshot and map the index from it, which gives its memory back."""
        written = self._save(index)
        snapshot_read = None if written is None else read(self._path)
        if written is None or snapshot_read is None:
            return
        token, version = written
        with index.lock.writing():
            if snapshot_read.header.token == token and index.version == version:
                try:
                    index.adopt(snapshot_read, index.embedder)
                except UNFIT:
                    self.refused()

    def _save(self, index: MemoryIndex) -> tuple[str, int] | None:
        """Write a snapshot; returns its token, and the version of the index that it holds."""
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

    def _attempt(self, index: MemoryIndex) -> tuple[str, int] | None:
        with self._store.read() as reader:
            expected, token = reader.snapshot.identity(), reader.snapshot.new_token()
        with index.lock.reading():
            version, commit, changed = index.version, index.commit, index.changed
            if commit is None or (index.embedder and index.embedder.id) != expected.embedder_id:
                return None
            header = Header(
                token=token,
                commit=commit,
                lexicon_epoch=expected.lexicon_epoch,
                fingerprint=expected.fingerprint,
                dimension=0 if index.vectors is None else index.vectors.dimension,
            )
            arrays = index.arrays()
        paths = f"{self._path}-part", self._path
        write(paths[0], header, arrays)
        try:
            with index.lock.reading():
                unchanged = index.version == version
            if not unchanged:
                return None
            with self._store.atomic(wait=False) as writer:
                # The store may have been encrypted while the file was written.
                move = partial(os.replace, *paths)
                if not (self._enabled and writer.snapshot.publish(expected, token, commit, move)):
                    return None
        finally:
            with suppress(OSError):
                os.unlink(paths[0])
        index.changed -= changed
        return token, version


# The file itself is never mapped: truncating a mapped file kills the processes that read it (SIGBUS). It is copied into
# an unlinked file beside it that nobody else can open, and mapped from there, so that it takes no memory of the
# process's own; if there is no room for the copy it is read into memory. Either way loading 100,000 records (100 MB)
# takes 45 ms of processor time more than mapping the file would: 0.2 s, against 0.8 s from the store.
#
# Layout: 8 bytes of magic, the header's length and CRC-32 (uint32 each), the header as JSON, then sections at multiples
# of 4096, each followed by room to append (a hole in the file).

_MAGIC = b"RcIndex\x09"
_PREFIX = struct.Struct("<8sII")
_PAGE = 4096
# An unfinished file this old belongs to a process that was killed.
_ABANDONED_SECONDS = 600
# Rows that can be appended to a section before it has to be copied, besides an eighth of its own.
_ROOM = 4096
# Bytes per task: still in the processor's cache when they are summed.
_BLOCK_BYTES = 2**20


class _StoredArray(Struct, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]
    capacity: int
    offset: int
    digest: str

    @property
    def filled_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


class Header(Struct, frozen=True, kw_only=True):
    """The origin of a snapshot: the commit of the store that has `token`; `dimension` is 0 without vectors."""

    token: str
    commit: Commit
    lexicon_epoch: str
    fingerprint: str
    dimension: int


class _Contents(Struct, frozen=True):
    header: Header
    size: int
    sections: list[_StoredArray]


class Snapshot(Struct, frozen=True):
    """A snapshot in memory: its arrays belong to this process alone."""

    header: Header
    arrays: dict[str, Growable[Any]]


def write(path: str, header: Header, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a snapshot to `path`, which must not exist, and sync it. Raises OSError, and leaves nothing there."""
    sections, end = [], 0
    for name, array in arrays.items():
        capacity = len(array) + len(array) // 8 + _ROOM
        digest = _digest(array.nbytes, partial(_sums, _bytes(array)))
        sections.append(_StoredArray(name, array.dtype.str, array.shape, capacity, end, digest))
        end += _pages(capacity * array.dtype.itemsize * math.prod(array.shape[1:]))
    # The offsets of the sections depend on the header's length, which depends on them: reserve an upper bound.
    start = _pages(_PREFIX.size + len(msgspec.json.encode(sections)) + 40 * len(sections) + _PAGE)
    sections = [msgspec.structs.replace(section, offset=section.offset + start) for section in sections]
    encoded = msgspec.json.encode(_Contents(header, start + end, sections))
    with suppress(OSError):
        if time.time() - os.stat(path).st_mtime > _ABANDONED_SECONDS:
            os.unlink(path)
    descriptor = create_private(path)
    try:
        with open(descriptor, "wb") as file:
            file.write(_PREFIX.pack(_MAGIC, len(encoded), zlib.crc32(encoded)) + encoded)
            for section, array in zip(sections, arrays.values(), strict=True):
                file.seek(section.offset)
                file.write(_bytes(array).data)
            file.truncate(start + end)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def read(path: str) -> Snapshot | None:
    """The snapshot at `path`; None where there is none or it is damaged.

    The arrays are mapped from an unlinked copy in its folder, and take memory only where they are written to; if
    there is no space for a copy they are in memory.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            descriptor, size = file.fileno(), os.fstat(file.fileno()).st_size
            magic, length, checksum = _PREFIX.unpack(read_at(descriptor, _PREFIX.size, 0))
            if magic != _MAGIC or length > size:
                return None
            encoded = read_at(descriptor, length, _PREFIX.size)
            if zlib.crc32(encoded) != checksum:
                return None
            contents = msgspec.json.decode(encoded, type=_Contents)
            fits = all(
                min(section.shape) >= 0 and section.shape[0] <= section.capacity for section in contents.sections
            )
            if contents.size != size or not fits:
                return None
            copy = _copied(descriptor, contents, os.path.dirname(path))
            mapped = np.frombuffer(zeros(contents.size) if copy is None else copy, np.uint8)
            arrays = {}
            for section in contents.sections:
                begin, dtype = section.offset, np.dtype(section.dtype)
                filled = mapped[begin : begin + section.filled_bytes]
                if (
                    copy is None
                    and _digest(len(filled), partial(_read_sums, filled, descriptor, begin)) != section.digest
                ):
                    return None
                shape = (section.capacity, *section.shape[1:])
                data = mapped[begin : begin + dtype.itemsize * math.prod(shape)].view(dtype).reshape(shape)
                arrays[section.name] = Growable.over(data, section.shape[0])
            if copy is not None:
                unload(copy)
    except (OSError, LookupError, TypeError, ValueError, struct.error, msgspec.DecodeError):
        return None
    return Snapshot(contents.header, arrays)


def _copied(descriptor: int, contents: _Contents, folder: str) -> Mapped | None:
    """The sections, mapped from a sparse copy; None where there is no space for one. ValueError if one is damaged."""
    blocks = threading.local()
    try:
        with unlinked(folder) as file:
            for section in contents.sections:
                copy = partial(_copy_sums, blocks, descriptor, file.fileno(), section.offset)
                if _digest(section.filled_bytes, copy) != section.digest:
                    raise ValueError(f"{section.name} is damaged")
            file.truncate(contents.size)
            return private_copy(file.fileno(), contents.size)
    except OSError:
        return None


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _digest(size: int, sums: Callable[[int, int], bytes]) -> str:
    """SHA-256 of the sums of each page's 8-byte words, which any flipped bit and any moved page changes.

    `sums` returns those of the bytes from one offset to another. Runs at memory speed on all threads.
    """
    tasks = [partial(sums, begin, min(begin + _BLOCK_BYTES, size)) for begin in range(0, size, _BLOCK_BYTES)]
    digest = hashlib.sha256(size.to_bytes(8, "little"))
    for part in run_tasks(tasks):
        digest.update(part)
    return digest.hexdigest()


def _sums(flat: NDArray[np.uint8], begin: int, end: int) -> bytes:
    flat = flat[begin:end]
    whole = len(flat) // _PAGE * _PAGE
    sums: NDArray[np.uint64] = flat[:whole].view("<u8").reshape(-1, _PAGE // 8).sum(axis=1, dtype=np.uint64)
    return sums.tobytes() + flat[whole:].tobytes()


def _read_sums(flat: NDArray[np.uint8], source: int, offset: int, begin: int, end: int) -> bytes:
    """The sums of bytes that are read into `flat` from their place in a file."""
    view, at = flat[begin:end].data, offset + begin
    while view:
        if not (done := read_into(source, view, at)):
            raise ValueError("the file is truncated")
        view, at = view[done:], at + done
    return _sums(flat, begin, end)


def _copy_sums(blocks: threading.local, source: int, target: int, offset: int, begin: int, end: int) -> bytes:
    """The sums of bytes that are copied to the same place in another file, through a block of this thread."""
    if not hasattr(blocks, "block"):
        blocks.block = np.empty(_BLOCK_BYTES, np.uint8)
    sums = _read_sums(blocks.block, source, offset + begin, 0, end - begin)
    view, at = blocks.block[: end - begin].data, offset + begin
    while view:
        done = write_at(target, view, at)
        view, at = view[done:], at + done
    return sums
