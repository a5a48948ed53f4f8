"""The index snapshot: the in-memory index in a file, so that a million records load without reading the store.

The file is `<database>-index`, derived and private to its owner (mode 0600). It can be deleted at any time, and it is
ignored where anything does not match: format, size, checksums, or the store's token, lexicon and embedder.

The file itself is never mapped: truncating a mapped file kills the processes that read it (SIGBUS). It is copied into
an unlinked file beside it that nobody else can open, and mapped from there, so that it takes no memory of the process's
own; if there is no room for the copy it is read into memory. Either way loading 100,000 records (80 MB) takes 60 ms
of processor time more than mapping the file would: 0.2 s, against 0.8 s from the store.

Layout: 8 bytes of magic, the header's length and CRC-32 (uint32 each), the header as JSON, then sections at multiples
of 4096, each followed by room to append (a hole in the file).
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recallite.index.growable import Growable
from recallite.store.values import Commit
from recallite.system.files import Mapped, copy_at, create_private, private_copy, read_at, read_into, unload, zeros
from recallite.system.parallel import run_tasks

_MAGIC = b"RcIndex\x08"
_PREFIX = struct.Struct("<8sII")
_PAGE = 4096
# An unfinished file this old belongs to a process that was killed.
_ABANDONED_SECONDS = 600
# Rows that can be appended to a section before it has to be copied, besides an eighth of its own.
_ROOM = 4096
# Bytes per task: still in the processor's cache when they are summed.
_BLOCK_BYTES = 2**20


class _Section(Struct, frozen=True):
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
    """The origin of a snapshot: the commit `commit` of the store that has `token`.

    `dimension` is that of the vectors, 0 without vectors.
    """

    token: str
    commit: Commit
    lexicon_epoch: str
    fingerprint: str
    dimension: int


class _Contents(Struct, frozen=True):
    header: Header
    size: int
    sections: list[_Section]


class Snapshot(NamedTuple):
    """A snapshot in memory: its arrays belong to this process alone."""

    header: Header
    arrays: dict[str, Growable[Any]]


def write(path: str, header: Header, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a snapshot to `path`, which must not exist, and sync it. Raises OSError, and leaves nothing there."""
    sections, end = [], 0
    for name, array in arrays.items():
        capacity = len(array) + len(array) // 8 + _ROOM
        sections.append(_Section(name, array.dtype.str, array.shape, capacity, end, _digest(_bytes(array))))
        end += _pages(capacity * array.dtype.itemsize * math.prod(array.shape[1:]))
    # The offsets of the sections depend on the header's length, which depends on them: reserve an upper bound.
    start = _pages(_PREFIX.size + len(msgspec.json.encode(sections)) + 40 * len(sections) + _PAGE)
    sections = [msgspec.structs.replace(section, offset=section.offset + start) for section in sections]
    encoded = msgspec.json.encode(_Contents(header, start + end, sections))
    _remove_abandoned(path)
    descriptor = create_private(path)
    with _removed_if_it_fails(path), open(descriptor, "wb") as file:
        file.write(_PREFIX.pack(_MAGIC, len(encoded), zlib.crc32(encoded)) + encoded)
        for section, array in zip(sections, arrays.values(), strict=True):
            file.seek(section.offset)
            file.write(_bytes(array).data)
        file.truncate(start + end)
        file.flush()
        os.fsync(file.fileno())


def read(path: str) -> Snapshot | None:
    """The snapshot at `path`; None where there is none or it is damaged.

    The arrays are mapped from an unlinked copy in its folder, and take memory only where they are written to; if
    there is no space for a copy they are in memory.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            contents = _contents(file.fileno())
            if contents is None:
                return None
            copy = _copied(file.fileno(), contents, os.path.dirname(path))
            source = file.fileno() if copy is None else None
            mapped = np.frombuffer(zeros(contents.size) if copy is None else copy, np.uint8)
            arrays = {}
            for section in contents.sections:
                begin, dtype = section.offset, np.dtype(section.dtype)
                if _digest(mapped[begin : begin + section.filled_bytes], source, begin) != section.digest:
                    return None
                shape = (section.capacity, *section.shape[1:])
                data = mapped[begin : begin + dtype.itemsize * math.prod(shape)].view(dtype).reshape(shape)
                if not 0 <= section.shape[0] <= section.capacity:
                    return None
                arrays[section.name] = Growable.over(data, section.shape[0])
            if copy is not None:
                unload(copy)
    except (OSError, LookupError, TypeError, ValueError, struct.error, msgspec.DecodeError):
        return None
    return Snapshot(contents.header, arrays)


def _contents(descriptor: int) -> _Contents | None:
    magic, length, checksum = _PREFIX.unpack(read_at(descriptor, _PREFIX.size, 0))
    size = os.fstat(descriptor).st_size
    if magic != _MAGIC or length > size:
        return None
    encoded = read_at(descriptor, length, _PREFIX.size)
    if zlib.crc32(encoded) != checksum:
        return None
    contents = msgspec.json.decode(encoded, type=_Contents)
    return contents if contents.size == size else None


def _copied(descriptor: int, contents: _Contents, folder: str) -> Mapped | None:
    """The sections, mapped from a sparse copy; None where there is no space for one."""
    import tempfile  # takes 5 ms, which other loads do not need

    try:
        with tempfile.TemporaryFile(dir=folder, prefix="recallite-") as file:
            for section in contents.sections:
                _copy(descriptor, file.fileno(), section.offset, section.offset + section.filled_bytes)
            file.truncate(contents.size)
            return private_copy(file.fileno(), contents.size)
    except OSError:
        return None


def _copy(source: int, target: int, begin: int, end: int) -> None:
    while begin < end:
        done = copy_at(source, target, end - begin, begin)
        if not done:
            raise ValueError("the file is truncated")
        begin += done


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _digest(flat: NDArray[np.uint8], source: int | None = None, offset: int = 0) -> str:
    """SHA-256 of the sums of each page's 8-byte words, which any flipped bit and any moved page changes.

    Runs at memory speed on all threads. With a `source` the bytes are first read from there, at `offset`.
    """
    bounds = range(0, len(flat), _BLOCK_BYTES)
    tasks = [partial(_sums, flat[start : start + _BLOCK_BYTES], source, offset + start) for start in bounds]
    digest = hashlib.sha256(len(flat).to_bytes(8, "little"))
    for sums in run_tasks(tasks):
        digest.update(sums)
    return digest.hexdigest()


def _sums(flat: NDArray[np.uint8], source: int | None, offset: int) -> bytes:
    if source is not None:
        _fill(flat, source, offset)
    whole = len(flat) // _PAGE * _PAGE
    sums: NDArray[np.uint64] = flat[:whole].view("<u8").reshape(-1, _PAGE // 8).sum(axis=1, dtype=np.uint64)
    return sums.tobytes() + flat[whole:].tobytes()


def _fill(flat: NDArray[np.uint8], source: int, offset: int) -> None:
    view = flat.data
    while view:
        done = read_into(source, view, offset)
        if not done:
            raise ValueError("the file is truncated")
        view, offset = view[done:], offset + done


@contextmanager
def _removed_if_it_fails(path: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def _remove_abandoned(path: str) -> None:
    try:
        if time.time() - os.stat(path).st_mtime > _ABANDONED_SECONDS:
            os.unlink(path)
    except OSError:
        pass
