"""Obsidian vaults: a memory for each section of a note, with the note's properties, and a link for each wikilink.

A note that has only properties is a memory of them. Hidden folders (`.obsidian`, `.trash`), folders of templates,
drawings of Excalidraw, comments, queries of plug-ins, and notes that only embed others are passed over. A link goes
from the section that it stands in to the heading that it names, else to the first section of the note. Links to notes
that there are not are left out. https://help.obsidian.md/links, https://help.obsidian.md/properties
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite.system.folders import read_regular
from recallite_connect.importers.notes import (
    ENDINGS,
    Note,
    Section,
    context_in,
    kept_metadata,
    notes_below,
    same_name,
    sections_of,
    tags_in,
    without_code,
    without_hidden,
)
from recallite_connect.importers.reading import Entries, FoundLink, FoundMemory, LeftOut, json_value, label_of, tags_of
from recallite_connect.importers.sources import Source

_WIKILINK = re.compile(r"\[\[([^\[\]\n|#^]*)((?:#[^\[\]\n|]*)?)(?:\|[^\[\]\n]*)?\]\]")
_LINK = re.compile(r"\]\(<?([^()<>\n#]*)((?:#[^()<>\n]*)?)>?\)")
_TAGS, _ALIASES = ("tags", "tag"), ("aliases", "alias")
_DRAWING = "excalidraw-plugin"


def read(path: Path) -> Entries:
    """The memories of a vault, of a folder of one, or of one note; then the links."""
    skipped = _templates(path)
    vault, links = _Vault(), []
    for note in notes_below(path, lambda inner: not inner.startswith(skipped)):
        if isinstance(note, FileTrouble):
            yield note
            continue
        if _DRAWING in note.metadata:
            yield LeftOut("drawings")
            continue
        note, hidden = without_hidden(note)
        yield from hidden
        sections = sections_of(note, without=(*_TAGS, "created"))
        if not sections and note.text[note.begin :].strip():
            yield LeftOut("notes without words of their own")
        vault.add(note, sections)
        for section in sections:
            yield FoundMemory(record=_record(note, section), path=note.path, line=section.line, times=section.times)
            links += [
                _Reference(section.id, note.path, section.line, *reference) for reference in _references(section.text)
            ]
        if sections:
            stated = _references(" ".join(_texts(note.metadata)))
            links += [_Reference(sections[0].id, note.path, 1, *reference) for reference in stated]
    yield from vault.links(links)


class _Reference(NamedTuple):
    """A link as it is written: from a section of a note to a name, and a heading there."""

    source: str
    path: str
    line: int
    name: str
    heading: str


class _Vault:
    """Targets that a link can name: notes by path, name and alias, and their sections by heading."""

    def __init__(self) -> None:
        self._sections: dict[str, dict[str, str]] = {}
        self._paths: dict[str, list[str]] = defaultdict(list)
        self._aliases: dict[str, str] = {}

    def add(self, note: Note, sections: list[Section]) -> None:
        if not sections:
            return
        by_heading = {"": sections[0].id}
        for section in sections:
            for heading in section.headings:
                by_heading.setdefault(_folded(heading), section.id)
        self._sections[note.path] = by_heading
        self._paths[same_name(note.name)].append(note.path)
        for alias in _aliases(note.metadata):
            self._aliases.setdefault(same_name(alias), note.path)

    def links(self, references: list[_Reference]) -> Iterator[FoundLink]:
        seen = set()
        for reference in references:
            target = self._target(reference)
            if target is not None and target != reference.source and (reference.source, target) not in seen:
                seen.add((reference.source, target))
                yield FoundLink(
                    source=reference.source, target=target, type="elaborates", path=reference.path, line=reference.line
                )  # fmt: skip

    def _target(self, reference: _Reference) -> str | None:
        path = self._note(reference.name.strip(), reference.path) if reference.name.strip() else reference.path
        if path is None:
            return None
        headings = self._sections[path]
        return headings.get(_folded(reference.heading.rpartition("#")[2]), headings[""])

    def _note(self, name: str, beside: str) -> str | None:
        """The note of that path or name: as Obsidian does, the one beside, else the one with the shortest path."""
        plain = same_name(name.removesuffix(".md"))
        folder = same_name(posixpath.dirname(beside))
        full = posixpath.normpath(posixpath.join(folder, plain))
        paths = [
            path
            for path in self._paths.get(plain.rpartition("/")[2], ())
            if f"/{_bare(path)}".endswith(f"/{plain.lstrip('./')}")
        ]
        near = [path for path in paths if _bare(path) in (plain, full)]
        best = min(near or paths, key=lambda path: (path.count("/"), path), default=None)
        return best or self._aliases.get(same_name(name))


def _record(note: Note, section: Section) -> NewRecord:
    properties = {name.lower(): value for name, value in note.metadata.items()}
    stated = [tag for name in _TAGS for tag in tags_of(properties.get(name))]
    place: dict[str, Any] = {"path": note.path, "note": note.name, "headings": list(section.headings)}
    if aliases := _aliases(note.metadata):
        place["aliases"] = aliases
    return NewRecord(
        id=section.id, text=section.text, context=context_in(note.name, section), source=label_of(note.path),
        tags=tuple(dict.fromkeys((*stated, *tags_in(section.text)))), created_at=note.created_at,
        metadata={**kept_metadata(note.metadata, *_TAGS, *_ALIASES, *place), **place},
    )  # fmt: skip


def _aliases(metadata: dict[str, Any]) -> list[str]:
    stated = next((value for name, value in metadata.items() if name.lower() in _ALIASES), None)
    values = stated.split(",") if isinstance(stated, str) else stated if isinstance(stated, list) else []
    return [alias for value in values if (alias := label_of(value))]


def _references(text: str) -> list[tuple[str, str]]:
    """The names and headings of wikilinks, and of Markdown links to notes."""
    if "[[" not in text and "](" not in text:
        return []
    plain = without_code(text)
    # In a table the bar before the shown name is escaped.
    references = [(name.rstrip("\\"), heading.rstrip("\\")) for name, heading in _WIKILINK.findall(plain)]
    for name, heading in _LINK.findall(plain):
        if "://" not in name and name.lower().endswith(ENDINGS):
            references.append((unquote(name), unquote(heading)))
    return references


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _templates(vault: Path) -> tuple[str, ...]:
    """The folders of templates that the vault has, of Obsidian and of the plug-in Templater, each with a slash."""
    folders = []
    for path, name in (("templates.json", "folder"), ("plugins/templater-obsidian/data.json", "templates_folder")):
        try:
            settings = json_value(read_regular(vault / ".obsidian" / path))
        except (OSError, InvalidInput):
            continue
        folder = settings.get(name) if isinstance(settings, dict) else None
        if isinstance(folder, str) and folder.strip("/"):
            folders.append(folder.strip("/") + "/")
    return tuple(folders)


def _bare(path: str) -> str:
    return same_name(path.rpartition(".")[0])


def _folded(heading: str) -> str:
    """A heading as links write it: without marks that a link cannot have."""
    return same_name(" ".join(re.sub(r"[#|^:\[\]\\]", " ", heading).split()))


SOURCE = Source(read, "the folder of an Obsidian vault", authority="user", changes=True, local_ids=True)
