"""Obsidian notes: those that were imported as they were, and one for each other memory.

What a memory has besides its text are properties, and its links the property `links`. Notes that are put together from
sections have the properties that all of them share.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recallite.model.records import Record
from recallite.transfer.exporters.notes import (
    Note,
    NoteDialect,
    NoteGroups,
    folder_of,
    imported_path,
    path_of,
    says_properties,
    shared_tags,
)
from recallite.transfer.exporters.targets import Memories, Target
from recallite_connect.importers.notes import tags_in

_PLACE = ("path", "note", "headings")
_DEFAULTS = {
    "scope": "/", "kind": "memory", "importance": 0.5, "context": None, "topic": None, "source": None,
    "valid_from": None, "valid_until": None, "expires_at": None, "pinned": False,
}  # fmt: skip
_TAKEN = frozenset({*_DEFAULTS, "created", "tags", "links"})  # what metadata cannot be called
_OF_SECTION = frozenset({"created_at", "metadata", "links", "context", "source", "scope"})
_OF_MEMORY = frozenset({*_DEFAULTS, "tags", "created_at", "metadata", "links"})


def _section_path(record: Record) -> str | None:
    """The path of the note that a memory was a section of."""
    path = imported_path(record, "obsidian")
    return None if path is None else folder_of(record) + path


def _render(memories: Memories, groups: NoteGroups, path: str, records: list[Record]) -> Note:
    shared = shared_tags(records)
    properties = _of_sections(records[0], shared) if _section_path(records[0]) else _of_memory(records[0])
    targets = {target for record in records for target in groups.linked(memories, record)}
    links = sorted(f"[[{target.removesuffix('.md')}]]" for target in targets)

    def kept(record: Record) -> frozenset[str]:
        if not _section_path(record):
            return _OF_MEMORY if _TAKEN.isdisjoint(record.metadata) else _OF_MEMORY - {"metadata"}
        tagged = {*shared, *tags_in(record.text)} >= {*record.tags}
        return _OF_SECTION | ({"tags"} if tagged else set())

    return Note(
        {**properties, "links": links},
        [record.text for record in records if not says_properties(record, "obsidian")],
        kept,
    )


def _of_sections(first: Record, shared: list[str]) -> dict[str, Any]:
    """The properties of a note put together from its sections: those of the first."""
    others = {name: value for name, value in first.metadata.items() if name not in _PLACE}
    return {"created": first.created_at.isoformat(), "tags": shared, **others}


def _of_memory(record: Record) -> dict[str, Any]:
    fields = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, default in _DEFAULTS.items()
        if (value := getattr(record, name)) != default
    }
    others = {name: value for name, value in record.metadata.items() if name not in _TAKEN}
    return {"created": record.created_at.isoformat(), "tags": list(record.tags), **fields, **others}


TARGET = Target(
    NoteDialect(lambda record: _section_path(record) or path_of(record), _render).write,
    "a new folder, of notes with properties and wikilinks",
    folder=True,
)
