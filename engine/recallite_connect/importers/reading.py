"""Reading files of other systems: entries, values made fit for a memory, JSON of any size, archives."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.model.authority import Authority
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite.system.folders import kind_of, open_regular, printable, walk
from recallite.system.messages import shown
from recallite_documents.written_dates import read_written


class FoundMemory(Struct, frozen=True, kw_only=True):
    """A memory. Its `record.id` is that of the source, which no other memory there has; `path` is where it stood.

    `changes` says that it may be edited there and read again, `authority` whose word it is; None: as the source is
    declared. `times` is how often it is said there.
    """

    record: NewRecord
    path: str
    line: int | None = None
    changes: bool | None = None
    authority: Authority | None = None
    times: int = 1


class FoundLink(Struct, frozen=True, kw_only=True):
    """A link between two memories of the source, by their ids there."""

    source: str
    target: str
    type: str
    path: str
    line: int | None = None


class LeftOut(Struct, frozen=True):
    """Something that is read well and is no memory, as a tool's output; `what` names its kind in the plural."""

    what: str
    count: int = 1


Entry: TypeAlias = FoundMemory | FoundLink | FileTrouble | LeftOut
"""A memory, a link between two, something that could not be read, or something that is no memory."""
Entries: TypeAlias = Iterator[Entry]
"""The result of a reader: one entry at a time, however large its files are."""


_MAX_LABEL_CHARS = 200
_MAX_SEGMENT_CHARS = 100
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def cleaned(text: str) -> str:
    """A text with U+FFFD for NUL and lone surrogates."""
    # The expression reads 40 MB a second, these two 1 GB.
    if "\0" not in text:
        with suppress(UnicodeEncodeError):
            _ = text.isascii() or text.encode()
            return text
    return _UNREADABLE.sub("\ufffd", text)


def cleaned_json(value: Any) -> Any:
    """A value of JSON with its texts and keys `cleaned`; what is no JSON in it stays as it is."""
    if isinstance(value, str):
        return cleaned(value)
    if isinstance(value, Mapping):
        return {cleaned_json(name): cleaned_json(inner) for name, inner in value.items()}
    return [*map(cleaned_json, value)] if isinstance(value, list | tuple) else value


def label_of(value: object) -> str | None:
    """A tag, topic, context or source: a line of at most 200 characters; None for what is blank or no text."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    return _CONTROL.sub(" ", cleaned(str(value))).strip()[:_MAX_LABEL_CHARS].rstrip() or None


def tags_of(values: object) -> tuple[str, ...]:
    """The tags of a list, each once; a text is tags with commas or white space between."""
    if isinstance(values, str):
        values = values.replace(",", " ").split()
    tags = map(label_of, values) if isinstance(values, Iterable) else ()
    return tuple(dict.fromkeys(tag.removeprefix("#") for tag in tags if tag and tag != "#"))


def scope_of(*names: object) -> str:
    """The scope of these names, one below the other, without blank ones."""
    segments = (_CONTROL.sub(" ", cleaned(str(name))) for name in names if name is not None)
    plain = (re.sub(r"[/\\]+", "-", segment).strip()[:_MAX_SEGMENT_CHARS].strip() for segment in segments)
    return "/" + "/".join("-" if segment in (".", "..") else segment for segment in plain if segment)


def time_of(
    value: object, *, end: bool = False, day_first: Callable[[], bool | None] = lambda: None
) -> datetime | None:
    """The moment that a value means, or the end of the day that it names; see `readings_of`.

    None for what is no time, or has two readings that `day_first`, which is asked then, does not decide.
    """
    written = read_written(value, day_first)
    return None if written is None else written.end if end else written.begin


def text_of(value: object) -> str:
    """A text that a store can hold, without white space around it; empty for what is no text."""
    return cleaned(value).strip() if isinstance(value, str) else ""


def shown_name(path: str) -> str:
    """The path of a file as reports show it, with U+FFFD for what a terminal does not print."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in path)


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object of JSON, else an empty one."""
    return value if isinstance(value, dict) else {}


def array(value: object) -> list[Any]:
    """The value if it is an array of JSON, else an empty one."""
    return value if isinstance(value, list) else []


def labels(**fields: object) -> dict[str, Any]:
    """The fields that are numbers, or texts that are not blank, as metadata."""
    values = {name: value if isinstance(value, int) else label_of(value) for name, value in fields.items()}
    return {name: value for name, value in values.items() if value is not None}


_BLOCK_BYTES = 1 << 20
_MAX_ITEM_BYTES = 256 << 20
_MAX_KEY_BYTES = 1000
_IN_STRING = rb'[^"\\]*+(?:\\.[^"\\]*+)*+("?)'
_string_rest = re.compile(_IN_STRING, re.DOTALL)
_marks = re.compile(rb'"' + _IN_STRING + rb"|[\[\]{},]", re.DOTALL)
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")
_BEFORE_ARRAY = b"\xef\xbb\xbf \t\r\n"


class Item(NamedTuple):
    """An item of an array: its number from 1, the line it begins in, and its JSON, or why there is none."""

    number: int
    line: int
    data: bytes
    problem: str | None = None

    def value(self) -> Any:
        """Return its value. Raises InvalidInput if there is none."""
        if self.problem is not None:
            raise InvalidInput(self.problem)
        return json_value(self.data)


def json_value(data: bytes) -> Any:
    """The value of a JSON text, in which bytes that are not UTF-8 and halves of surrogate pairs may be.

    InvalidInput for what is not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as fault:
        try:
            return json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise InvalidInput(f"{shown(data[:60].decode('utf-8', 'replace'))} is not JSON: {fault}") from None


