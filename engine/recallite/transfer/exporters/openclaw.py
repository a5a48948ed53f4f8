"""The memory files of an OpenClaw workspace: MEMORY.md and a file for each day.

Memories that were imported from such a workspace go into the files that they came from. Of others, those that are
pinned or standing instructions go to MEMORY.md, the rest to the day on which they were stored (UTC).
"""

from __future__ import annotations

from recallite.model.records import Record
from recallite.transfer.exporters.notes import (
    Note,
    NoteDialect,
    NoteGroups,
    begins_with_heading,
    imported_path,
    title_of,
)
from recallite.transfer.exporters.targets import Memories, Target
from recallite_connect.importers.notes import tags_in

_LONG_TERM = "MEMORY.md"
_MAX_TRIGGERS = 3


def _imported(record: Record) -> str | None:
    return imported_path(record, "openclaw")


def _path(record: Record) -> str:
    lasts = record.pinned or record.standing is not None
    return _imported(record) or (_LONG_TERM if lasts else f"memory/{record.created_at:%Y-%m-%d}.md")


def _render(memories: Memories, groups: NoteGroups, path: str, records: list[Record]) -> Note:
    title = [] if _imported(records[0]) else [f"# {path.rpartition('/')[2].removesuffix('.md')}"]
    return Note({}, [*title, *map(_entry, records)], _kept)


def _entry(record: Record) -> str:
    """A memory under a heading of its own, unless it has one, with OpenClaw's remarks."""
    heading = ""
    if not _imported(record) and not begins_with_heading(record.text):
        long_term = _path(record) == _LONG_TERM
        heading = f"## {title_of(record) if long_term else f'{record.created_at:%H:%M}'}\n\n"
    triggers = [tag for tag in _tags_beside_text(record) if _can_be_trigger(tag)][:_MAX_TRIGGERS]
    remarks = [f"<!-- trigger: {', '.join(triggers)} -->"] if triggers else []
    if record.importance != 0.5:
        remarks.append(f"<!-- importance: {max(1, round(record.importance * 10))} -->")
    return heading + " ".join([record.text.strip(), *remarks])


def _kept(record: Record) -> set[str]:
    tags = _tags_beside_text(record)
    fields = {"importance", "source"} | ({"metadata", "context"} if _imported(record) else set())
    if len(tags) <= _MAX_TRIGGERS and all(map(_can_be_trigger, tags)):
        fields.add("tags")
    return fields | ({"pinned"} if record.pinned else set())


def _tags_beside_text(record: Record) -> list[str]:
    in_text = tags_in(record.text)
    return [tag for tag in record.tags if tag not in in_text]


def _can_be_trigger(tag: str) -> bool:
    return "," not in tag and "-->" not in tag


TARGET = Target(NoteDialect(_path, _render).write, "a new folder, of MEMORY.md and memory/YYYY-MM-DD.md", folder=True)
