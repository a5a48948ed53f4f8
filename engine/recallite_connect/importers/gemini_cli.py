"""The session files of Gemini CLI, ~/.gemini/tmp/PROJECT/chats/session-TIME-ID.jsonl, and of its descendant Qwen Code.

In Gemini CLI the first line is the session, and a line with an `id` a message. One that comes again, with its calls of
tools or its count of tokens, says the same. `$rewindTo` and `$set` change what the model is given next: what was said
stays, and the messages in a `$set` are known, or summaries. Older versions wrote one document, session-*.json.
Subagents have files of other names, and `kind` says so. The folder of a project is in PROJECT/.project_root.

`displayContent` is there if the user saw other words than the model got, as with an @path or a hook's context, which
have frames (frames.py). Answers to the tool ask_user, which Gemini CLI runs itself, stand in its result. A tool of an
MCP server may have the same name, and has another `displayName`.

Qwen Code, ~/.qwen/projects/PROJECT/chats/SESSION.jsonl, has lines with all that is known of a message, of which
`provenance` and `subtype` say whether a person sent it, and `displayText` what that person saw. The copy of a message
in a branch of the session has the same id.

https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/services/chatRecordingService.ts,
chatRecordingTypes.ts and packages/core/src/tools/ask-user.ts, version 0.61;
https://github.com/QwenLM/qwen-code/blob/main/packages/core/src/services/chatRecordingService.ts
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recallite.errors import InvalidInput
from recallite.model.authority import Authority
from recallite.model.reports import FileTrouble
from recallite.system.folders import open_regular
from recallite_connect.frames import typed
from recallite_connect.importers.reading import (
    Entries,
    Entry,
    FoundMemory,
    LeftOut,
    array,
    files_below,
    json_document,
    json_value,
    labels,
    mapping,
    shown_name,
    text_of,
    time_of,
)
from recallite_connect.importers.sources import SessionReader, Sessions, Source, project_name

_FILES = re.compile(r"(^|/)session-[^/]*\.jsonl$")
_DOCUMENTS = re.compile(r"(^|/)session-[^/]*\.json$")
_QWEN_FILES = re.compile(r"(^|/)chats/[^/]*\.jsonl$")
_QWEN_CHATS = re.compile(r"^[^/]*\.jsonl$")  # below a folder "chats"
_ASKED_BY_HOST = "Ask User"
_LONGEST_PATH = 4096
_LAST_SEEN = 100  # a message comes again with its calls, so soon after it was first written


def read(path: Path) -> Entries:
    """The memories of a folder of sessions, or of one session."""
    if path.is_file() and _DOCUMENTS.search(path.name):
        yield from _document(path, path.name)
        return
    yield from sessions(path).entries()
    if path.is_dir():
        for name in files_below(path, lambda name: name.endswith("/") or _DOCUMENTS.search(name) is not None):
            if isinstance(name, str):  # the others are told of above
                yield from _document(path / name, name)


def sessions(path: Path) -> Sessions:
    """The session files of a folder, or one."""
    return Sessions(path, _FILES, lambda name, at: _Session(name, at, path / name if path.is_dir() else path))


def qwen_sessions(path: Path) -> Sessions:
    """The session files of Qwen Code in a folder, or one."""
    files = _QWEN_CHATS if path.absolute().name == "chats" else _QWEN_FILES
    return Sessions(path, files, lambda name, at: _QwenSession(name, at, path / name if path.is_dir() else path))


def _document(file: Path, name: str) -> Iterator[Entry]:
    try:
        document = mapping(json_document(file))
    except InvalidInput as fault:  # one file that cannot be opened: the others are read
        yield FileTrouble(path=shown_name(name), reason=str(fault))
        return
    if not document:
        yield FileTrouble(path=shown_name(name), reason="it is no JSON object")
        return
    session = _Session(shown_name(name), datetime.fromtimestamp(file.stat().st_mtime, UTC), file)
    for line in (document, *map(mapping, array(document.get("messages")))):
        yield from session.line(1, line)


class _Session(SessionReader):
    """One file: the messages that were taken so far."""

    host, kept = "gemini-cli", ("session", "folder", "project", "sub")

    def __init__(self, name: str, changed_at: datetime, file: Path) -> None:
        super().__init__(name, changed_at)
        self._session, self._sub = name.rpartition("/")[2].partition(".")[0], False
        self._seen: dict[str, None] = {}  # in their order
        self._folder, project = "", file.absolute().parent.parent
        with suppress(OSError, UnicodeDecodeError), open_regular(project / ".project_root") as stream:
            self._folder = stream.read(_LONGEST_PATH).decode().strip()
        self._project = project_name(self._folder) or shown_name(project.name)

    def line(self, number: int, line: dict[str, Any]) -> Iterator[Entry]:
        """The message of a line, and the answers to questions in it."""
        id, kind, said_at = text_of(line.get("id")), line.get("type"), time_of(line.get("timestamp"))
        if "sessionId" in line and not id:
            self._session = text_of(line["sessionId"]) or self._session
            self._sub = line.get("kind") == "subagent"
        if not id:
            return
        self._at = said_at or self._at
        calls = [*map(mapping, array(line.get("toolCalls")))]
        if self._sub:
            yield from self._once(id, LeftOut("messages of subagents"))
        elif kind in ("user", "gemini"):
            content = line.get("displayContent") or line.get("content")
            parts = content if isinstance(content, list) else [content]
            blocks: list[dict[str, Any]] = [
                {"text": part} if isinstance(part, str) else mapping(part) for part in parts
            ]
            yield from self._once(id, self._message(number, id, kind, blocks, line.get("model")))
        else:
            yield from self._once(id, LeftOut("hidden messages"))
        if array(line.get("thoughts")):
            yield from self._once(f"{id}:thoughts", LeftOut("thoughts of a model"))
        for call in calls:
            yield from self._once(f"{id}:{call.get('id')}", LeftOut("calls and results of tools"))
            answers = _answers(call) if call.get("name") == "ask_user" and not self._sub else ""
            if answers:
                answered = f"{id}:{text_of(call.get('id'))}:answers"
                authority: Authority = "user" if call.get("displayName") == _ASKED_BY_HOST else "agent"
                yield from self._once(answered, self._found(number, answered, "user", answers, authority))

    def _once(self, id: str, entry: Entry | None) -> Iterator[Entry]:
        if entry is not None and id not in self._seen:
            self._seen[id] = None
            self._position += isinstance(entry, FoundMemory)
            yield entry

    def state(self) -> dict[str, Any]:
        """The state of the session."""
        return {**(super().state() or {}), "seen": [*self._seen][-_LAST_SEEN:]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where the session was."""
        super().restore(state)
        self._seen = dict.fromkeys(state["seen"])

    def _message(
        self, number: int, id: str, kind: object, blocks: list[dict[str, Any]], model: object, *, stated: bool = False
    ) -> Entry | None:
        """The message of these blocks; None for an answer without words."""
        if any("functionResponse" in block for block in blocks):
            return LeftOut("calls and results of tools")
        texts = [text for block in blocks if not block.get("thought") and (text := text_of(block.get("text")))]
        if kind != "user":
            return self._found(number, id, "assistant", "\n\n".join(texts), "agent", model=model) if texts else None
        prompt = typed(texts, stated=stated, escapes=True)
        if not prompt.text:
            return LeftOut("hidden messages")
        return self._found(number, id, "user", prompt.text, "user" if prompt.by_user else "agent")

    def _found(self, number: int, id: str, role: str, text: str, authority: Authority, **about: object) -> FoundMemory:
        beside = labels(session=self._session, project=self._folder, **about)
        return self._turn(
            number, self._project, self._session, id=id, text=text, role=role, authority=authority, about=beside
        )


