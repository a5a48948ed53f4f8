"""Files of lines: read, written, and typed as memories, links and documents.

A file's format is told by its ending, and a written one appears complete or not at all. A parsed line is typed, but not
checked yet. `recallite.transfer` describes the formats.
"""

from __future__ import annotations

import csv
import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, TypeAlias

import msgspec
from msgspec import Struct

from recallite.errors import InvalidInput, StoreError
from recallite.model.authority import AUTHORITIES, Authority, check_authority
from recallite.model.checks import check_path, to_datetime
from recallite.model.records import DEFAULT_IMPORTANCE, NewRecord, Record
from recallite.store.opening import is_file_of
from recallite.system.files import new_file_mode, replacing
from recallite.system.messages import shown

Place = str | os.PathLike[str] | IO[str]
FORMATS = ("jsonl", "csv", "text")
_ENDINGS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".txt": "text", ".text": "text",
    ".md": "text",
}  # fmt: skip
# A byte that is not UTF-8, after `surrogateescape`.
_UNDECODED = re.compile("[\udc80-\udcff]")
_COUNTED_BYTES = 1 << 20


def format_of(place: Place, format: str | None) -> str:
    """The given format, else the one of the file's ending; JSON lines for a stream."""
    if format is not None:
        if isinstance(format, str) and format == "markdown":
            raise InvalidInput("Markdown is a folder of files: use export_folder and import_folder")
        if not isinstance(format, str) or format not in FORMATS:
            raise InvalidInput(f"format is {shown(format)}: use one of {', '.join(FORMATS)}")
        return format
    if not isinstance(place, str | os.PathLike):
        return "jsonl"
    ending = check_path(place).suffix.lower()
    if ending not in _ENDINGS:
        raise InvalidInput(
            f"the format of {shown(os.fspath(place))} is not clear from its ending: "
            f"give the format: {', '.join(FORMATS)}, or markdown for a folder. "
            "Documents (PDF, Word, HTML, notes): recallite knowledge ingest"
        )
    return _ENDINGS[ending]


class Lines:
    """The lines of a text stream; `number` counts them, from 1."""

    def __init__(self, stream: IO[str], *, max_chars: int) -> None:
        self._stream = stream
        self._max_chars = max_chars
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.number += 1
        try:
            line = self._stream.readline(self._max_chars + 1)
        except UnicodeDecodeError as fault:
            raise InvalidInput(
                f"the stream is not UTF-8 ({fault.reason}) here or soon after: convert it first"
            ) from None
        except OSError as fault:
            raise InvalidInput(f"reading stopped here: {fault.strerror}") from fault
        if not line:
            self.number -= 1
            raise StopIteration
        if len(line) > self._max_chars:
            raise InvalidInput(f"the line has more than {self._max_chars:,} characters: is the format right?")
        if not line.isascii() and (undecoded := _UNDECODED.search(line)):
            raise InvalidInput(
                f"the byte {ord(undecoded.group()) - 0xDC00:#04x} at character {undecoded.start() + 1} is not UTF-8: "
                "convert the file to UTF-8 first"
            )
        return line.removeprefix("\ufeff") if self.number == 1 else line


@contextmanager
def reading(source: Place, *, store: str, count: bool) -> Iterator[tuple[IO[str], int | None]]:
    """The text stream of a source and, with `count` and for a regular file, its number of lines."""
    if not isinstance(source, str | os.PathLike):
        if not callable(getattr(source, "readline", None)):
            raise InvalidInput(f"source is {shown(source)}: give a path, or a text stream to read from")
        yield source, None
        return
    path = _checked(source, store)
    try:
        total = _count_lines(path) if count and path.is_file() else None
        stream = path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    with stream:
        yield stream, total


@contextmanager
def writing(target: Place, *, store: str) -> Iterator[IO[str]]:
    """A text stream to write to. A file appears, or is replaced, when it is complete."""
    if not isinstance(target, str | os.PathLike):
        if not callable(getattr(target, "write", None)):
            raise InvalidInput(f"target is {shown(target)}: give a path, or a text stream to write to")
        yield target
        target.flush()
        return
    path = _checked(target, store)
    try:
        if path.exists() and not path.is_file():  # /dev/stdout or a FIFO cannot be replaced
            with path.open("w", encoding="utf-8", newline="") as stream:
                yield stream
            return
        mode = path.stat().st_mode & 0o777 if path.exists() else new_file_mode()
        with (
            replacing(path, mode) as descriptor,
            open(descriptor, "w", encoding="utf-8", newline="", closefd=False) as stream,
        ):
            yield stream
    except OSError as fault:
        if isinstance(fault, BrokenPipeError):
            raise
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"the disk that holds {path} is full; nothing was left of the export", "full") from fault
        raise InvalidInput(f"{path} cannot be written: {fault.strerror}") from fault


