"""The memory files of an OpenClaw workspace: MEMORY.md and a file for each day.

Memories that were imported from such a workspace go into the files that they came from. Of others, those that are
pinned or standing instructions go to MEMORY.md, the rest to the day on which they were stored (UTC).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recallite.model.records import Record
from recallite.transfer.exporters.notes import Grouped, begins_with_heading, note, safe_path, title_of, write_note
from recallite.transfer.exporters.targets import Memories, Target, Written
from recallite.transfer.importers.notes import tags_in

_PREFIX = "openclaw:"
_LONG_TERM = "MEMORY.md"
_MAX_TRIGGERS = 3


def write(memories: Memories, path: Path) -> Iterator[Written]:
    """The memory files, in a new folder."""
    grouped = Grouped()
    for record in memories.pages():
        grouped.add(_own_path(record) or _path(record), record)
    for place, ids in grouped.ids.items():
        found = memories.some(ids)
        records = [found[id] for id in ids if id in found]
        if not records:
            continue
        given = bool(_own_path(records[0]))
        title = [] if given else [f"# {place.rpartition('/')[2].removesuffix('.md')}"]
        write_note(path, place, note({}, [*title, *(_entry(record) for record in records)]))
        for record in records:
            yield Written(record, _kept(record))


def _own_path(record: Record) -> str | None:
    return safe_path(record.metadata.get("path")) if record.id.startswith(_PREFIX) else None


def _path(record: Record) -> str:
    lasts = record.pinned or record.standing is not None
    return _LONG_TERM if lasts else f"memory/{record.created_at:%Y-%m-%d}.md"


def _entry(record: Record) -> str:
    """A memory under a heading of its own, unless it has one, with OpenClaw's remarks."""
    heading = "" if _own_path(record) or begins_with_heading(record.text) else f"## {_heading(record)}\n\n"
    triggers = [tag for tag in _beside(record) if _can_be_trigger(tag)][:_MAX_TRIGGERS]
    remarks = [f"<!-- trigger: {', '.join(triggers)} -->"] if triggers else []
    if record.importance != 0.5:
        remarks.append(f"<!-- importance: {max(1, round(record.importance * 10))} -->")
    return heading + " ".join([record.text.strip(), *remarks])


def _heading(record: Record) -> str:
    return title_of(record) if _path(record) == _LONG_TERM else f"{record.created_at:%H:%M}"


def _kept(record: Record) -> frozenset[str]:
    kept = {"importance", "source"} | ({"metadata", "context"} if _own_path(record) else set())
    beside = _beside(record)
    safe = len(beside) <= _MAX_TRIGGERS and all(map(_can_be_trigger, beside))
    return frozenset(kept | ({"tags"} if safe else set()) | ({"pinned"} if record.pinned else set()))


def _beside(record: Record) -> list[str]:
    """The tags that the text does not have itself."""
    said = tags_in(record.text)
    return [tag for tag in record.tags if tag not in said]


def _can_be_trigger(tag: str) -> bool:
    return "," not in tag and "-->" not in tag


TARGET = Target(write, "a new folder, of MEMORY.md and memory/YYYY-MM-DD.md", folder=True)
