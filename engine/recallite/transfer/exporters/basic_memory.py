"""Notes of basic-memory: the reverse of the importer of that name.

Memories with one topic are the observations of a note, others are notes of their own. What was imported from
basic-memory goes into the notes that it came from, as sections, observations and relations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recallite.model.records import Record
from recallite.transfer.exporters.notes import (
    Grouped,
    begins_with_heading,
    folder_of,
    note,
    path_of,
    safe_name,
    safe_path,
    shared_tags,
    title_of,
    write_note,
)
from recallite.transfer.exporters.targets import Memories, Target, Written

_PREFIX = "basic-memory:"
_PLACE = frozenset({"path", "permalink", "title", "headings", "category", "relation_type", "to"})
_KEPT = frozenset({"tags", "created_at", "topic", "links", "source"})
_NO_WORD = re.compile(r"[^\w/-]+")


def write(memories: Memories, path: Path) -> Iterator[Written]:
    """The notes of a project."""
    grouped = Grouped()
    titles: dict[str, str] = {}  # of each note
    for record in memories.pages():
        place = _path(record)
        grouped.add(place, record)
        titles.setdefault(grouped.notes[record.id], _title(record))
    for place, ids in grouped.ids.items():
        found = memories.some(ids)
        records = [found[id] for id in ids if id in found]
        if not records:
            continue
        shared = shared_tags(records)
        relations = [_relation(record) for record in records if _is_relation(record)]
        relations += _links(memories, grouped, titles, place, records)
        blocks = [
            *([] if any(begins_with_heading(record.text) for record in records) else [f"# {titles[place]}"]),
            *(record.text for record in records if not _is_observation(record) and not _is_relation(record)),
            _list("## Observations", [_observation(record, shared) for record in records if _is_observation(record)]),
            _list("## Relations", relations),
        ]
        write_note(path, place, note(_properties(place, titles[place], records, shared), filter(None, blocks)))
        for record in records:
            own = _place(record) is not None
            said = {"metadata"} if own or _is_relation(record) else set()
            said |= {"context"} if own or record.context == titles[place] else set()
            yield Written(record, _KEPT | said)


def _place(record: Record) -> str | None:
    return safe_path(record.metadata.get("path")) if record.id.startswith(_PREFIX) else None


def _path(record: Record) -> str:
    if own := _place(record):
        return folder_of(record) + own
    topic = _topic(record)
    return f"{folder_of(record)}{safe_name(topic)}.md" if topic else path_of(record)


def _title(record: Record) -> str:
    stated = record.metadata.get("title")
    return stated if _place(record) and isinstance(stated, str) else _topic(record) or title_of(record)


def _topic(record: Record) -> str | None:
    """What a memory is about; a relation of the importer of server-memory is about where it begins."""
    source = record.metadata.get("from")
    return source if _is_relation(record) and isinstance(source, str) else record.topic


def _is_relation(record: Record) -> bool:
    return isinstance(record.metadata.get("relation_type"), str) and isinstance(record.metadata.get("to"), str)


def _is_observation(record: Record) -> bool:
    if _place(record):
        return isinstance(record.metadata.get("category"), str)
    return record.topic is not None and not _is_relation(record)


def _observation(record: Record, shared: list[str]) -> str:
    stated = record.metadata.get("category")
    category = re.sub(r"[\[\]()\n]", " ", stated if isinstance(stated, str) else record.kind).strip() or "note"
    text = " ".join(record.text.split())
    beside = [f"#{_NO_WORD.sub('-', tag)}" for tag in record.tags if tag not in shared and f"#{tag}" not in text]
    return " ".join([f"- [{category if len(category) > 1 else 'note'}]", text, *beside])


def _relation(record: Record) -> str:
    kind, target = str(record.metadata["relation_type"]), str(record.metadata["to"])
    context = _context(record.text)
    shown = f'"{kind}"' if " " in kind else kind
    return f"- {shown} [[{target}]]{context}"


def _context(text: str) -> str:
    """The words in parentheses that end a relation, with the space before them."""
    begin = (last := text.rpartition("\n")[2]).find(" (")
    return last[begin:] if begin >= 0 and last.endswith(")") else ""


def _links(
    memories: Memories, grouped: Grouped, titles: dict[str, str], place: str, records: list[Record]
) -> list[str]:
    """The links to other notes, but for those of relations, which say it themselves."""
    targets = {
        titles[target]
        for record in records
        if not _is_relation(record)
        for link in memories.links(record.id)
        if (target := grouped.notes.get(link.target)) is not None and target != place
    }
    said = "\n".join(record.text for record in records)
    return [f"- relates_to [[{title}]]" for title in sorted(targets) if f"[[{title}]]" not in said]


def _list(heading: str, lines: list[str]) -> str:
    return "\n".join([heading, *lines]) if lines else ""


def _properties(place: str, title: str, records: list[Record], shared: list[str]) -> dict[str, Any]:
    first = records[0]
    stated = first.metadata.get("permalink") if _place(first) else None
    permalink = stated or _NO_WORD.sub("-", place.removesuffix(".md").lower()).strip("-")
    beside = {name: value for name, value in first.metadata.items() if name not in _PLACE} if _place(first) else {}
    head = {"title": title, "type": "note", "permalink": permalink, "tags": shared, **beside}
    return {**head, "created": min(record.created_at for record in records).isoformat()}


TARGET = Target(write, "a new folder, of notes with observations and relations", folder=True)
