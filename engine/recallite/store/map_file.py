"""The file of the map of memories, `<database>-map`: row ids and coordinates, derived and private to its owner (0600).

Every row has a check of its own. A damaged row is as good as none, and rows can be overwritten in place: that is how a
purge removes the coordinates of what it purges, which tell what a memory was about.

Layout: 8 bytes of magic, the header's length and CRC-32 (uint32 each), the header as JSON, then the rows.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from recallite.system.descriptors import create_private, open_unfollowed, read_at, write_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MAGIC = b"RcMap\x00\x00\x01"
_PREFIX = struct.Struct("<8sII")
_LONGEST_HEADER = 4096
_FEW = 32
# Odd constants with well spread bits (splitmix64).
_MIX = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93], dtype=np.uint64)

POINT = np.dtype(
    [("id", "<i8"), ("recorded_from", "<i8"), ("x", "<f4"), ("y", "<f4"), ("added", "<u4"), ("check", "<u4")]
)
"""A record's row id, since when its text is as it was placed (microseconds), where it is, and 1 if it was placed among
the others after these had been computed.
"""


class MapHeader(Struct, frozen=True, kw_only=True):
    """How the points were computed: by which method, and by which one was asked for; when (microseconds); from the
    vectors of which embedder.
    """

    method: str
    asked: str
    computed_at: int
    fingerprint: str


class SavedMap(NamedTuple):
    """What a file holds: points (n,) of dtype POINT, ascending by id."""

    header: MapHeader
    points: NDArray[np.void]


def write(path: str, header: MapHeader, points: NDArray[np.void]) -> None:
    """Write a file that must not exist, and sync it. Raises OSError."""
    encoded = msgspec.json.encode(header)
    rows = points.copy()
    rows["check"] = _checks(rows)
    with open(create_private(path), "wb") as file:
        file.write(_PREFIX.pack(_MAGIC, len(encoded), zlib.crc32(encoded)) + encoded)
        file.write(rows.tobytes())
        file.flush()
        os.fsync(file.fileno())


def read(path: str) -> SavedMap | None:
    """What is in a file, without rows that are damaged or were erased; None where there is none or it is damaged."""
    try:
        with open(open_unfollowed(path), "rb") as file:
            header, _ = _header(file.read(_PREFIX.size), file.read)
            data = file.read()
    except (OSError, ValueError, struct.error, msgspec.DecodeError):
        return None
    rows = np.frombuffer(data, dtype=POINT, count=len(data) // POINT.itemsize)
    with np.errstate(invalid="ignore"):
        sound = (rows["id"] > 0) & (rows["check"] == _checks(rows))
        for name in ("x", "y"):
            sound &= (rows[name] >= 0) & (rows[name] <= 1)
    kept = rows[sound]
    if (kept["id"][1:] <= kept["id"][:-1]).any():
        return None
    return SavedMap(header, kept)


def erase(path: str, ids: Sequence[int]) -> None:
    """Overwrite the points of these records by zeros, and sync the file; one that cannot be changed is removed."""
    try:
        descriptor = open_unfollowed(path, writing=True)
    except FileNotFoundError:
        return
    except OSError:
        os.unlink(path)
        return
    try:
        _, start = _header(read_at(descriptor, _PREFIX.size, 0), lambda size: read_at(descriptor, size, _PREFIX.size))
        data = read_at(descriptor, os.fstat(descriptor).st_size - start, start)
        rows = np.frombuffer(data, dtype=POINT, count=len(data) // POINT.itemsize)
        places = _places_of(rows["id"], np.asarray(ids, dtype=np.int64))
        for place in places.tolist():
            write_at(descriptor, bytes(POINT.itemsize), start + place * POINT.itemsize)
        if len(places):
            os.fsync(descriptor)
    except (OSError, ValueError, struct.error, msgspec.DecodeError):
        os.unlink(path)
    finally:
        os.close(descriptor)


def _places_of(held: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where ids are. They ascend, but for zeros where one was erased: comparing beats sorting for a few of them."""
    if len(ids) > _FEW:
        return np.flatnonzero(np.isin(held, ids))
    return np.concatenate([np.flatnonzero(held == each) for each in ids])


def _header(prefix: bytes, read_more: Callable[[int], bytes]) -> tuple[MapHeader, int]:
    """The header, and where the rows begin."""
    magic, length, checksum = _PREFIX.unpack(prefix)
    if magic != _MAGIC or length > _LONGEST_HEADER:
        raise ValueError("no map")
    encoded = read_more(length)
    if zlib.crc32(encoded) != checksum:
        raise ValueError("a damaged header")
    return msgspec.json.decode(encoded, type=MapHeader), _PREFIX.size + length


def _checks(rows: NDArray[np.void]) -> NDArray[np.uint32]:
    """A checksum of each row's other fields."""
    words = np.zeros((len(rows), POINT.itemsize), dtype=np.uint8)
    words[:] = np.frombuffer(rows.tobytes(), dtype=np.uint8).reshape(-1, POINT.itemsize)
    words[:, -4:] = 0
    mixed: NDArray[np.uint64] = words.view("<u8") * _MIX
    mixed ^= mixed >> np.uint64(29)
    summed: NDArray[np.uint64] = (mixed * _MIX[::-1]).sum(axis=1, dtype=np.uint64)
    return (summed >> np.uint64(32)).astype(np.uint32)