def begins_array(start: bytes) -> bool:
    """Whether a file that starts so is one JSON array."""
    return start.lstrip(_BEFORE_ARRAY).startswith(b"[")


def array_items(stream: IO[bytes], keys: Collection[str] = ()) -> Iterator[Item]:
    """The items of the array that a stream is, or that is in an object under one of `keys`; all of these are read.

    An item that is too large, and one that the stream ends in, has a problem. No more than one item is held.
    """
    yield from _Scan({b'"%b"' % key.encode() for key in keys}).items(stream)


class _Scan:
    """The state of a scan: how deep it is, and the bytes of the item that it is in."""

    def __init__(self, keys: Collection[bytes]) -> None:
        self._keys = keys
        self._depth = 0
        self._base = 0  # the depth of the items; 0 outside of an array that is read
        self._in_string = False
        self._named = b""  # the last string, with its quotes
        self._held = bytearray()
        self._oversize = False
        self._number = 0
        self._line = self._item_line = 1
        self._counted = 0  # how far lines of the block are counted

    def items(self, stream: IO[bytes]) -> Iterator[Item]:
        rest = b""
        while read := stream.read(_BLOCK_BYTES):
            block = rest + read
            rest = b""
            if block.endswith(b"\\"):  # what it escapes comes with the next block
                block, rest = block[:-1], block[-1:] if (len(block) - len(block.rstrip(b"\\"))) % 2 else b""
                block = block if rest else block + b"\\"
            yield from self._block(block)
        if self._base or self._in_string or self._depth:
            yield Item(self._number + 1, self._item_line, b"", "the file ends before the array does")

    def _block(self, block: bytes) -> Iterator[Item]:
        begun = position = 0  # of the item, and of the scan
        if self._in_string:
            rest = _string_rest.match(block)
            assert rest is not None
            self._in_string, position = not rest[1], rest.end()
            self._name(block[:position])
        self._counted = 0
        for mark in _marks.finditer(block, position):
            first = block[mark.start()]
            if first == 0x22:
                self._in_string, self._named = not mark[1], b""
                self._name(mark[0])
            elif first in _OPENING:
                self._depth += 1
                if not self._base and first == 0x5B and (
                    self._depth == 1 or (self._depth == 2 and self._named in self._keys)
                ):  # fmt: skip
                    self._base, begun = self._depth, mark.end()
                    self._count_lines(block, begun)
            elif self._base and self._depth == self._base and first != 0x7D:
                yield from self._item(block[begun : mark.start()])
                begun = mark.end()
                self._count_lines(block, begun)
                if first == 0x5D:
                    self._base, self._depth = 0, self._depth - 1
            elif first in _CLOSING:
                self._depth -= 1
        if self._base:
            self._hold(block[begun:])
        self._line += block.count(b"\n", self._counted)

    def _name(self, part: bytes) -> None:
        """Keep a part of a string that may be the key of an array to read."""
        if self._depth == 1 and not self._base and len(self._named) + len(part) < _MAX_KEY_BYTES:
            self._named += part

    def _count_lines(self, block: bytes, position: int) -> None:
        self._line += block.count(b"\n", self._counted, position)
        self._counted, self._item_line = position, self._line

    def _hold(self, part: bytes) -> None:
        self._oversize = self._oversize or len(self._held) + len(part) > _MAX_ITEM_BYTES
        if self._oversize:
            self._held.clear()
        else:
            self._held += part

    def _item(self, end: bytes) -> Iterator[Item]:
        self._hold(end)
        item, oversize = bytes(self._held), self._oversize
        data = item.strip()
        self._held.clear()
        self._oversize = False
        if oversize or data:
            self._number += 1
            problem = f"it has more than {_MAX_ITEM_BYTES:,} bytes" if oversize else None
            line = self._item_line + item[: len(item) - len(item.lstrip())].count(b"\n")
            yield Item(self._number, line, data, problem)


