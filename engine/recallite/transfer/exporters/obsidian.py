"""Obsidian notes: those that were imported as they were, and one for each other memory.

What a memory has besides its text are properties, and its links the property `links`. Notes that are put together from
sections have the properties that all of them share.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from recallite.model.records import Record
from recallite.transfer.exporters.notes import (
    Grouped,
    folder_of,
    note,
    path_of,
    safe_path,
    shared_tags,
    write_note,
)
from recallite.transfer.exporters.targets import Memories, Target, Written
from recallite.transfer.importers.notes import tags_in

_PREFIX = "obsidian:"
_PLACE = ("path", "note", "headings")
_FIELDS = (
    "scope",
    "kind",
    "importance",
    "context",
    "topic",
    "source",
    "valid_from",
    "valid_until",
    "expires_at",
    "pinned",
)
_USUAL = {"scope": "/", "kind": "memory", "importance": 0.5, "pinned": False}
_TAKEN = frozenset({*_FIELDS, "created", "tags", "links"})  # what metadata cannot be called
_OF_SECTION = frozenset({"created_at", "metadata", "links", "context", "source"})
_OF_MEMORY = frozenset({*_FIELDS, "tags", "created_at", "metadata", "links"})


def write(memories: Memories, path: Path) -> Iterator[Written]:
    """The notes of a vault."""
    grouped = Grouped()
    for record in memories.pages():
        grouped.add(_section_path(record) or path_of(record), record)
    for place, ids in grouped.ids.items():
        found = memories.some(ids)
        records = [found[id] for id in ids if id in found]
        if not records:
            continue
        links = sorted({f"[[{target}]]" for id in ids for target in _targets(memories, grouped, place, id)})
        properties = _shared(records) if _section_path(records[0]) else _own(records[0])
        write_note(path, place, note({**properties, "links": links}, [record.text for record in records]))
        for record in records:
            yield Written(record, _kept(record, shared_tags(records)))


def _section_path(record: Record) -> str | None:
    """The path of the note that a memory was a section of."""
    path = safe_path(record.metadata.get("path")) if record.id.startswith(_PREFIX) else None
    return None if path is None else folder_of(record) + path


def _targets(memories: Memories, grouped: Grouped, place: str, id: str) -> Iterator[str]:
    for link in memories.links(id):
        target = grouped.notes.get(link.target)
        if target is not None and target != place:
            yield target.removesuffix(".md")


def _shared(records: list[Record]) -> dict[str, Any]:
    """The properties of a note put together from its sections: those of the first."""
    first = records[0]
    beside = {name: value for name, value in first.metadata.items() if name not in _PLACE}
    return {"created": first.created_at.isoformat(), "tags": shared_tags(records), **beside}


def _own(record: Record) -> dict[str, Any]:
    said = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name in _FIELDS
        if (value := getattr(record, name)) is not None and value != _USUAL.get(name)
    }
    beside = {name: value for name, value in record.metadata.items() if name not in _TAKEN}
    return {"created": record.created_at.isoformat(), "tags": list(record.tags), **said, **beside}


def _kept(record: Record, shared: list[str]) -> frozenset[str]:
    if not _section_path(record):
        return _OF_MEMORY if _TAKEN.isdisjoint(record.metadata) else _OF_MEMORY - {"metadata"}
    tagged = {*shared, *tags_in(record.text)} >= {*record.tags}
    return _OF_SECTION | ({"tags"} if tagged else set()) | {"scope"}


TARGET = Target(write, "a new folder, of notes with properties and wikilinks", folder=True)
