"""JSON lines with names of their own: a mapping says at which dotted path each field is written.

The mapping is that of the import (`recallite_connect.importers.mapped`), so the same one reads the file back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from recallite.errors import InvalidInput
from recallite.model.records import Record
from recallite.system.messages import shown
from recallite.transfer.formats import writing
from recallite_connect.exporters.targets import Memories, Target, Written
from recallite_connect.importers.mapped import paths_of_fields

_PREFIX = "jsonl:"
_encode = msgspec.json.Encoder().encode


def write(memories: Memories, path: Path) -> Iterator[Written]:
    """A line for each memory."""
    paths = paths_of_fields(memories.mapping)
    _check(paths)
    fields = frozenset(paths)
    with writing(path, store=memories.store) as stream:
        for record in memories.pages():
            stream.write(_encode(_item(record, paths)).decode() + "\n")
            yield Written(record, fields)


def _check(paths: Mapping[str, tuple[str, ...]]) -> None:
    taken: dict[tuple[str, ...], str] = {}
    for field, parts in paths.items():
        if not parts and field != "metadata":
            raise InvalidInput(f"map has '.' for {field}: only metadata can be the whole item")
        if any(part.isdecimal() for part in parts):
            raise InvalidInput(f"map has {shown('.'.join(parts))} for {field}: a place in a list cannot be written")
        for other, name in taken.items():
            if parts and other and (other[: len(parts)] == parts or parts[: len(other)] == other):
                raise InvalidInput(f"map has one place for {name} and {field}: {'.'.join(parts)}")
        taken[parts] = field


def _item(record: Record, paths: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    item: dict[str, Any] = {}
    for field, parts in sorted(paths.items(), key=lambda item_path: len(item_path[1])):
        value = _value(record, field)
        if value is None or value == ():
            continue
        if not parts:
            item = {**value, **item}
            continue
        inner = item
        for part in parts[:-1]:
            below = inner.get(part)
            inner[part] = below if isinstance(below, dict) else {}
            inner = inner[part]
        inner[parts[-1]] = value
    return item


def _value(record: Record, field: str) -> Any:
    if field.startswith("metadata."):
        return record.metadata.get(field.removeprefix("metadata."))
    if field == "id":
        return record.id.removeprefix(_PREFIX)
    value = getattr(record, field)
    return value.isoformat() if isinstance(value, datetime) else value


TARGET = Target(write, "a file of JSON lines, with --map FIELD=PATH", mapped=True)