MAX_LINE_BYTES = 64 << 20
_MOST_DOCUMENT_BYTES = 256 << 20
_DEEPEST = 64


def files_below(
    folder: Path, wanted: Callable[[str], bool], *, report_links: bool = False
) -> Iterator[str | FileTrouble]:
    """The paths of the regular files below a folder that are wanted, and what cannot be read.

    Folders, whose paths end with a slash, are entered if they are wanted. Hidden files and folders are left out, and
    symbolic links are not followed. InvalidInput if the folder itself cannot be read.
    """
    troubles: list[FileTrouble] = []

    def refused(inner: str, fault: OSError) -> None:
        reason = f"it cannot be read: {fault.strerror or fault}"
        if not inner:
            raise InvalidInput(f"{folder}: {reason}") from fault
        troubles.append(FileTrouble(path=printable(inner), reason=reason))

    for inner, folders, entries in walk(folder, refused):
        prefix = f"{inner}/" if inner else ""
        folders[:] = [name for name in folders if not name.startswith((".", "__MACOSX")) and wanted(f"{prefix}{name}/")]
        if folders and prefix.count("/") >= _DEEPEST:
            troubles.append(FileTrouble(path=printable(inner), reason=f"folders deeper than {_DEEPEST} are left out"))
            folders.clear()
        for entry in entries:
            path = prefix + entry.name
            if entry.name.startswith(".") or not wanted(path):
                continue
            if entry.is_file(follow_symlinks=False):
                yield path
            elif report_links:
                kind = kind_of(entry.stat(follow_symlinks=False).st_mode)
                troubles.append(FileTrouble(path=printable(path), reason=f"it is {kind}, which is not followed"))
        yield from troubles
        troubles.clear()
    yield from troubles


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, from 1. InvalidInput if the file cannot be opened.

    Of a line longer than 64 MiB only the beginning is read, which is no JSON.
    """
    try:
        stream = open_regular(path)
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    with stream:
        number = 0
        while line := next_line(stream):
            number += 1
            if line := line.removeprefix(b"\xef\xbb\xbf").strip():
                yield number, line


def json_document(path: Path) -> Any:
    """The value of a file that is one JSON value; None for anything else, such as JSON lines. InvalidInput as below."""
    try:
        with open_regular(path) as stream:
            data = stream.read(_MOST_DOCUMENT_BYTES + 1)
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    if len(data) > _MOST_DOCUMENT_BYTES or not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return None
    try:
        return json_value(data.removeprefix(b"\xef\xbb\xbf"))
    except InvalidInput:
        return None


def is_json_document(path: Path) -> bool:
    """Whether a file is one JSON value of several lines."""
    try:
        value = json_document(path)
        return value is not None and len([*zip(range(2), lines_of(path), strict=False)]) == 2
    except InvalidInput:
        return False


def next_line(stream: BinaryIO) -> bytes:
    """The next line with its end, or the first 64 MiB of it; empty at the end of the file."""
    line = rest = stream.readline(MAX_LINE_BYTES)
    while rest and not rest.endswith(b"\n"):
        rest = stream.readline(MAX_LINE_BYTES)
    return line


_MAX_RATIO = 100  # DEFLATE reaches 1,032; conversations as JSON are compressed 4 to 20 times
_ALWAYS_BYTES = 16 << 20
_MAX_MEMBERS = 5_000
_MAX_VALUE_BYTES = 256 << 20
_ENCRYPTED = "it is encrypted: unpack the ZIP file with its password, and give the folder"
# What reading a damaged, encrypted or oddly compressed member raises.
_DAMAGED_ZIP = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)


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
    """The files with a matching path in the export, in order of their names; `path` itself if it is another file.

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
    except _DAMAGED_ZIP as fault:
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
    except _DAMAGED_ZIP as fault:
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
