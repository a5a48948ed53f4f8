"""Markdown notes in a new folder, in the dialect of another system: their names, properties and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from recallite.errors import InvalidInput
from recallite.model.records import Record
from recallite.transfer.exporters.targets import Memories, Written
from recallite_connect.importers.notes import PROPERTIES

_UNSAFE = re.compile(r'[<>:"\\|?*#^\[\]\x00-\x1f\x7f/]+')
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)")
_HEADING = re.compile(r"\s*#{1,6}(?:[ \t]|$)", re.MULTILINE)
_MAX_NAME_CHARS = 80
_MAX_NAME_BYTES = 200
_TITLE_WORDS = 8


class NoteGroups:
    """The memories of each note, by path; paths that differ in case only are one, as on macOS and Windows."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self.ids: dict[str, list[str]] = {}
        self.notes: dict[str, str] = {}
        """The path of the note of each memory."""

    def add(self, path: str, record: Record) -> str:
        """Put a memory into a note, after those that are in it; returns the path of the note."""
        path = self._paths.setdefault(path.casefold(), path)
        self.ids.setdefault(path, []).append(record.id)
        self.notes[record.id] = path
        return path

    def linked(self, memories: Memories, record: Record) -> Iterator[str]:
        """The other notes to which a memory has a link."""
        for link in memories.links(record.id):
            path = self.notes.get(link.target)
            if path is not None and path != self.notes[record.id]:
                yield path


class Note(NamedTuple):
    """A note to write: its properties, its blocks, and the fields that it holds of each of its memories."""

    properties: Mapping[str, Any]
    blocks: Iterable[str]
    fields: Callable[[Record], Collection[str]]


class NoteDialect(NamedTuple):
    """The notes of a system: the note of each memory, and the content of a note.

    `group` gives the path of the note of a memory; `render(memories, groups, path, records)` makes a note.
    """

    group: Callable[[Record], str]
    render: Callable[[Memories, NoteGroups, str, list[Record]], Note]

    def write(self, memories: Memories, folder: Path) -> Iterator[Written]:
        """Write the notes of all memories."""
        groups = NoteGroups()
        for record in memories.pages():
            groups.add(self.group(record), record)
        for path, ids in groups.ids.items():
            stored = memories.some(ids)
            records = [stored[id] for id in ids if id in stored]
            if records:
                note = self.render(memories, groups, path, records)
                _write(folder, path, _note_text(note.properties, note.blocks))
                yield from (Written(record, frozenset(note.fields(record))) for record in records)


def imported_path(record: Record, system: str) -> str | None:
    """The path of the note of that system from which a memory was imported; None for other memories."""
    return safe_path(record.metadata.get("path")) if record.id.startswith(f"{system}:") else None


def safe_name(name: str) -> str:
    """A name that every file system and a wikilink takes."""
    plain = _UNSAFE.sub(" ", name).strip(" .")
    plain = " ".join(plain.split())[:_MAX_NAME_CHARS]
    while len(plain.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
        plain = plain[:-1]
    plain = plain.strip(" .") or "note"
    return f"{plain}_" if _RESERVED.match(plain) else plain


def safe_path(path: object) -> str | None:
    """The path of a note that stays in the folder; None for any other path."""
    if not isinstance(path, str) or not path.lower().endswith(".md"):
        return None
    parts = path[:-3].split("/")
    if any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        return None
    return "/".join(map(safe_name, parts)) + ".md"


def title_of(record: Record) -> str:
    """The first words of a memory."""
    words = _UNSAFE.sub(" ", record.text.lstrip("#-*> \n\t")).split()
    return safe_name(" ".join(words[:_TITLE_WORDS]))


def folder_of(record: Record) -> str:
    """The folder of a memory's scope, with a slash, or nothing for the root."""
    return "".join(f"{safe_name(part).lstrip('.') or 'note'}/" for part in record.scope.split("/") if part)


def path_of(record: Record) -> str:
    """The path of a note for one memory: its scope and first words, and a part of the hash of its id."""
    return f"{folder_of(record)}{title_of(record)} {sha256(record.id.encode()).hexdigest()[:6]}.md"


def begins_with_heading(text: str) -> bool:
    """Whether a text begins with a heading of Markdown; `#tag` is none."""
    return _HEADING.match(text) is not None


def shared_tags(records: Iterable[Record]) -> list[str]:
    """The tags that all memories have."""
    first, *others = [record.tags for record in records]
    return [tag for tag in first if all(tag in tags for tags in others)]


def says_properties(record: Record, system: str) -> bool:
    """Whether a memory was imported from the properties of a note of that system, which the note has again."""
    return imported_path(record, system) is not None and record.id.endswith(PROPERTIES)


def _note_text(properties: Mapping[str, Any], blocks: Iterable[str]) -> str:
    """The text of a note; properties that are empty are left out."""
    filled = {name: value for name, value in properties.items() if value not in (None, "", [], (), {})}
    head = yaml.safe_dump(filled, sort_keys=False, allow_unicode=True, width=10_000) if filled else ""
    body = "\n\n".join(block.strip("\n") for block in blocks)
    return (f"---\n{head}---\n\n" if head else "") + body + "\n"


def _write(folder: Path, path: str, text: str) -> None:
    """Write a note that is not there yet. InvalidInput if the disk refuses."""
    place = folder.joinpath(*path.split("/"))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as fault:
        raise InvalidInput(f"{place} cannot be written: {fault.strerror}") from fault