def _checked(place: str | os.PathLike[str], store: str) -> Path:
    """The real path of a file that is not the store itself: closing it would drop SQLite's locks."""
    path = check_path(place)
    try:
        path = path.resolve()
        if path.is_dir():
            raise InvalidInput(f"{path} is a directory: give the path of a file, e.g. {path / 'memories.jsonl'}")
        if path.exists() and is_file_of(path, store):
            raise InvalidInput(f"{path} is the store itself: give the path of another file")
    except (OSError, RuntimeError) as fault:
        raise InvalidInput(f"{path} cannot be opened: {fault}") from fault
    return path


def _count_lines(path: Path) -> int:
    lines, last = 0, b"\n"
    with path.open("rb") as stream:
        while block := stream.read(_COUNTED_BYTES):
            lines += block.count(b"\n")
            last = block
    return lines + (not last.endswith(b"\n"))


# Lines as memories and links.

FORMAT = "recallite"
VERSION = 1
# The columns of CSV: `remember`'s arguments without the vector, the id, and whose word it is.
COLUMNS = (
    "id", "text", "scope", "kind", "tags", "importance", "metadata", "context", "topic", "source", "position",
    "created_at", "valid_from", "valid_until", "expires_at", "pinned", "authority",
)  # fmt: skip
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_MIN_CELL_CHARS = 4_000_000
_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


class Embedder(Struct, frozen=True, forbid_unknown_fields=True):
    """The embedder that made the vectors of a file."""

    fingerprint: str
    name: str
    dimension: int


class Header(Struct, frozen=True):
    """The first line of an export."""

    embedder: Embedder | None


class LinkTo(Struct, frozen=True, forbid_unknown_fields=True):
    """A link from the memory that lists it."""

    target: str
    type: str = "similar"
    strength: float = 1.0
    created_at: str | None = None
    reason: str | None = None


