"""The files of an export: of a folder, of the ZIP files in it, or of one ZIP file, which is never unpacked."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

from recallite.errors import InvalidInput
from recallite.model.reports import FileTrouble
from recallite.system.folders import open_regular
from recallite_connect.importers.files import files_below
from recallite_connect.importers.json_items import array_items, begins_array, json_value
from recallite_connect.importers.values import shown_name

_MAX_RATIO = 100  # DEFLATE reaches 1,032; conversations as JSON are compressed 4 to 20 times
_ALWAYS_BYTES = 16 << 20
_MAX_MEMBERS = 5_000
_MAX_VALUE_BYTES = 256 << 20
_BLOCK_BYTES = 1 << 20
_ENCRYPTED = "it is encrypted: unpack the ZIP file with its password, and give the folder"
# What reading a damaged, encrypted or oddly compressed member raises.
_UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)


class Value(NamedTuple):
    """A value of JSON, its number in the file from 1, and the line that it begins in."""

    number: int
    line: int
    data: Any


class Member:
    """One file of an export. `name` is its path in the export, with the name of its ZIP file before it, for people.

    `opened` opens it, until the next member is asked for; `problem` says why it cannot be opened.
    """

    def __init__(self, name: str, opened: Callable[[], io.BufferedReader], problem: str | None = None) -> None:
        self.name, self.opened, self.problem = shown_name(name), opened, problem


def _opener(path: Path) -> Callable[[], io.BufferedReader]:
    return lambda: open_regular(path)


class _Allowance:
    """The bytes that a file may unpack to: many times what it has."""

    def __init__(self, packed_bytes: int) -> None:
        self._limit = self._left = max(_ALWAYS_BYTES, packed_bytes * _MAX_RATIO)

    def take(self, count: int) -> None:
        """Raise BadZipFile if there were more than that."""
        self._left -= count
        if self._left < 0:
            raise zipfile.BadZipFile(f"it unpacks to more than {self._limit:,} bytes, which no export does")


class _Unpacked(io.RawIOBase):
    """A member of a ZIP file as a stream, within what it and the file may unpack to."""

    def __init__(self, stream: IO[bytes], *allowances: _Allowance) -> None:
        self._stream, self._allowances = stream, allowances

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._stream.read(len(buffer))
        buffer[: len(chunk)] = chunk
        for allowance in self._allowances:
            allowance.take(len(chunk))
        return len(chunk)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _unpacked(archive: zipfile.ZipFile, inside: zipfile.ZipInfo, allowed: _Allowance) -> io.BufferedReader:
    return io.BufferedReader(_Unpacked(archive.open(inside), _Allowance(inside.compress_size), allowed))


def members_of(path: Path, wanted: re.Pattern[str]) -> Iterator[Member]:
    """The files whose path in the export matches, in order of their names; `path` itself if it is another file.

    Symbolic links are not followed. A ZIP file in a folder that cannot be read is a member with a problem; InvalidInput
    if it is `path` itself.
    """
    if not path.is_dir():
        if zipfile.is_zipfile(path):
            yield from _in_zip(path, "", wanted)
        else:
            yield Member(path.name, _opener(path))
        return
    below = [*files_below(path, lambda name: name.endswith(("/", ".zip", ".ZIP")) or wanted.search(name) is not None)]
    for trouble in below:
        if isinstance(trouble, FileTrouble):
            yield Member(trouble.path, _opener(path), trouble.reason)
    for name in sorted(name for name in below if isinstance(name, str)):
        if wanted.search(name):
            yield Member(name, _opener(path / name))
            continue
        try:
            yield from _in_zip(path / name, f"{name}/", wanted)
        except InvalidInput as fault:
            yield Member(name, _opener(path / name), str(fault))


def _in_zip(path: Path, prefix: str, wanted: re.Pattern[str]) -> Iterator[Member]:
    try:
        archive = zipfile.ZipFile(path)
    except _UNREADABLE as fault:
        raise InvalidInput(f"{path} is not a ZIP file that can be read: {fault}") from fault
    with archive:
        members = [
            info for info in archive.infolist()
            if not info.is_dir() and not info.filename.startswith("__MACOSX/") and wanted.search(info.filename)
        ]  # fmt: skip
        if len(members) > _MAX_MEMBERS:
            raise InvalidInput(
                f"{path} has {len(members):,} files to read, more than {_MAX_MEMBERS:,}: unpack it, and give the folder"
            )
        allowed = _Allowance(path.stat().st_size)
        for info in sorted(members, key=lambda member: member.filename):
            problem = _ENCRYPTED if info.flag_bits & 1 else None
            yield Member(prefix + info.filename, partial(_unpacked, archive, info, allowed), problem)


def values_of(member: Member) -> Iterator[Value | FileTrouble]:
    """The items of the array that a file is, one at a time, or the one value that it has."""
    if member.problem is not None:
        yield FileTrouble(path=member.name, reason=member.problem)
        return
    try:
        with member.opened() as stream:
            yield from (_items if begins_array(stream.peek()) else _only)(member.name, stream)
    except _UNREADABLE as fault:
        yield FileTrouble(path=member.name, reason=f"it cannot be read further: {fault}")


def _items(name: str, stream: BinaryIO) -> Iterator[Value | FileTrouble]:
    for item in array_items(stream):
        try:
            yield Value(item.number, item.line, item.value())
        except InvalidInput as fault:
            yield FileTrouble(path=name, line=item.line, reason=f"item {item.number}: {fault}")


def _only(name: str, stream: BinaryIO) -> Iterator[Value | FileTrouble]:
    data = bytearray()
    while block := stream.read(_BLOCK_BYTES):
        data += block
        if len(data) > _MAX_VALUE_BYTES:
            yield FileTrouble(path=name, reason=f"it has more than {_MAX_VALUE_BYTES:,} bytes and is no array")
            return
    try:
        yield Value(1, 1, json_value(bytes(data.removeprefix(b"\xef\xbb\xbf"))))
    except InvalidInput as fault:
        yield FileTrouble(path=name, reason=str(fault))
