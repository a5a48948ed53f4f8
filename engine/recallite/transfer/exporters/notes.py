"""Markdown notes in a new folder: their names, properties and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from recallite.errors import InvalidInput
from recallite.model.records import Record

_UNSAFE = re.compile(r'[<>:"\\|?*#^\[\]\x00-\x1f\x7f/]+')
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)")
_HEADING = re.compile(r"\s*#{1,6}(?:[ \t]|$)", re.MULTILINE)
_MAX_NAME_CHARS = 80
_MAX_NAME_BYTES = 200
_TITLE_WORDS = 8


def safe_name(name: str) -> str:
    """A name that every file system and a wikilink takes."""
    plain = _UNSAFE.sub(" ", name).strip(" .")
    plain = " ".join(plain.split())[:_MAX_NAME_CHARS]
    while len(plain.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
        plain = plain[:-1]
    plain = plain.strip(" .") or "note"
    return f"{plain}_" if _RESERVED.match(plain) else plain


def safe_path(path: object) -> str | None:
    """The path of a note that stays in the folder, or None for what is no such path."""
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


def note(properties: Mapping[str, Any], blocks: Iterable[str]) -> str:
    """The text of a note; properties that are empty are left out."""
    said = {name: value for name, value in properties.items() if value not in (None, "", [], (), {})}
    head = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=10_000) if said else ""
    body = "\n\n".join(block.strip("\n") for block in blocks)
    return (f"---\n{head}---\n\n" if head else "") + body + "\n"


def write_note(folder: Path, path: str, text: str) -> None:
    """Write a note that is not there yet. InvalidInput where the disk refuses."""
    place = folder.joinpath(*path.split("/"))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as fault:
        raise InvalidInput(f"{place} cannot be written: {fault.strerror}") from fault


class Grouped:
    """The memories of each note, by path; paths that differ in case only are one, as on macOS and Windows."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self.ids: dict[str, list[str]] = {}
        self.notes: dict[str, str] = {}  # the note of each memory

    def add(self, path: str, record: Record) -> None:
        """Put a memory into a note, after those that are in it."""
        path = self._paths.setdefault(path.casefold(), path)
        self.ids.setdefault(path, []).append(record.id)
        self.notes[record.id] = path


def shared_tags(records: Iterable[Record]) -> list[str]:
    """The tags that all memories have."""
    first, *others = [record.tags for record in records]
    return [tag for tag in first if all(tag in tags for tags in others)]
