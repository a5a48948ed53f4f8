"""The session files of Codex: ~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl.

A line is {"timestamp", "type", "payload"}. Items of the type `response_item` that are messages of the user or the
assistant are memories. Until August 2025 a line was the item itself, and the first one the session. A session that was
forked begins with a copy of another: turns have ids of what was said before them, so that copies are not taken twice.

Messages of the user are also the context that Codex adds (frames.py), in items or blocks of their own. In 2026 Codex
came to say what a block is: `content_item_kinds` names for each "user.text" or "user.image", or another kind of its
own, such as "agents_md.instructions", "shell.user_command" or "hooks.additional_context". Older blocks count as typed
if no block of the message has a frame. What a person answers to questions of the tool request_user_input, which Codex
runs itself, stands in its result.

https://github.com/openai/codex/blob/main/codex-rs/protocol/src/protocol.rs (RolloutLine, SessionMeta) and models.rs
(ResponseItem); what Codex adds to prompts: codex-rs/core/src/context, event_mapping.rs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from recallite.errors import InvalidInput
from recallite.model.authority import Authority
from recallite_connect.frames import typed
from recallite_connect.importers.reading import (
    Entry,
    FoundMemory,
    LeftOut,
    array,
    json_value,
    labels,
    mapping,
    text_of,
    time_of,
)
from recallite_connect.importers.sources import SessionReader, Sessions, Source, blocks_of, project_name

_FILES = re.compile(r"(^|/)rollout-[^/]*\.jsonl$")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_METADATA = "internal_chat_message_metadata_passthrough"
# Tags around an image, in blocks of their own.
_IMAGE = re.compile(r"\s*</?(?:local_)?image\b[^<>]*>\s*")
# Sessions that a program began, as `codex exec` and Codex as an MCP server.
_PROGRAMS = ("exec", "mcp")
_TOOLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")


def sessions(path: Path) -> Sessions:
    """The session files of a folder, or one. Parents of forks are read before them: names begin with the time."""
    roots: dict[str, str] = {}  # of a session that was forked, the first one it goes back to
    return Sessions(path, _FILES, lambda name, changed_at: _Session(name, changed_at, roots))


class _Session(SessionReader):
    """One file: the session and the turns that were taken so far."""

    host, kept = "codex", ("id", "root", "said", "known", "subagent", "program", "about")

    def __init__(self, name: str, changed_at: datetime, roots: dict[str, str]) -> None:
        super().__init__(name, changed_at)
        session_ids, self._roots = _ID.findall(name), roots
        self._id = self._root = session_ids[-1] if session_ids else name.rpartition("/")[2].removesuffix(".jsonl")
        self._said = ""
        self._known = self._subagent = self._program = False
        self._about: dict[str, Any] = {}
        self._asked: dict[str, dict[str, str]] = {}  # questions by their ids, of calls without an answer

    def line(self, number: int, line: dict[str, Any]) -> Iterator[Entry]:
        """The turn of a line."""
        kind, payload = line.get("type"), line.get("payload")
        self._at = time_of(line.get("timestamp")) or self._at
        if kind == "session_meta" or (kind is None and "id" in line and not self._known):
            self._begin(mapping(payload) or line)
            return
        if kind == "turn_context":
            self._about |= labels(model=mapping(payload).get("model"))
            return
        item = line if payload is None else mapping(payload) if kind == "response_item" else {}
        what = text_of(item.get("type"))
        if what == "message":
            self._asked.clear()
        if what == "message" and item.get("role") in ("user", "assistant"):
            yield from self._message(number, item)
        elif what == "reasoning":
            yield LeftOut("thoughts of a model")
        elif what.removesuffix("_output") in _TOOLS:
            yield LeftOut("calls and results of tools")
            yield from self._dialog(number, item)

    def _begin(self, session: dict[str, Any]) -> None:
        if self._known:
            return  # that of the session which this one was forked from
        self._known = True
        self._id = text_of(session.get("id")) or self._id
        parent = text_of(session.get("forked_from_id"))
        self._root = self._roots[self._id] = self._roots.get(parent, parent) or self._id
        self._subagent = "subagent" in mapping(session.get("source")) or session.get("thread_source") == "subagent"
        self._program = session.get("source") in _PROGRAMS
        git = mapping(session.get("git"))
        self._about = labels(session=self._id, project=session.get("cwd"), branch=git.get("branch"))

    def _message(self, number: int, item: dict[str, Any]) -> Iterator[Entry]:
        if self._subagent:
            yield LeftOut("messages of subagents")
            return
        role = str(item["role"])
        authority: Authority = "agent"
        if role == "user":
            text, authority = _typed(item)
        else:
            texts = (text_of(block.get("text")) for block in blocks_of(item.get("content")))
            text = "\n\n".join(filter(None, texts))
        if not text:
            yield LeftOut("hidden messages")
            return
        yield self._found(number, role, text, authority)

    def _dialog(self, number: int, item: dict[str, Any]) -> Iterator[Entry]:
        """Note the questions of a call; yield what was answered to them."""
        call = text_of(item.get("call_id"))
        if item.get("name") == "request_user_input" and not item.get("namespace"):
            asked = map(mapping, array(_json(item.get("arguments")).get("questions")))
            self._asked[call] = {
                text_of(each.get("id")): text_of(each.get("question")) for each in asked if not each.get("isSecret")
            }
        elif call in self._asked:
            questions, answers = self._asked.pop(call), mapping(_json(item.get("output")).get("answers"))
            lines = [
                " ".join([question, *(text_of(said).removeprefix("user_note: ") for said in given)])
                for id, question in questions.items()
                if (given := array(mapping(answers.get(id)).get("answers")))
            ]
            if lines and not self._subagent:
                yield self._found(number, "user", "\n".join(lines), "user")

    def _found(self, number: int, role: str, text: str, authority: Authority) -> FoundMemory:
        self._said = sha256(bytes.fromhex(self._said) + f"{role}\0{text}".encode()).hexdigest()
        project = project_name(self._about.get("project"))
        about = {name: value for name, value in self._about.items() if name != "model" or role == "assistant"}
        turn = self._turn(
            number, project, self._id, id=f"{self._root}:{self._said[:32]}", text=text, role=role,
            authority="agent" if self._program else authority, about=about,
        )  # fmt: skip
        self._position += 1
        return turn

    def state(self) -> dict[str, Any] | None:
        """The state of the session; None while a question has no answer."""
        return None if self._asked else super().state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where the session was."""
        super().restore(state)
        self._roots[self._id] = self._root


def _json(text: object) -> dict[str, Any]:
    with suppress(InvalidInput):
        return mapping(json_value(text_of(text).encode()))
    return {}


def _typed(item: dict[str, Any]) -> tuple[str, Authority]:
    """Return the words of a message that the user may have typed, and their author."""
    blocks = blocks_of(item.get("content"))
    kinds = mapping(item.get(_METADATA)).get("content_item_kinds")
    stated = isinstance(kinds, list) and len(kinds) == len(blocks)
    images = [i for i, block in enumerate(blocks) if block.get("type") == "input_image"]
    texts = [
        text
        for i, block in enumerate(blocks)
        if (text := text_of(block.get("text")))
        and not (stated and array(kinds)[i] != "user.text")
        and not (_IMAGE.fullmatch(text) and any(abs(i - image) <= 1 for image in images))
    ]
    prompt = typed(texts, stated=stated)
    return prompt.text, "user" if prompt.by_user else "agent"


SOURCE = Source(None, "Codex's sessions, or a session", authority="agent", folder=".codex/sessions", growing=sessions)
