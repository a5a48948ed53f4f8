"""Lines as memories and links: decoded and typed, but not checked yet."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.model.authority import AUTHORITIES, Authority, check_authority
from recallite.model.checks import to_datetime
from recallite.model.records import Link, NewRecord, Record
from recallite.system.messages import shown
from recallite.transfer.formats import Lines

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
    importance: float = 0.5
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
_STORED = [name for name in _Line.__struct_fields__ if name in Record.__struct_fields__ and name not in ("id", "text")]
RECORD_FIELDS = ("id", "text", *_STORED)
"""The fields that a line has of a stored memory."""


def written_time(moment: datetime | int) -> str:
    """A UTC time, or one in microseconds since 1970, as in files: ISO 8601 with microseconds and Z."""
    time = to_datetime(moment) if isinstance(moment, int) else moment
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")


def link_fields(link: Link) -> dict[str, Any]:
    """The fields of a link as in files, without its source."""
    created_at = None if link.created_at is None else written_time(link.created_at)
    return {"target": link.target, "type": link.type, "strength": link.strength, "created_at": created_at,
            "reason": link.reason}  # fmt: skip


def scope_within(scope: str, base: str) -> str:
    """A scope of the store as a handle bound to `base` sees it."""
    return scope if base == "/" else scope.removeprefix(base) or "/"


def parse(format: str, lines: Lines, *, max_text_chars: int) -> Iterator[Entry]:
    """The entries of the lines. InvalidInput for a malformed one, whose number is `lines.number`."""
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
            yield _incoming(line)
        elif line.link is not None:
            yield line.link
        elif line.supersession is not None:
            yield line.supersession
        elif line.document is not None:
            yield line.document
        elif line.format is not None:
            yield _header(line)
        else:
            raise InvalidInput("the line has no 'text'")


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


def _incoming(line: _Line) -> Incoming:
    fields = {name: getattr(line, name) for name in Incoming.__struct_fields__ if name in _Line.__struct_fields__}
    return Incoming(**{**fields, "tags": line.tags or ()})


def _header(line: _Line) -> Header:
    if line.format != FORMAT:
        raise InvalidInput(f"the header names the format {shown(line.format)}: only {FORMAT!r} is known")
    if line.version is None or line.version < 1:
        raise InvalidInput(f"the header has the version {shown(line.version)}: give {VERSION}")
    if line.version > VERSION:
        raise InvalidInput(
            f"the file has version {line.version} and this Recallite knows up to {VERSION}: upgrade recallite"
        )
    return Header(line.embedder)


def _parse_csv(lines: Lines, max_text_chars: int) -> Iterator[Incoming]:
    # A cell may hold any text that `remember` takes. The limit of the csv module is global, 128 KiB by default.
    csv.field_size_limit(max(csv.field_size_limit(), max_text_chars, _MIN_CELL_CHARS))
    rows = csv.reader(lines, strict=True)
    header = [name.strip() for name in _next_row(rows) or ()]
    unknown = [name for name in header if name not in COLUMNS]
    if "text" not in header or unknown or len(set(header)) < len(header):
        wrong = (
            f"the column {shown(unknown[0])}"
            if unknown
            else "a column twice"
            if "text" in header
            else "no column 'text'"
        )
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
