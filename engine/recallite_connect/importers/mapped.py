"""JSON lines, a JSON array or CSV with names of their own, and a mapping that explains the names.

A mapping is from fields of a memory to dotted paths: `text` to `body`, `scope` to `user.id`, `tags` to `labels.0`. The
path `.` is the whole item. `metadata.NAME` is a value of the metadata.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

import msgspec

from recallite.errors import DocumentError, InvalidInput
from recallite.model.checks import ENDS
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite.system.folders import open_regular
from recallite.system.messages import shown
from recallite.transfer.lines import COLUMNS
from recallite_connect.importers.reading import (
    Entries,
    FoundMemory,
    Item,
    array_items,
    begins_array,
    cleaned,
    cleaned_json,
    label_of,
    lines_of,
    scope_of,
    tags_of,
    time_of,
)
from recallite_connect.importers.sources import Source
from recallite_documents.detecting import decode
from recallite_documents.written_dates import day_first_of

FIELDS = ("text", "id", *(name for name in COLUMNS if name not in ("text", "id", "authority")))
"""The fields that a mapping may name."""
_TIMES = ("created_at", "valid_from", "valid_until", "expires_at")
_WHOLE = "."
_ABSENT = object()
_MAX_CELL_CHARS = 4_000_000
_MOST_GUESSED_BYTES = 64 << 20
_DELIMITERS = ",;\t|"
_REMEDIES = {
    "metadata": "give an object", "importance": "give a number from 0 to 1", "position": "give a whole number",
    "pinned": "give true or false", "tags": "give a list of texts",
    **dict.fromkeys(_TIMES, "give a date that means one day, as 2024-03-05, or seconds since 1970"),
}  # fmt: skip


class _MappedItem(NamedTuple):
    value: Any
    line: int


def read(path: Path, mapping: Mapping[str, str]) -> Entries:
    """The memories of a file. InvalidInput for a mapping that cannot be right."""
    paths = paths_of_fields(mapping)
    unseen = {field: spoken for field, spoken in mapping.items() if field != "text"}
    any_item = False

    @cache
    def day_first() -> bool | None:
        """Whether the times of the file are written 25/12/2024: all are asked, once one may be two days."""
        items = (item.value for item in _items(path, paths) if isinstance(item, _MappedItem))
        return day_first_of(_at(item, paths[field]) for item in items for field in _TIMES if field in paths)

    for item in _items(path, paths):
        if isinstance(item, FileTrouble):
            yield item
            continue
        any_item = True
        try:
            values = {
                field: mapped for field, parts in paths.items() if (mapped := _at(item.value, parts)) is not _ABSENT
            }
            for field in values:
                unseen.pop(field, None)
            yield FoundMemory(record=_record(item.value, values, mapping, day_first), path=path.name, line=item.line)
        except (InvalidInput, RecursionError) as fault:
            yield FileTrouble(path=path.name, line=item.line, reason=str(fault))
    if any_item:
        for field, spoken in unseen.items():
            yield FileTrouble(path=path.name, reason=f"no item has {shown(spoken)}, which {field} is mapped to")


def paths_of_fields(mapping: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The path of each field that a mapping names, and of text and id; () is the whole item. InvalidInput as `read`."""
    for field, path in mapping.items():
        if field not in FIELDS and not field.startswith("metadata."):
            raise InvalidInput(f"map names the field {shown(field)}: use {', '.join(FIELDS)} or metadata.NAME")
        if not isinstance(path, str) or not path.strip() or (path != _WHOLE and "" in path.split(".")):
            raise InvalidInput(f"map has {shown(path)} for {field}: give the path of a value, such as user.id")
    spoken_paths = {"text": "text", "id": "id", **mapping}
    return {field: () if path == _WHOLE else tuple(path.split(".")) for field, path in spoken_paths.items()}


def _items(path: Path, paths: Mapping[str, tuple[str, ...]]) -> Iterator[_MappedItem | FileTrouble]:
    if path.suffix.lower() in (".csv", ".tsv"):
        yield from _rows(path, paths)
        return
    try:
        stream = open_regular(path)
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    with stream:
        is_array = begins_array(stream.read(1024))
        stream.seek(0)
        lines = (Item(number, number, line) for number, line in lines_of(path))
        for item in array_items(stream) if is_array else lines:
            try:
                value = item.value()
                if not isinstance(value, dict):
                    raise InvalidInput(f"{shown(value)} is not a JSON object")
            except InvalidInput as fault:
                yield FileTrouble(path=path.name, line=item.line, reason=str(fault))
            else:
                yield _MappedItem(value, item.line)


