"""The workspace of an OpenClaw agent: a memory for each section of its memory files.

These are MEMORY.md (or memory.md), USER.md and all Markdown below memory/: daily logs, saved sessions and notes. What
the agent is told to be and do (AGENTS.md, SOUL.md, TOOLS.md, ...) and the diary of its dreams are left out.
https://docs.openclaw.ai/concepts/memory, https://docs.openclaw.ai/concepts/dreaming; saved sessions:
https://github.com/openclaw/openclaw/blob/main/src/hooks/bundled/session-memory/handler.ts

A message that came through a channel (Telegram, WhatsApp, ...) stands in a saved session with what the gateway writes
around it, which is cut: blocks of JSON whose title ends in "(untrusted metadata):" or the like, and a bracket with the
channel, the sender and the time. https://github.com/openclaw/openclaw/blob/main/src/auto-reply/envelope.ts and
reply/strip-inbound-meta.ts
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite_connect.importers.notes import (
    Note,
    Section,
    context_in,
    kept_metadata,
    notes_below,
    sections_of,
    tags_in,
)
from recallite_connect.importers.reading import Entries, FoundMemory, label_of, tags_of, time_of
from recallite_connect.importers.sources import Source

_ROOT_FILES = ("memory.md", "user.md")
_FOLDER, _DREAMS = "memory/", "memory/dreaming/"
_SESSION = re.compile(r"Session: (\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?)(?: UTC)?")
_UNTRUSTED = re.compile(
    r"^((?:user|assistant): )?[^\n(]{1,80}\(untrusted\b[^)\n]*\):[ \t]*\n"
    r"```(?:json)?\n(?:(?!```)[^\n]*\n)*```[ \t]*\n*",
    re.MULTILINE,
)
# A time, or a channel's bracket that has one, before the words of a message; and the id after them.
_ENVELOPE = re.compile(
    r"^((?:user|assistant): |\A)?\[(?=[^\[\]\n]*\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d)[^\[\]\n]+\][ \t]*(?=\S)", re.MULTILINE
)
_MESSAGE_ID = re.compile(r"[ \n]?\[message_id: [^\[\]\n]*\][ \t]*$", re.MULTILINE)
_SESSION_FACT = re.compile(r"^[-*] \*\*(Session Key|Session ID|Source)\*\*: (.*)$", re.MULTILINE)


def read(path: Path) -> Entries:
    """The memories of a workspace. InvalidInput for a folder that is none."""
    if not any((path / name).exists() for name in ("MEMORY.md", "memory.md", "memory")):
        raise InvalidInput(f"{path} has neither MEMORY.md nor a folder memory: give the workspace of an agent")
    for note in notes_below(path, _is_memory):
        if isinstance(note, FileTrouble):
            yield note
        else:
            for record, section in _records(note):
                yield FoundMemory(record=record, path=note.path, line=section.line, times=section.times)


def _is_memory(path: str) -> bool:
    lower = path.lower()
    return lower in _ROOT_FILES or (lower.startswith(_FOLDER) and not lower.startswith(_DREAMS))


def _records(note: Note) -> Iterator[tuple[NewRecord, Section]]:
    sections = sections_of(note, without={"tags"})
    title = note.name if note.path.startswith(_FOLDER) else None
    saved = False  # whether this is a session
    created_at, about = note.created_at, kept_metadata(note.metadata, "tags", "path", "headings")
    for section in sections:
        facts = {name: value.strip() for name, value in _SESSION_FACT.findall(section.text)}
        title_match = _SESSION.fullmatch(section.headings[0]) if section.headings else None
        if facts and title_match is not None and (saved_at := time_of(title_match[1])):
            # The head of a saved session is no memory of its own.
            created_at, saved = saved_at, True
            about |= {name.lower().replace(" ", "_"): value for name, value in facts.items()}
            continue
        # A bracket with a time is a person's own elsewhere than in a saved session.
        text = section.text
        if saved:  # without what a channel's gateway wrote around a message
            text = _UNTRUSTED.sub(lambda match: match[1] or "", text)
            # A bracket that stood behind such a block has the role before it now.
            text = _MESSAGE_ID.sub("", _ENVELOPE.sub(lambda match: match[1] or "", text))
        text, comments = _without_comments(text)
        if not text:
            continue
        triggers = [label_of(phrase) for name, value in comments if name == "trigger" for phrase in value.split(",")]
        tags = (*tags_of(note.metadata.get("tags")), *tags_in(text), *filter(None, triggers))
        # OpenClaw gives 1 to 10 to an entry; the highest of a section counts.
        ratings = [int(value) for name, value in comments if name == "importance" and re.fullmatch(r"\d{1,2}", value)]
        place: dict[str, Any] = {"path": note.path, "headings": list(section.headings)}
        record = NewRecord(
            id=section.id, text=text, context=context_in(title, section), tags=tuple(dict.fromkeys(tags)),
            importance=min(max(ratings), 10) / 10 if ratings else 0.5, source=label_of(note.path),
            created_at=created_at, metadata={**about, **place},
        )  # fmt: skip
        yield record, section


def _without_comments(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text without HTML comments, and the name and value of each "name: value" in them."""
    parts, comments, at = [], [], 0
    while (begin := text.find("<!--", at)) >= 0 and (end := text.find("-->", begin + 4)) >= 0:
        parts.append(text[at:begin].rstrip(" \t"))
        name, _, value = text[begin + 4 : end].partition(":")
        comments.append((name.strip(), value.strip()))
        at = end + 3
    return "".join((*parts, text[at:])).strip(), comments


SOURCE = Source(
    read, "the workspace of an agent", authority="agent", changes=True, folder=".openclaw/workspace", local_ids=True
)
