"""The in-memory index in a file, mapped: a million records are ready without reading the store.

The file is `<database>-index`, derived and private to its owner (mode 0600). It can be deleted at any time, and
whatever does not match is ignored: format, size, checksums, and the store's token, lexicon and embedder. Pages are
mapped copy-on-write: changes stay in memory, and other processes may replace the file meanwhile.

Layout: 8 bytes of magic, the header's length and CRC-32 (uint32 each), the header as JSON, then sections at multiples
of 4096, each with room to append behind it (a hole that takes no space).
"""

from __future__ import annotations

import mmap
import os
import struct
import time
import uuid
import zlib
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from recollect.index.growable import Growable
from recollect.index.pool import blocks, run_tasks

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Header", "Saved", "new_token", "read", "write"]

_MAGIC = b"RcIndex\x01"
_PREFIX = struct.Struct("<8sII")
_PAGE = 4096
# Who leaves an unfinished file that long was killed.
_ABANDONED_SECONDS = 600
# Rows that fit behind a section before it has to be copied, beside an eighth of it.
_ROOM = 4096
_SMALLEST_SUM = 2**20


class _Section(Struct, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]
    capacity: int
    offset: int
    checksum: int


class Header(Struct, frozen=True, kw_only=True):
    """What a sidecar was made from: the commit `sequence` of the store that `token` names.

    `dimension` is that of the vectors, 0 without any.
    """

    token: str
    sequence: int
    lexicon_epoch: str
    fingerprint: str
    dimension: int


class _Contents(Struct, frozen=True):
    header: Header
    size: int
    sections: list[_Section]


class Saved(NamedTuple):
    """A sidecar that was read: its arrays are mapped."""

    header: Header
    arrays: dict[str, Growable[Any]]


def write(path: str, header: Header, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a sidecar to `path`, which must not exist, and sync it; OSError where that cannot be done."""
    sections, end = [], 0
    for name, array in arrays.items():
        capacity = len(array) + len(array) // 8 + _ROOM
        sections.append(_Section(name, array.dtype.str, array.shape, capacity, end, _checksum(array)))
        end += _pages(capacity * array.dtype.itemsize * int(np.prod(array.shape[1:])))
    # Where the sections begin depends on the header's length, and that on where they begin: leave room for it.
    start = _pages(_PREFIX.size + len(msgspec.json.encode(sections)) + 40 * len(sections) + _PAGE)
    sections = [msgspec.structs.replace(section, offset=section.offset + start) for section in sections]
    encoded = msgspec.json.encode(_Contents(header, start + end, sections))
    _remove_abandoned(path)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(_PREFIX.pack(_MAGIC, len(encoded), zlib.crc32(encoded)) + encoded)
        for section, array in zip(sections, arrays.values(), strict=True):
            file.seek(section.offset)
            file.write(_bytes(array).data)
        file.truncate(start + end)
        file.flush()
        os.fsync(file.fileno())


def read(path: str, *, unchecked: Iterable[str] = ()) -> Saved | None:
    """The sidecar at `path`; None where there is none or it is not whole. Sections `unchecked` are not read now."""
    try:
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        magic, length, checksum = _PREFIX.unpack_from(mapped)
        encoded = mapped[_PREFIX.size : _PREFIX.size + length]
        if magic != _MAGIC or zlib.crc32(encoded) != checksum:
            return None
        contents = msgspec.json.decode(encoded, type=_Contents)
        if contents.size != len(mapped):
            return None
        arrays = {}
        for section in contents.sections:
            dtype = np.dtype(section.dtype)
            shape = (section.capacity, *section.shape[1:])
            data = np.frombuffer(mapped, dtype, int(np.prod(shape)), section.offset).reshape(shape)
            array = Growable.over(data, section.shape[0])
            if section.name not in unchecked and _checksum(array.array) != section.checksum:
                return None
            arrays[section.name] = array
    except (OSError, ValueError, struct.error, msgspec.DecodeError):
        return None
    return Saved(contents.header, arrays)


def new_token() -> str:
    """A token that no other sidecar has."""
    return uuid.uuid4().hex


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _checksum(array: NDArray[Any]) -> int:
    """The sum of all 8-byte words, and of the bytes left over, modulo 2^64: every byte counts, at memory speed."""
    flat = _bytes(array)
    words = flat[: len(flat) // 8 * 8].view(np.uint64)
    rest = int(flat[8 * len(words) :].sum(dtype=np.uint64))
    sums = run_tasks([partial(_sum, words[start:stop]) for start, stop in blocks(len(words), _SMALLEST_SUM)])
    return (rest + sum(sums)) % 2**64


def _sum(words: NDArray[np.uint64]) -> int:
    return int(words.sum())


def _remove_abandoned(path: str) -> None:
    try:
        if time.time() - os.stat(path).st_mtime > _ABANDONED_SECONDS:
            os.unlink(path)
    except OSError:
        pass