class _QwenSession(_Session):
    """A file of Qwen Code."""

    host = "qwen-code"

    def line(self, number: int, line: dict[str, Any]) -> Iterator[Entry]:
        """The message of a line."""
        id, kind, subtype = text_of(line.get("uuid")), line.get("type"), line.get("subtype")
        self._session = text_of(line.get("sessionId")) or self._session
        self._folder = text_of(line.get("cwd")) or self._folder
        self._project = project_name(self._folder) or self._project
        self._at = time_of(line.get("timestamp")) or self._at
        if kind == "tool_result":
            yield from self._once(id, LeftOut("calls and results of tools"))
        if kind not in ("user", "assistant"):
            return
        blocks = [*map(mapping, array(mapping(line.get("message")).get("parts")))]
        shown = text_of(mapping(line.get("systemPayload")).get("displayText"))
        by_person = kind != "user" or line.get("provenance") in (None, "real_user")
        if line.get("isSidechain") or line.get("agentId"):
            yield from self._once(id, LeftOut("messages of subagents"))
        elif by_person and subtype in (None, "mid_turn_user_message"):
            blocks = [{"text": shown}] if kind == "user" and shown else blocks
            stated = line.get("provenance") == "real_user"
            yield from self._once(id, self._message(number, id, kind, blocks, line.get("model"), stated=stated))
        else:
            yield from self._once(id, LeftOut("hidden messages"))
        if any(block.get("thought") for block in blocks):
            yield from self._once(f"{id}:thoughts", LeftOut("thoughts of a model"))


def _answers(call: dict[str, Any]) -> str:
    """What a person answered to the questions of a call, a line each."""
    questions = array(mapping(call.get("args")).get("questions"))
    lines = []
    for part in map(mapping, array(call.get("result"))):
        output = mapping(mapping(part.get("functionResponse")).get("response")).get("output")
        with suppress(InvalidInput):
            answers = mapping(mapping(json_value(text_of(output).encode())).get("answers"))
            for i, question in enumerate(map(mapping, questions)):
                if answer := text_of(answers.get(str(i))):
                    lines.append(f"{text_of(question.get('question'))} {answer}".strip())
    return "\n".join(lines)


SOURCE = Source(read, "Gemini CLI's sessions, or a session", authority="agent", folder=".gemini/tmp", growing=sessions)
QWEN_CODE = Source(
    None, "Qwen Code's projects, or a session", authority="agent", folder=".qwen/projects", growing=qwen_sessions
)
