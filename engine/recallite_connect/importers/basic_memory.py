"""basic-memory: Markdown notes with observations and relations.

An observation, `- [category] text #tag (context)`, is a memory "category: text" whose topic is the note; a relation,
`- relation_type [[Target]] (context)`, is a memory that says it, linked to both its notes. What else a section has is a
memory, and other wikilinks are links. Ids are made of permalinks. https://docs.basicmemory.com/guides/knowledge-format,
https://github.com/basicmachines-co/basic-memory/blob/main/src/basic_memory/markdown/plugins.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite_connect.importers.notes import (
    Note,
    Section,
    blanked,
    context_in,
    kept_metadata,
    notes_below,
    same_name,
    sections_of,
    tags_in,
    without_code,
    without_hidden,
)
from recallite_connect.importers.reading import Entries, FoundLink, FoundMemory, label_of, tags_of
from recallite_connect.importers.sources import Source
from recallite_documents.markdown_sections import LineStarts

_MORE = r"[^\n]*(?:\n[ \t]+(?![-*+][ \t])\S[^\n]*)*"
_OBSERVATION = re.compile(rf"^[ \t]*[-*+][ \t]+\[([^\[\]()\n]+)\][ \t]+(\S{_MORE})$", re.MULTILINE)
_RELATION = re.compile(
    r"^[ \t]*[-*+][ \t]+(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s\"'\[][^\s\[]*+(?:\[(?!\[)[^\s\[]*+)*+))[ \t]*+"
    r"\[\[([^\[\]\n]+)\]\][ \t]*+(?:\(([^\n]*)\)[ \t]*+)?$",
    re.MULTILINE,
)
_WIKILINK = re.compile(r"\[\[([^\[\]\n]+)\]\]")
_CLOCK = r"\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d{1,3})?"
_NO_CATEGORY = re.compile(rf"|[xX]|[^\w]|_|{_CLOCK}(?:\s+-\s+{_CLOCK})?")
# Notes that name no category have these: by convention, or since we exported them.
_NO_KIND = frozenset({"note", "memory"})
_TAG = re.compile(r"(?<!\S)#(\S+)")
# These say no more than a link does.
_BARE_RELATIONS = frozenset({"links_to", "links to", "relates_to", "relates to"})


def read(path: Path) -> Entries:
    """The memories of a project's folder, or of one note; then the links."""
    firsts: dict[str, str] = {}  # the first memory of each note, by what a link may call it
    links: list[_Reference] = []
    for note in notes_below(path):
        if isinstance(note, FileTrouble):
            yield note
            continue
        note, hidden = without_hidden(note)
        yield from hidden
        reader = _Reader(note)
        for record, line, times in reader.records():
            for name in reader.names:
                firsts.setdefault(name, record.id or "")
            yield FoundMemory(record=record, path=note.path, line=line, times=times)
        links += reader.links
    seen = set()
    for link in links:
        target = firsts.get(_folded(link.target), firsts.get(_folded(link.target).rpartition("/")[2]))
        source = link.source or firsts.get(_folded(link.permalink))
        if source and target and target != source and (source, target) not in seen:
            seen.add((source, target))
            yield FoundLink(source=source, target=target, type="elaborates", path=link.path, line=link.line)


class _Reference(NamedTuple):
    """A link from a memory, or from the first of its note, to a note as it is called there."""

    source: str | None
    permalink: str
    target: str
    path: str
    line: int


