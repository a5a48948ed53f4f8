"""The session files of Copilot CLI: ~/.copilot/session-state/SESSION/events.jsonl, until the end of 2025 SESSION.jsonl.

A line is an event, {"type", "data", "id", "timestamp", "parentId"}; those of a subagent have an `agentId`, older ones a
`parentToolCallId`. The content of a `user.message` is what the person saw in the timeline, without the time and the
files that the model was given with it (`transformedContent`). Its `source` says who else sent it, as a skill, and
`isAutopilotContinuation` that nobody did. What is rewound or compacted was said all the same.

https://github.com/github/copilot-sdk/blob/main/docs/features/streaming-events.md and
nodejs/src/generated/session-events.ts; files of version 1.0.102 of the npm package @github/copilot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from recallite.model.authority import Authority
from recallite_connect.frames import typed
from recallite_connect.importers.reading import Entry, LeftOut, labels, mapping, text_of, time_of
from recallite_connect.importers.sources import SessionReader, Sessions, Source, project_name

_FILES = re.compile(r"(^|/)(?:events|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$")


def sessions(path: Path) -> Sessions:
    """The session files of a folder, or one."""
    return Sessions(path, _FILES, lambda name, at: _Session(name, at, path / name if path.is_dir() else path))


class _Session(SessionReader):
    """One file: the session, and how many turns were taken so far."""

    host, kept = "copilot-cli", ("id", "about")

    def __init__(self, name: str, changed_at: datetime, file: Path) -> None:
        super().__init__(name, changed_at)
        self._id = file.stem if file.stem != "events" else file.absolute().parent.name
        self._about: dict[str, Any] = labels(session=self._id)

    def line(self, number: int, line: dict[str, Any]) -> Iterator[Entry]:
        """The turn of an event, and what it has besides."""
        kind, data = line.get("type"), mapping(line.get("data"))
        self._at = time_of(line.get("timestamp")) or self._at
        if kind == "session.start":
            context = mapping(data.get("context"))
            self._id = text_of(data.get("sessionId")) or self._id
            self._about = labels(session=self._id, project=context.get("cwd"), branch=context.get("branch"))
        elif kind == "tool.execution_complete":
            yield LeftOut("calls and results of tools")
        elif kind in ("user.message", "assistant.message"):
            if line.get("agentId") or data.get("parentToolCallId"):
                yield LeftOut("messages of subagents")
                return
            if text_of(data.get("reasoningText")):
                yield LeftOut("thoughts of a model")
            yield from self._message(number, line, data)

    def _message(self, number: int, line: dict[str, Any], data: dict[str, Any]) -> Iterator[Entry]:
        text, role, about = text_of(data.get("content")), line["type"].partition(".")[0], self._about
        authority: Authority = "agent"
        if role == "user":
            prompt = typed([text])
            by_another = data.get("isAutopilotContinuation") or data.get("source") not in (None, "", "user")
            text, authority = "" if by_another else prompt.text, "user" if prompt.by_user else "agent"
            if not text:
                yield LeftOut("hidden messages")
        else:
            about = {**about, **labels(model=data.get("model"))}
        if text:
            id, project = text_of(line.get("id")) or f"{self._id}:{number}", project_name(about.get("project"))
            turn = self._turn(number, project, self._id, id=id, text=text, role=role, authority=authority, about=about)
            self._position += 1
            yield turn


SOURCE = Source(
    None, "Copilot CLI's sessions, or a session", authority="agent", folder=".copilot/session-state", growing=sessions
)