class LinkLine(LinkTo, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A link with both its ends."""

    source: str


class SupersessionLine(Struct, frozen=True, forbid_unknown_fields=True):
    """One memory in the place of another; with `known_until` it was undone then."""

    old: str
    new: str
    holds_from: str
    known_from: str
    known_until: str | None = None
    reason: str | None = None
    strength: float = 1.0
    certain: bool = True
    by_rule: bool = False


class OccurrenceLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A further time at which a memory was remembered; `text` where it differs from the memory's."""

    at: str
    text: str | None = None


class DocumentLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A document, whose chunks are memories of kind "chunk" with its source."""

    id: str
    source: str
    content_hash: str
    media_type: str
    size_bytes: int
    scope: str = "/"
    title: str | None = None
    chunking: str = ""
    metadata: dict[str, Any] | None = None
    caller_metadata: dict[str, Any] | None = None
    created_at: str | None = None
    updated_at: str | None = None


class Incoming(NewRecord, frozen=True, kw_only=True):
    """A version of a memory: a new record, and the fields that only an import sets."""

    expires_after: timedelta | None = None
    base_importance: float | None = None
    authority: Authority | None = None
    valid_resolved: bool = False
    updated_at: str | None = None
    accessed_at: str | None = None
    access_count: int = 0
    recorded_from: str | None = None
    recorded_until: str | None = None
    repeated: tuple[OccurrenceLine, ...] = ()
    vectors: tuple[bytes, ...] = ()


class RecordFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a memory in a file; times are ISO 8601."""

    id: str | None = None
    kind: str = "memory"
    tags: tuple[str, ...] | None = ()
    importance: float = DEFAULT_IMPORTANCE
    base_importance: float | None = None
    pinned: bool = False
    authority: Authority | None = None
    topic: str | None = None
    source: str | None = None
    position: int | None = None
    context: str | None = None
    created_at: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    valid_resolved: bool = False
    updated_at: str | None = None
    recorded_from: str | None = None
    expires_at: str | None = None
    expires_after: timedelta | None = None
    indexed: bool = True
    repeated: tuple[OccurrenceLine, ...] = ()


class _Line(RecordFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every field of a JSON line, which is one of `text`, `link`, `supersession`, `document` and `format`."""

    text: str | None = None
    scope: str = "/"
    metadata: dict[str, Any] | None = None
    accessed_at: str | None = None
    access_count: int = 0
    recorded_until: str | None = None
    embedding_state: str | None = None
    vector: list[float] | None = None
    vectors: tuple[bytes, ...] = ()
    link: LinkLine | None = None
    supersession: SupersessionLine | None = None
    document: DocumentLine | None = None
    format: str | None = None
    version: int | None = None
    embedder: Embedder | None = None


Entry: TypeAlias = Header | Incoming | LinkLine | SupersessionLine | DocumentLine
"""The entry of a line."""
_decode = msgspec.json.Decoder(_Line).decode
_OF_MEMORY = [name for name in Incoming.__struct_fields__ if name in _Line.__struct_fields__]
_STORED = [name for name in _Line.__struct_fields__ if name in Record.__struct_fields__ and name not in ("id", "text")]
RECORD_FIELDS = ("id", "text", *_STORED)
"""The fields that a line has of a stored memory."""


def written_time(moment: datetime | int) -> str:
    """A UTC time, or one in microseconds since 1970, as in files: ISO 8601 with microseconds and Z."""
    time = to_datetime(moment) if isinstance(moment, int) else moment
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")


def scope_within(scope: str, base: str) -> str:
    """A scope of the store as a handle bound to `base` sees it."""
    return scope if base == "/" else scope.removeprefix(base) or "/"


def parse(format: str, lines: Lines, *, max_text_chars: int) -> Iterator[Entry]:
    """The entries of the lines. InvalidInput for a malformed one; `lines.number` is its number."""
    if format == "csv":
        return _parse_csv(lines, max_text_chars)
    if format == "text":
        return (Incoming(text=text) for line in lines if (text := line.strip()))
    return _parse_jsonl(lines)


def _parse_jsonl(lines: Lines) -> Iterator[Entry]:
    for text in lines:
        if text.isspace():
            continue
        line = _decoded(text)
        if line.text is not None:
            fields = {name: getattr(line, name) for name in _OF_MEMORY}
            yield Incoming(**{**fields, "tags": line.tags or ()})
        elif (entry := line.link or line.supersession or line.document) is not None:
            yield entry
        elif line.format is None:
            raise InvalidInput("the line has no 'text'")
        elif line.format != FORMAT:
            raise InvalidInput(f"the header names the format {shown(line.format)}: only {FORMAT!r} is known")
        elif line.version is None or line.version < 1:
            raise InvalidInput(f"the header has the version {shown(line.version)}: give {VERSION}")
        elif line.version > VERSION:
            raise InvalidInput(
                f"the file has version {line.version} and this Recallite knows up to {VERSION}: upgrade recallite"
            )
        else:
            yield Header(line.embedder)


def _decoded(text: str) -> _Line:
    try:
        return _decode(text)
    except msgspec.ValidationError as fault:
        reason = str(fault).replace("Object contains unknown field", "unknown field").replace(" - at `$.", " at `")
        reason = reason.replace("Expected `object`, got", "a line is one JSON object, this is")
        if reason.startswith("unknown field") and " at " not in reason:
            reason += f": use {', '.join(NewRecord.__struct_fields__)}, or what an export writes"
        raise InvalidInput(reason) from None
    except msgspec.DecodeError as fault:
        hint = ": an escape is half of a surrogate pair, which is no character" if _HALF.search(text) else ""
        raise InvalidInput(f"{shown(text.strip())} is not JSON ({fault}){hint}") from None
    except RecursionError:
        raise InvalidInput("the line is nested too deeply") from None
    except UnicodeEncodeError as fault:
        raise InvalidInput(f"the line holds a lone surrogate at {fault.start}, which is no character") from None


def _parse_csv(lines: Lines, max_text_chars: int) -> Iterator[Incoming]:
    # A cell may hold any text that `remember` takes. The limit of the csv module is global, 128 KiB by default.
    csv.field_size_limit(max(csv.field_size_limit(), max_text_chars, _MIN_CELL_CHARS))
    rows = csv.reader(lines, strict=True)
    header = [name.strip() for name in _next_row(rows) or ()]
    unknown = [name for name in header if name not in COLUMNS]
    if "text" not in header or unknown or len(set(header)) < len(header):
        wrong = "a column twice" if "text" in header else "no column 'text'"
        wrong = f"the column {shown(unknown[0])}" if unknown else wrong
        raise InvalidInput(f"the header row has {wrong}: use text and any of {', '.join(COLUMNS)}, with commas between")
    while (row := _next_row(rows)) is not None:
        if not any(row):
            continue
        if len(row) != len(header):
            raise InvalidInput(f"the row has {len(row)} cells and the header {len(header)}")
        cells = {name: cell for name, cell in zip(header, row, strict=True) if cell != "" or name == "text"}
        yield Incoming(**{name: _cell(name, cell) for name, cell in cells.items()})


def _next_row(rows: Iterator[list[str]]) -> list[str] | None:
    try:
        return next(rows, None)
    except csv.Error as fault:
        raise InvalidInput(
            f"the row is not CSV ({fault}): quote cells that hold commas, quotes or line breaks"
        ) from None


def _cell(name: str, cell: str) -> Any:
    try:
        match name:
            case "tags" if cell.startswith("["):
                return msgspec.json.decode(cell, type=tuple[str, ...])
            case "tags":
                return tuple(tag.strip() for tag in cell.split(";") if tag.strip())
            case "metadata":
                return msgspec.json.decode(cell, type=dict[str, Any])
            case "importance":
                return float(cell)
            case "position":
                return int(cell)
            case "pinned":
                return _FLAGS[cell.strip().lower()]
            case "authority":
                return check_authority(cell, name)
    except (ValueError, KeyError, RecursionError, msgspec.DecodeError):
        wanted = {
            "tags": "tags joined by ';'", "metadata": "a JSON object", "importance": "a number from 0 to 1",
            "position": "a whole number", "pinned": "true or false", "authority": ", ".join(AUTHORITIES),
        }  # fmt: skip
        raise InvalidInput(f"{name} is {shown(cell)}: give {wanted[name]}") from None
    return cell
