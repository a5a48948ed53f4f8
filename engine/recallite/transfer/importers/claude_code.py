"""The session files of Claude Code: ~/.claude/projects/PROJECT/SESSION.jsonl.

What the user typed and what Claude said are memories. The lines have calls of tools and their results, thoughts, what
Claude Code itself tells the model, and the conversations of subagents as well.

The format is not documented; read here as in https://github.com/simonw/claude-code-transcripts and
https://github.com/daaain/claude-code-log (dev-docs: messages).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from recallite.model.records import NewRecord
from recallite.transfer.importers.entries import Entries, Entry, FoundMemory, LeftOut
from recallite.transfer.importers.sessions import Sessions, blocks_of, project_name
from recallite.transfer.importers.sources import Source
from recallite.transfer.importers.values import labels, mapping, scope_of, text_of, time_of

_FILES = re.compile(r"\.jsonl$")
# What Claude Code, an editor or a hook puts into a prompt.
_ADDED = re.compile(r"<(system-reminder|ide_\w+|local-command-\w+|bash-std\w+|task-notification)\b[^<>]*>")
_NOT_TYPED = ("[Request interrupted by user", "Caveat: The messages below were generated", "<bash-input>")
_BLOCKS = {
    "tool_use": "calls and results of tools", "tool_result": "calls and results of tools",
    "server_tool_use": "calls and results of tools", "thinking": "thoughts of a model",
    "redacted_thinking": "thoughts of a model", "image": "images and files", "document": "images and files",
}  # fmt: skip


def read(path: Path) -> Entries:
    """The memories of a folder of sessions, or of one session."""
    return sessions(path).entries()


def sessions(path: Path) -> Sessions:
    """The session files of a folder, or one."""
    return Sessions(path, _FILES, _Session)


class _Session:
    """One file: the turns that were taken so far."""

    def __init__(self, name: str, changed_at: datetime) -> None:
        self._name, self._at, self._position = name, changed_at, 0
        self._folder = name.rpartition("/")[0].partition("/")[0]

    def line(self, number: int, line: dict[str, Any]) -> Iterator[Entry]:
        """The turn of a line, and what it has besides."""
        kind, message = line.get("type"), mapping(line.get("message"))
        if kind == "attachment":
            queued = mapping(line.get("attachment"))
            if queued.get("type") != "queued_command" or queued.get("commandMode") not in ("prompt", None):
                return
            kind, message = "user", {"content": queued.get("prompt")}
        if kind not in ("user", "assistant"):
            return  # titles, snapshots of files, progress
        if line.get("isSidechain"):
            yield LeftOut("messages of subagents")
            return
        if any(
            line.get(flag) for flag in ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
        ):
            yield LeftOut("hidden messages")
            return
        blocks = blocks_of(message.get("content"))
        for block in blocks:
            if (what := _BLOCKS.get(text_of(block.get("type")))) is not None:
                yield LeftOut(what)
        text = "\n\n".join(
            block_text for block in blocks if block.get("type") == "text" and (block_text := text_of(block.get("text")))
        )
        if kind == "user":
            text = _typed(text)
        if text and message.get("model") != "<synthetic>":
            yield FoundMemory(record=self._turn(number, line, str(kind), text), path=self._name, line=number)

    def _turn(self, number: int, line: dict[str, Any], role: str, text: str) -> NewRecord:
        message = mapping(line.get("message"))
        session = text_of(line.get("sessionId")) or self._name.rpartition("/")[2].removesuffix(".jsonl")
        project = project_name(line.get("cwd")) or self._folder
        self._at = time_of(line.get("timestamp")) or self._at
        about = labels(
            session=session,
            project=line.get("cwd"),
            branch=line.get("gitBranch"),
            role=role,
            model=message.get("model"),
        )
        self._position += 1
        return NewRecord(
            id=text_of(line.get("uuid")) or f"{session}:{number}", text=text, context=role, scope=scope_of(project),
            source=f"claude-code/{project}/{session}"[:500], position=self._position - 1, created_at=self._at,
            metadata=about,
        )  # fmt: skip


def _typed(text: str) -> str:
    """The part of a prompt that the user typed; empty for the output of commands, and for commands without words."""
    if (noted := _inside(text, "user-memory-input")) is not None:
        return noted
    if (command := _inside(text, "command-name")) is not None:
        arguments = _inside(text, "command-args")
        return f"{command} {arguments}" if arguments else ""
    text = _without_added(text).strip()
    return "" if text.startswith(_NOT_TYPED) else text


def _inside(text: str, tag: str) -> str | None:
    """The text between the first tag of that name and its end."""
    inner, end, _ = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return inner.strip() if end else None


def _without_added(text: str) -> str:
    """A prompt without what was put into it. Each part is read once, also if thousands of tags have no end."""
    parts: list[str] = []
    done = 0
    endless: set[str] = set()
    for tag in _ADDED.finditer(text):
        if tag.start() < done or tag[1] in endless:
            continue
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            endless.add(tag[1])
            continue
        parts.append(text[done : tag.start()])
        done = end + len(f"</{tag[1]}>")
    return "".join([*parts, text[done:]])


SOURCE = Source(read, "Claude Code's projects, or a session", folder=".claude/projects", growing=sessions)
