"""The export of ChatGPT: conversations.json, or conversations-000.json and so on since 2026, in a ZIP file.

A conversation is a tree of messages, `mapping`; the branch that ends in `current_node` is the one that ChatGPT shows.
Its messages of the user and the assistant are memories; so are what the assistant saved of the user (messages to "bio")
and the user's custom instructions, once. A document that it wrote beside the conversation (a canvas, by messages to
"canmore") is one as it was last; canvases of code are left out.

The format is not documented; read here as in https://github.com/pionxzh/chatgpt-exporter (src/api.ts) and
https://github.com/mitkury/chatgpt-export-parser (docs/chatgpt-data-export-format.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite_connect.importers.reading import (
    Entries,
    Entry,
    FoundMemory,
    LeftOut,
    Value,
    array,
    cleaned,
    json_value,
    label_of,
    labels,
    mapping,
    members_of,
    text_of,
    time_of,
    values_of,
)
from recallite_connect.importers.sources import Source

_FILES = re.compile(r"(^|/)conversations(-\d+)?\.json$", re.IGNORECASE)
# Citations and links to files, which only ChatGPT shows: private characters around them, or 【1†source】.
_CITATION = re.compile(
    "[ ]?\ue200[^\ue200\ue201]*\ue201|[ ]?\u3010[^\u3010\u3011†]*†[^\u3010\u3011]*\u3011|[\ue200-\ue206]"
)
_EVERYTHING = (".*", r"[\s\S]*", "(?s).*", "^.*$", r"^[\s\S]*$")
_ESCAPED = re.compile(r"\\([^\w\s])")
_URL = "https://chatgpt.com/c/"


def read(path: Path) -> Entries:
    """The memories of an export: its ZIP file, its folder or its conversations.json."""
    any_file = False
    for member in members_of(path, _FILES):
        any_file = True
        for value in values_of(member):
            if isinstance(value, FileTrouble):
                yield value
            else:
                yield from _conversation(value, member.name)
    if not any_file:
        raise InvalidInput(f"{path} has no conversations.json: give the ZIP file of ChatGPT's export, or its folder")


def _conversation(value: Value, file: str) -> Iterator[Entry]:
    conversation, line = mapping(value.data), value.line
    nodes = mapping(conversation.get("mapping"))
    id = label_of(conversation.get("conversation_id")) or label_of(conversation.get("id"))
    if not nodes or not id:
        yield FileTrouble(path=file, line=line, reason=f"item {value.number} is no conversation of ChatGPT")
        return
    branch = _branch(nodes, conversation.get("current_node"))
    other = sum(
        bool(_said(mapping(mapping(nodes[other_node]).get("message")))) for other_node in nodes.keys() - set(branch)
    )
    if other:
        yield LeftOut("messages of other branches", other)
    begun = time_of(conversation.get("create_time"))
    about = labels(conversation=id, title=conversation.get("title"), gizmo=conversation.get("gizmo_id"))
    position, canvases = 0, _Canvases()
    for node in branch:
        message = mapping(mapping(nodes[node]).get("message"))
        if not message:
            continue
        begun = time_of(message.get("create_time")) or begun
        if canvases.take(message, node):
            continue
        if files := len(array(mapping(message.get("metadata")).get("attachments"))):
            yield LeftOut("attached files", files)
        instructions = _custom_instructions(message)
        record = instructions or _saved(message, node, about)
        if record is None and (text := _said(message)):
            record = _turn(message, text, node, about, position)
            position += 1
        if record is None:
            yield LeftOut(_kind(message))
            continue
        # The assistant writes what it saves of the user.
        of_user = instructions is not None or record["context"] == "user"
        yield FoundMemory(
            record=NewRecord(**record, source=_URL + id, created_at=begun), path=file, line=line,
            authority="user" if of_user else "agent",
        )  # fmt: skip
    yield from canvases.found(id, about, begun, file, line)


class _Canvas:
    """A text beside a conversation, as it is so far."""

    def __init__(self, node: str, name: str, text: str, *, is_text: bool) -> None:
        self.node, self.name, self.text, self.is_text = node, name, text, is_text


class _Canvases:
    """The canvases of a conversation; `missed` counts the changes of one that could not be followed."""

    def __init__(self) -> None:
        self.written: list[_Canvas] = []
        self.missed = 0

    def take(self, message: dict[str, Any], node: str) -> bool:
        """Write or change a canvas as a message to its tool does; False for another message."""
        recipient = text_of(message.get("recipient"))
        if recipient not in ("canmore.create_textdoc", "canmore.update_textdoc"):
            return False
        content = mapping(message.get("content"))
        written = _text(message) or text_of(content.get("text"))
        try:
            call = mapping(json_value(written.encode()))
        except InvalidInput:
            self.missed += 1
            return True
        if recipient.endswith("create_textdoc"):
            is_text = not text_of(call.get("type")).startswith("code")
            text = call.get("content")
            text = cleaned(text) if isinstance(text, str) else ""
            self.written.append(_Canvas(node, text_of(call.get("name")), text, is_text=is_text))
            return True
        for change in map(mapping, array(call.get("updates"))):
            self._change(text_of(change.get("pattern")), change.get("replacement"))
        return True

    def found(
        self, conversation: str, about: dict[str, Any], at: datetime | None, file: str, line: int
    ) -> Iterator[Entry]:
        """The memories of canvases that are text, and the counts of the rest."""
        for canvas in self.written:
            if not canvas.is_text or not canvas.text.strip():
                yield LeftOut("canvases of code")
                continue
            record = NewRecord(
                id=f"{conversation}:canvas:{canvas.node}", text=canvas.text.strip(), context=label_of(canvas.name),
                tags=("canvas",), source=_URL + conversation, created_at=at, metadata=about,
            )  # fmt: skip
            yield FoundMemory(record=record, path=file, line=line, changes=True, authority="agent")
        if self.missed:
            yield LeftOut("changes of canvases", self.missed)

    def _change(self, pattern: str, replacement: object) -> None:
        """Replace all of a text, or what a pattern without signs of its own stands for: others are not run."""
        canvas = self.written[-1] if self.written else None
        if canvas is None or not isinstance(replacement, str):
            self.missed += 1
        elif pattern in _EVERYTHING:
            canvas.text = cleaned(replacement)
        elif (plain := _ESCAPED.sub(r"\1", pattern)) and plain in canvas.text:
            canvas.text = canvas.text.replace(plain, cleaned(replacement), 1)
        else:
            self.missed += 1


def _branch(nodes: dict[str, Any], last: object) -> list[str]:
    """The ids of the nodes from the root to the current node, or to the newest where none is named."""

    def moment(id: str) -> datetime:
        message = mapping(mapping(nodes[id]).get("message"))
        return time_of(message.get("create_time")) or datetime.min.replace(tzinfo=UTC)

    if not isinstance(last, str) or last not in nodes:
        answered = {mapping(node).get("parent") for node in nodes.values()}
        last = max([id for id in reversed(nodes) if id not in answered] or nodes, key=moment)
    path: dict[str, None] = {}
    while isinstance(last, str) and last in nodes and last not in path:
        path[last] = None
        last = mapping(nodes[last]).get("parent")
    return list(path)[::-1]


def _role(message: dict[str, Any]) -> str:
    return text_of(mapping(message.get("author")).get("role"))


def _said(message: dict[str, Any]) -> str:
    """The words of the user or the assistant, as they are shown; empty for other messages."""
    if _role(message) not in ("user", "assistant") or message.get("recipient", "all") not in ("all", None):
        return ""
    if mapping(message.get("metadata")).get("is_visually_hidden_from_conversation"):
        return ""
    kind = mapping(message.get("content")).get("content_type")
    return _text(message) if kind in ("text", "multimodal_text") else ""


def _text(message: dict[str, Any]) -> str:
    """The text of a message, with speech that was transcribed."""
    parts = [
        part if isinstance(part, str) else mapping(part).get("text")
        for part in array(mapping(message.get("content")).get("parts"))
    ]
    text = "\n\n".join(text for part in parts if (text := text_of(part)))
    return _CITATION.sub("", text).strip() if "\ue200" in text or "\u3010" in text else text


def _turn(message: dict[str, Any], text: str, node: str, about: dict[str, Any], position: int) -> dict[str, Any]:
    role = _role(message)
    model = mapping(message.get("metadata")).get("model_slug") if role == "assistant" else None
    return {
        "id": text_of(message.get("id")) or f"{about['conversation']}:{node}", "text": text, "context": role,
        "position": position, "metadata": about | labels(role=role, model=model),
    }  # fmt: skip


def _saved(message: dict[str, Any], node: str, about: dict[str, Any]) -> dict[str, Any] | None:
    """A memory that ChatGPT saved of the user, by a message to its tool "bio"."""
    if message.get("recipient") != "bio" or not (text := _text(message)):
        return None
    id = text_of(message.get("id")) or f"{about['conversation']}:{node}"
    return {"id": id, "text": text, "context": "ChatGPT's saved memory", "tags": ("saved-memory",), "metadata": about}


def _custom_instructions(message: dict[str, Any]) -> dict[str, Any] | None:
    """The user's custom instructions. They are in every conversation: their id is a hash of them."""
    content = mapping(message.get("content"))
    if content.get("content_type") != "user_editable_context":
        return None
    beside = mapping(mapping(message.get("metadata")).get("user_context_message_data"))
    parts = (
        text_of(beside.get("about_user_message")) or text_of(content.get("user_profile")),
        text_of(beside.get("about_model_message")) or text_of(content.get("user_instructions")),
    )
    text = "\n\n".join(part for part in parts if part)
    if not text:
        return None
    id = f"instructions:{sha256(text.encode()).hexdigest()[:32]}"
    return {"id": id, "text": text, "context": "custom instructions", "tags": ("custom-instructions",)}


def _kind(message: dict[str, Any]) -> str:
    """The kind of a message that is no memory."""
    content = mapping(message.get("content")).get("content_type")
    if content in ("thoughts", "reasoning_recap"):
        return "thoughts of a model"
    if _role(message) == "tool" or message.get("recipient", "all") not in ("all", None) or content == "code":
        return "calls and results of tools"
    hidden = mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
    if hidden or _role(message) == "system" or str(content).endswith("_editable_context"):
        return "hidden messages"
    return "messages without text"


SOURCE = Source(read, "ChatGPT's export: the ZIP file, its folder or conversations.json", authority="agent")
