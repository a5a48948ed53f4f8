"""The files of an export: of a folder, of the ZIP files in it, or of one ZIP file, which is never unpacked."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from recallite.errors import InvalidInput
from recallite.model.reports import FileTrouble
from recallite.transfer.importers.files import files_below
from recallite.transfer.importers.json_items import array_items, begins_array, json_value
from recallite.transfer.importers.values import shown_name

_MAX_RATIO = 250  # DEFLATE reaches 1,032; conversations as JSON are compressed 4 to 20 times
_ALWAYS_BYTES = 256 << 20
_MAX_VALUE_BYTES = 256 << 20
_START_BYTES = 4096
# What reading a damaged, encrypted or oddly compressed member raises.
_UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)


class Value(NamedTuple):
    """A value of JSON, its number in the file from 1, and the line that it begins in."""

    number: int
    line: int
    data: Any


class Member:
    """One file of an export. `name` is its path in the export, with the name of its ZIP file before it, for people.

    `problem` says why it cannot be opened.
    """

    def __init__(
        self, name: str, path: Path, inside: zipfile.ZipInfo | None = None, problem: str | None = None
    ) -> None:
        self.name, self._path, self._inside, self.problem = shown_name(name), path, inside, problem

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Its bytes, as they are unpacked."""
        if self._inside is None:
            with self._path.open("rb") as stream:
                yield stream
            return
        with zipfile.ZipFile(self._path) as archive, archive.open(self._inside) as packed:
            limit = max(_ALWAYS_BYTES, self._inside.compress_size * _MAX_RATIO)
            yield cast(BinaryIO, _Limited(cast(BinaryIO, packed), limit))


class _Limited:
    """A stream that refuses to be far larger than what it was unpacked from."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream, self._left, self._limit = stream, limit, limit

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise zipfile.BadZipFile(f"it unpacks to more than {self._limit:,} bytes, which no export does")
        return chunk


def members_of(path: Path, wanted: re.Pattern[str]) -> Iterator[Member]:
    """The files whose path in the export matches, in order of their names; `path` itself if it is another file.

    Symbolic links are not followed. A ZIP file in a folder that cannot be read is a member with a problem; InvalidInput
    if it is `path` itself.
    """
    if not path.is_dir():
        if zipfile.is_zipfile(path):
            yield from _in_zip(path, "", wanted)
        else:
            yield Member(path.name, path)
        return
    below = [*files_below(path, lambda name: name.endswith(("/", ".zip", ".ZIP")) or wanted.search(name) is not None)]
    for trouble in below:
        if isinstance(trouble, FileTrouble):
            yield Member(trouble.path, path, problem=trouble.reason)
    for name in sorted(name for name in below if isinstance(name, str)):
        if wanted.search(name):
            yield Member(name, path / name)
            continue
        try:
            yield from _in_zip(path / name, f"{name}/", wanted)
        except InvalidInput as fault:
            yield Member(name, path / name, problem=str(fault))


def _in_zip(path: Path, prefix: str, wanted: re.Pattern[str]) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(path) as archive:
            inside = archive.infolist()
    except _UNREADABLE as fault:
        raise InvalidInput(f"{path} is not a ZIP file that can be read: {fault}") from fault
    for info in sorted(inside, key=lambda member: member.filename):
        if not info.is_dir() and not info.filename.startswith("__MACOSX/") and wanted.search(info.filename):
            yield Member(prefix + info.filename, path, info)


def values_of(member: Member) -> Iterator[Value | FileTrouble]:
    """The items of the array that a file is, one at a time, or the one value that it has."""
    if member.problem is not None:
        yield FileTrouble(path=member.name, reason=member.problem)
        return
    try:
        with member.open() as stream:
            is_array = begins_array(stream.read(_START_BYTES))
        with member.open() as stream:
            yield from _items(member.name, stream) if is_array else _only(member.name, stream)
    except _UNREADABLE as fault:
        yield FileTrouble(path=member.name, reason=f"it cannot be read further: {fault}")


def _items(name: str, stream: BinaryIO) -> Iterator[Value | FileTrouble]:
    for item in array_items(stream):
        if item.problem is not None:
            yield FileTrouble(path=name, line=item.line, reason=f"item {item.number}: {item.problem}")
            continue
        try:
            yield Value(item.number, item.line, json_value(item.data))
        except InvalidInput as fault:
            yield FileTrouble(path=name, line=item.line, reason=f"item {item.number}: {fault}")


def _only(name: str, stream: BinaryIO) -> Iterator[Value | FileTrouble]:
    data = stream.read(_MAX_VALUE_BYTES + 1)
    if len(data) > _MAX_VALUE_BYTES:
        yield FileTrouble(path=name, reason=f"it has more than {_MAX_VALUE_BYTES:,} bytes and is no array")
        return
    try:
        yield Value(1, 1, json_value(data.removeprefix(b"\xef\xbb\xbf")))
    except InvalidInput as fault:
        yield FileTrouble(path=name, reason=str(fault))