def _rows(path: Path, paths: Mapping[str, tuple[str, ...]]) -> Iterator[_MappedItem | FileTrouble]:
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL_CHARS))
    wanted = {".".join(parts) for field, parts in paths.items() if parts and field != "id"}
    try:
        with open_regular(path) as opened:
            stream, doubts = _text(opened)
            yield from (FileTrouble(path=path.name, reason=doubt) for doubt in doubts)
            first = stream.readline()
            headers = {mark: next(csv.reader([first], delimiter=mark), []) for mark in _DELIMITERS}
            delimiter = next((mark for mark in _DELIMITERS if wanted <= {*map(str.strip, headers[mark])}), ",")
            lines = (line.replace("\0", "\ufffd") for line in chain([first], stream))
            rows = csv.reader(lines, delimiter=delimiter, strict=True)
            header = [name.strip() for name in next(rows, [])]
            for field, parts in paths.items():
                if parts and ".".join(parts) not in header and field != "id":
                    raise InvalidInput(
                        f"{path} has no column {shown('.'.join(parts))}, which {field} is mapped to: "
                        f"it has {', '.join(map(shown, header)) or 'none'}"
                    )
            for row in rows:
                if len(row) == len(header):
                    yield _MappedItem(
                        {name: cell for name, cell in zip(header, row, strict=True) if cell}, rows.line_num
                    )
                elif row:
                    reason = f"the row has {len(row)} cells and the header {len(header)}"
                    yield FileTrouble(path=path.name, line=rows.line_num, reason=reason)
    except csv.Error as fault:
        yield FileTrouble(path=path.name, line=rows.line_num, reason=f"this and what follows is not CSV: {fault}")
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault


def _text(opened: BinaryIO) -> tuple[TextIO, list[str]]:
    """The text of a file, and doubts about its encoding: that of one which is not UTF-8 is guessed, up to 64 MiB."""
    data = opened.read(_MOST_GUESSED_BYTES + 1)
    if len(data) <= _MOST_GUESSED_BYTES:
        with suppress(DocumentError):
            text, doubts = decode(data)
            return io.StringIO(text, newline=""), doubts
    opened.seek(0)
    return io.TextIOWrapper(opened, encoding="utf-8-sig", errors="replace", newline=""), []


def _at(value: Any, parts: tuple[str, ...]) -> Any:
    """The value at a path in a value; a key may have dots itself, as the columns of CSV do."""
    if isinstance(value, dict) and len(parts) > 1 and (whole := ".".join(parts)) in value:
        return value[whole]
    for part in parts:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _ABSENT
    return _ABSENT if value is None else value


def _record(
    item: Any, values: Mapping[str, Any], mapping: Mapping[str, str], day_first: Callable[[], bool | None]
) -> NewRecord:
    if "text" not in values:
        raise InvalidInput(f"the item has no {shown(mapping.get('text', 'text'))}, which is to be the text")
    fields = {field: _converted(field, value, day_first) for field, value in values.items() if "." not in field}
    beside = {field.removeprefix("metadata."): value for field, value in values.items() if "." in field}
    if "metadata" in fields or beside:
        fields["metadata"] = {**fields.get("metadata", {}), **beside}
    fields.setdefault("id", sha256(msgspec.json.encode(cleaned_json(item), order="sorted")).hexdigest()[:32])
    return NewRecord(**fields)


def _converted(field: str, value: Any, day_first: Callable[[], bool | None]) -> Any:
    """The argument that a value is; InvalidInput if it is none."""
    converted: Any = None
    match field:
        case "text" if isinstance(value, str):
            converted = cleaned(value)
        case "scope" if isinstance(value, str) and value.startswith("/"):
            converted = scope_of(*value.split("/"))
        case "scope" if isinstance(value, str | int) and not isinstance(value, bool):
            converted = scope_of(value)
        case "tags" if isinstance(value, str | list):
            converted = tags_of(value.split(";") if isinstance(value, str) and ";" in value else value)
        case "metadata" if isinstance(value, dict):
            converted = value
        case _ if field in _TIMES:
            converted = time_of(value, end=field in ENDS, day_first=day_first)
        case "importance" | "position":
            with suppress(ValueError, TypeError, OverflowError):
                converted = int(value) if field == "position" else float(value)
        case "pinned":
            converted = value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).lower())
        case "id" | "kind" | "context" | "topic" | "source":
            converted = label_of(value)
    if converted is None:
        raise InvalidInput(f"{field} is {shown(value)}: {_REMEDIES.get(field, 'give a text')}")
    return converted


SOURCE = Source(
    read, "a file of JSON lines, a JSON array or CSV, with --map FIELD=PATH", authority=None, changes=True, mapped=True,
    local_ids=True,
)  # fmt: skip