class _Reader:
    """The memories and links of one note."""

    def __init__(self, note: Note) -> None:
        self._note = note
        stated = note.metadata.get("permalink")
        self._permalink = label_of(stated) or note.path.rpartition(".")[0]
        self._title = label_of(note.metadata.get("title")) or note.name
        self._tags = tags_of(note.metadata.get("tags"))
        self.names = {_folded(name) for name in (self._permalink, self._title, note.name, note.path.rpartition(".")[0])}
        self.names.add(_folded(self._permalink).rpartition("/")[2])
        self.links: list[_Reference] = []
        self._lines = LineStarts(note.text)

    def records(self) -> Iterator[tuple[NewRecord, int, int]]:
        """Its memories, each with its line and how often it stands there."""
        text = self._note.text
        # Code and front matter are blanked, and places stay.
        plain = blanked(without_code(text), [(0, self._note.begin)])
        observations = [match for match in _OBSERVATION.finditer(plain) if not _NO_CATEGORY.fullmatch(match[1].strip())]
        relations = [*_RELATION.finditer(plain)]
        rest = blanked(text, [match.span() for match in (*observations, *relations)])
        named = ["tags", "title", "permalink", "created"]
        named += ["type"] if self._note.metadata.get("type") == "note" else []
        sections = sections_of(self._note._replace(text=rest), without=named)
        context = self._title
        if observations and [section.start < self._note.begin for section in sections] == [True]:
            # A note of nothing but observations: the first says the properties.
            context, sections = f"{self._title} ({sections[0].text})", []
        for section in sections:
            yield self._section(section), section.line, section.times
        for match in observations:
            statement = " ".join(text[match.start(2) : match.end()].split())
            yield self._observation(match[1].strip(), statement, context), self._line(match), 1
            context = self._title
        for match in relations:
            kind = (match[1] or match[2] or match[3]).strip()
            target, remark = match[4].partition("|")[0].strip(), (match[5] or "").strip()
            if kind in _BARE_RELATIONS:
                self._refer(None, target, self._line(match))
                continue
            record = self._relation(kind, target, remark)
            yield record, self._line(match), 1
            self._refer(record.id, self._permalink, self._line(match))
            self._refer(record.id, target, self._line(match))

    def _section(self, section: Section) -> NewRecord:
        text = "\n".join(line.rstrip() for line in section.text.splitlines())
        record = self._record(
            id=section.id.replace(self._note.path, self._permalink, 1),
            text=re.sub(r"\n{3,}", "\n\n", text).strip(),
            context=context_in(self._title, section),
            tags=tuple(dict.fromkeys((*self._tags, *tags_in(section.text)))),
            metadata={"headings": list(section.headings)},
        )
        for target in _WIKILINK.findall(without_code(section.text)):
            self._refer(record.id, target.partition("|")[0].partition("#")[0].strip(), section.line)
        return record

    def _observation(self, category: str, text: str, context: str) -> NewRecord:
        own_tags = [tag for run in _TAG.findall(text) for tag in tags_of(run.split("#"))]
        return self._record(
            id=f"{self._permalink}/observations/{category}/{_digest(text)}",
            text=text if category in _NO_KIND else f"{category}: {text}", context=context, topic=self._title,
            tags=tuple(dict.fromkeys((*self._tags, *own_tags))), metadata={"category": category},
        )  # fmt: skip

    def _relation(self, kind: str, target: str, context: str) -> NewRecord:
        name = target.rpartition("::")[2].rpartition("/")[2]  # without the project and folders
        text = f"{self._title} {kind.replace('_', ' ')} {name}" + (f" ({context})" if context else "")
        return self._record(
            id=f"{self._permalink}/{kind}/{target}" + (f"/{_digest(context)}" if context else ""), text=text,
            tags=self._tags, metadata={"relation_type": kind, "to": target},
        )  # fmt: skip

    def _record(self, *, id: str, metadata: dict[str, Any], **fields: Any) -> NewRecord:
        place = {"permalink": self._permalink, "path": self._note.path, "title": self._title, **metadata}
        properties = kept_metadata(self._note.metadata, "tags", *place)
        return NewRecord(
            id=" ".join(id.split()), source=label_of(self._note.path), created_at=self._note.created_at,
            metadata={**properties, **place}, **fields,
        )  # fmt: skip

    def _refer(self, source: str | None, target: str, line: int) -> None:
        self.links.append(_Reference(source, self._permalink, target, self._note.path, line))

    def _line(self, match: re.Match[str]) -> int:
        return self._lines.number(match.start())


def _folded(name: str) -> str:
    return same_name(name.rpartition("::")[2].strip("/ ").removesuffix(".md"))


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


# Agents write the notes.
SOURCE = Source(
    read, "the folder of a basic-memory project", authority="agent", changes=True, folder="basic-memory", local_ids=True
)
