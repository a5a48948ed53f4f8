"""Notes of basic-memory: the reverse of the importer of that name.

Memories with one topic are the observations of a note, others are notes of their own. What was imported from
basic-memory goes into the notes that it came from, as sections, observations and relations.
"""

from __future__ import annotations

import re
from typing import Any

from recallite.model.records import Record
from recallite.transfer.exporters.notes import (
    Note,
    NoteDialect,
    NoteGroups,
    begins_with_heading,
    folder_of,
    imported_path,
    path_of,
    safe_name,
    says_properties,
    shared_tags,
    title_of,
)
from recallite.transfer.exporters.targets import Memories, Target

_PLACE = frozenset({"path", "permalink", "title", "headings", "category", "relation_type", "to"})
_KEPT = frozenset({"tags", "created_at", "topic", "links", "source"})
_NO_WORD = re.compile(r"[^\w/-]+")


def _imported(record: Record) -> str | None:
    return imported_path(record, "basic-memory")


def _path(record: Record) -> str:
    if imported := _imported(record):
        return folder_of(record) + imported
    topic = _topic(record)
    return f"{folder_of(record)}{safe_name(topic)}.md" if topic else path_of(record)


def _render(memories: Memories, groups: NoteGroups, path: str, records: list[Record]) -> Note:
    title, shared = _title(records[0]), shared_tags(records)
    relations = [_relation(record) for record in records if _is_relation(record)]
    relations += _links(memories, groups, records)
    blocks = [
        *([] if any(begins_with_heading(record.text) for record in records) else [f"# {title}"]),
        *(record.text for record in records if not _stands_elsewhere(record)),
        _list("## Observations", [_observation(record, shared) for record in records if _is_observation(record)]),
        _list("## Relations", relations),
    ]

    def kept(record: Record) -> frozenset[str]:
        imported = bool(_imported(record))
        metadata = {"metadata"} if imported or _is_relation(record) else set()
        return _KEPT | metadata | ({"context"} if imported or record.context == title else set())

    return Note(_properties(path, title, records, shared), filter(None, blocks), kept)


def _title(record: Record) -> str:
    title = record.metadata.get("title")
    return title if _imported(record) and isinstance(title, str) else _topic(record) or title_of(record)


def _topic(record: Record) -> str | None:
    """The topic of a memory; a relation of the importer of server-memory has where it begins."""
    source = record.metadata.get("from")
    return source if _is_relation(record) and isinstance(source, str) else record.topic


def _is_relation(record: Record) -> bool:
    return isinstance(record.metadata.get("relation_type"), str) and isinstance(record.metadata.get("to"), str)


def _is_observation(record: Record) -> bool:
    if _imported(record):
        return isinstance(record.metadata.get("category"), str)
    return record.topic is not None and not _is_relation(record)


def _stands_elsewhere(record: Record) -> bool:
    """Whether a memory is written below a heading of its own, or by the properties of the note."""
    return _is_observation(record) or _is_relation(record) or says_properties(record, "basic-memory")


def _observation(record: Record, shared: list[str]) -> str:
    category = record.metadata.get("category")
    stated = category if isinstance(category, str) else record.kind
    category = re.sub(r"[\[\]()\n]", " ", stated).strip() or "note"
    text = " ".join(record.text.split()).removeprefix(f"{stated}: ")
    tags = [f"#{_NO_WORD.sub('-', tag)}" for tag in record.tags if tag not in shared and f"#{tag}" not in text]
    return " ".join([f"- [{category if len(category) > 1 else 'note'}]", text, *tags])


def _relation(record: Record) -> str:
    kind, target = str(record.metadata["relation_type"]), str(record.metadata["to"])
    quoted = f'"{kind}"' if " " in kind else kind
    return f"- {quoted} [[{target}]]{_context(record.text)}"


def _context(text: str) -> str:
    """The words in parentheses that end a relation, with the space before them."""
    begin = (last := text.rpartition("\n")[2]).find(" (")
    return last[begin:] if begin >= 0 and last.endswith(")") else ""


def _links(memories: Memories, groups: NoteGroups, records: list[Record]) -> list[str]:
    """The links to other notes, but for those of relations, which say it themselves."""
    paths = {path for record in records if not _is_relation(record) for path in groups.linked(memories, record)}
    firsts = memories.some(groups.ids[path][0] for path in paths)
    text = "\n".join(record.text for record in records)
    titles = sorted({_title(record) for record in firsts.values()})
    return [f"- relates_to [[{title}]]" for title in titles if f"[[{title}]]" not in text]


def _list(heading: str, lines: list[str]) -> str:
    return "\n".join([heading, *lines]) if lines else ""


def _properties(path: str, title: str, records: list[Record], shared: list[str]) -> dict[str, Any]:
    first = records[0]
    imported = first.metadata if _imported(first) else {}
    permalink = imported.get("permalink") or _NO_WORD.sub("-", path.removesuffix(".md").lower()).strip("-")
    others = {name: value for name, value in imported.items() if name not in _PLACE}
    head = {"title": title, "type": "note", "permalink": permalink, "tags": shared, **others}
    return {**head, "created": min(record.created_at for record in records).isoformat()}


TARGET = Target(
    NoteDialect(_path, _render).write, "a new folder, of notes with observations and relations", folder=True
)
