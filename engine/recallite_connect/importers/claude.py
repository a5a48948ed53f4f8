"""The export of Claude (claude.ai): conversations, projects and what Claude remembers of the user.

Until 2026 a ZIP file with conversations.json, projects.json and memories.json; since then one for each kind
(conversations-000.zip, projects-000.zip, memories-000.zip), with projects/UUID.json and memories/UUID.json. A
conversation has all its branches; without a field that says which is shown, it is the one with the newest message.

A long paste is an attachment with its text, and without a name or called paste.txt: beside no typed words it is what
the user says, else a memory of its own, as are the sections of other attachments that have their text. Documents that
Claude wrote as artifacts are memories as they were last; those that are code are left out.

The format is not documented; read here as in https://github.com/mt3hr/gkill (its plugin for Claude),
https://github.com/kenn-io/agentsview (internal/importer) and
https://github.com/socketteer/Claude-Conversation-Exporter (README: branches).
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite_connect.importers.notes import Note, context_in, sections_of
from recallite_connect.importers.reading import (
    Entries,
    Entry,
    FoundMemory,
    LeftOut,
    Value,
    array,
    cleaned,
    label_of,
    labels,
    mapping,
    members_of,
    scope_of,
    text_of,
    time_of,
    values_of,
)
from recallite_connect.importers.sources import Source

_CONVERSATIONS = re.compile(r"(^|/)conversations(-\d+)?\.json$", re.IGNORECASE)
_PROJECTS = re.compile(r"(^|/)(projects\.json|projects/[^/]+\.json)$", re.IGNORECASE)
_MEMORIES = re.compile(r"(^|/)(memories\.json|memories/[^/]+\.json)$", re.IGNORECASE)
# What `text` has in the place of a call of a tool.
_UNSUPPORTED = re.compile(r"```\s*This block is not supported on your current device yet\.\s*```")
_PASTE = re.compile(r"(?:paste(?:d)?(?:[-_ ]?text)?(?:[-_ ]?\(?\d+\)?)?\.txt)?", re.IGNORECASE)
_TEXTS = ("text/markdown", "text/plain")  # artifacts; others are code, pages and pictures
_BOLD_LINE = re.compile(r"^\*\*(.+?)\*\*:?[ \t]*$", re.MULTILINE)
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_CHATS, _PROJECT = "https://claude.ai/chat/", "https://claude.ai/project/"


def read(path: Path) -> Entries:
    """The memories of an export: a ZIP file, a folder of some, an unpacked folder, or one file of it."""
    alone = path.is_file() and not zipfile.is_zipfile(path)
    names: dict[str, str] = {}  # of projects
    damaged: set[str] = set()
    any_file = False
    for pattern, reader in ((_PROJECTS, _project), (_MEMORIES, _memory), (_CONVERSATIONS, _conversation)):
        if alone and not pattern.search(f"{path.parent.name}/{path.name}"):
            continue
        for member in members_of(path, pattern):
            any_file = True
            if member.problem is not None and member.name in damaged:
                continue  # each kind of file is looked for in it
            damaged |= {member.name} if member.problem is not None else set()
            for value in values_of(member):
                if isinstance(value, FileTrouble):
                    yield value
                else:
                    yield from reader(value, member.name, names)
    if not any_file:
        raise InvalidInput(
            f"{path} has neither conversations.json nor projects or memories: "
            "give the ZIP file of Claude's export, or its folder"
        )


def _conversation(value: Value, file: str, names: dict[str, str]) -> Iterator[Entry]:
    conversation, line = mapping(value.data), value.line
    id, messages = text_of(conversation.get("uuid")), conversation.get("chat_messages")
    if not id or not isinstance(messages, list):
        yield FileTrouble(path=file, line=line, reason=f"item {value.number} is no conversation of Claude")
        return
    project = mapping(conversation.get("project"))
    scope = scope_of("projects", project["name"]) if text_of(project.get("name")) else "/"
    about = labels(conversation=id, title=conversation.get("name"), model=conversation.get("model"))
    begun = time_of(conversation.get("created_at"))
    if summary := text_of(conversation.get("summary")):
        record = NewRecord(
            id=f"summary:{id}", text=summary, context=label_of(conversation.get("name")), tags=("summary",),
            source=_CHATS + id, created_at=time_of(conversation.get("updated_at")) or begun, metadata=about,
            scope=scope,
        )  # fmt: skip
        yield FoundMemory(record=record, path=file, line=line, changes=True)
    messages = [mapping(message) for message in messages]
    branch = _branch(messages, conversation.get("current_leaf_message_uuid"))
    if other := sum(bool(_text(message)) for message in messages) - sum(bool(_text(message)) for message in branch):
        yield LeftOut("messages of other branches", other)
    position, artifacts = 0, dict[str, _Artifact]()
    for message in branch:
        yield from _not_text(message, artifacts)
        role, text = _ROLES.get(text_of(message.get("sender"))), _text(message)
        begun = time_of(message.get("created_at")) or begun
        for record in _attached(message, id, about, begun, scope):
            yield FoundMemory(record=record, path=file, line=line, authority="document")
        if role is None or not text:
            yield LeftOut("messages without text")
            continue
        record = NewRecord(
            id=text_of(message.get("uuid")) or f"{id}:{position}", text=text, context=role, source=_CHATS + id,
            position=position, created_at=begun, metadata=about | {"role": role}, scope=scope,
        )  # fmt: skip
        yield FoundMemory(record=record, path=file, line=line, authority="user" if role == "user" else "agent")
        position += 1
    for name, artifact in artifacts.items():
        if artifact.is_text:
            note = Note(f"artifact/{id}/{name}", artifact.text, {}, 0, begun or datetime.now(UTC))
            for record in _sections(note, artifact.title, "artifact", about, begun, scope, _CHATS + id):
                yield FoundMemory(record=record, path=file, line=line, changes=True)
        else:
            yield LeftOut("artifacts of code")


def _branch(messages: list[dict[str, Any]], leaf: object) -> list[dict[str, Any]]:
    """The messages that lead to the leaf, else to the newest one; all if they do not say what they answer."""
    by_id = {message["uuid"]: message for message in messages if isinstance(message.get("uuid"), str)}
    parents = {message.get("parent_message_uuid") for message in messages if _parent(message) in by_id}
    if not parents or len(by_id) < len(messages):
        return messages
    path: dict[str, dict[str, Any]] = {}
    id: str | None = leaf if isinstance(leaf, str) and leaf in by_id else None
    if id is None:
        ends = [id for id in by_id if id not in parents] or list(by_id)
        id = max(ends, key=lambda id: time_of(by_id[id].get("created_at")) or datetime.min.replace(tzinfo=UTC))
    while id is not None and id in by_id and id not in path:
        path[id] = by_id[id]
        id = _parent(by_id[id])
    return list(path.values())[::-1]


def _parent(message: dict[str, Any]) -> str | None:
    parent = message.get("parent_message_uuid")
    return parent if isinstance(parent, str) else None


def _text(message: dict[str, Any]) -> str:
    """The words of a message; the pasted ones if none were typed."""
    return _typed(message) or "\n\n".join(filter(None, map(_pasted, _with_text(message))))


def _typed(message: dict[str, Any]) -> str:
    """The text of a message: its blocks of text, or `text`, which was all that exports had before 2025."""
    blocks = map(mapping, array(message.get("content")))
    shown_text = "\n\n".join(
        text for block in blocks if block.get("type") in ("text", "voice_note") and (text := text_of(block.get("text")))
    )
    return shown_text or text_of(_UNSUPPORTED.sub("", text_of(message.get("text"))))


def _with_text(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The attachments of a message that have their text in the export."""
    attachments = map(mapping, array(message.get("attachments")))
    return [attachment for attachment in attachments if text_of(attachment.get("extracted_content"))]


def _pasted(attachment: dict[str, Any]) -> str:
    """The text of an attachment that was pasted; empty for a file."""
    is_paste = _PASTE.fullmatch(text_of(attachment.get("file_name"))) is not None
    return text_of(attachment.get("extracted_content")) if is_paste else ""


def _attached(
    message: dict[str, Any], conversation: str, about: dict[str, Any], at: datetime | None, scope: str
) -> Iterator[NewRecord]:
    """The sections of the attachments of a message that are not its words."""
    typed = _typed(message)
    for number, attachment in enumerate(_with_text(message)):
        if typed or not _pasted(attachment):
            title = text_of(attachment.get("file_name")) or "pasted text"
            place = f"{text_of(message.get('uuid'))}/{text_of(attachment.get('id')) or number}/{title}"
            note = Note(f"attachment/{conversation}/{place}", text_of(attachment["extracted_content"]), {}, 0,
                        at or datetime.now(UTC))  # fmt: skip
            yield from _sections(note, title, "attachment", about, at, scope, _CHATS + conversation)


def _sections(
    note: Note, title: str, tag: str, about: dict[str, Any], at: datetime | None, scope: str, source: str
) -> Iterator[NewRecord]:
    """The sections of a text in a conversation or project, as memories."""
    for position, section in enumerate(sections_of(note)):
        yield NewRecord(
            id=section.id, text=section.text, context=context_in(title, section), tags=(tag,), scope=scope,
            source=f"{source}#{title}"[:500], position=position, created_at=at, metadata=about | labels(document=title),
        )  # fmt: skip


class _Artifact(NamedTuple):
    """A text that Claude wrote beside a conversation, as it is so far."""

    title: str
    text: str
    is_text: bool


def _change_artifact(call: dict[str, Any], artifacts: dict[str, _Artifact]) -> bool:
    """Write or change an artifact as a call of the tool does; False for another call, or one that does not fit."""
    arguments = mapping(call.get("input"))
    name, command = text_of(arguments.get("id")), arguments.get("command")
    if call.get("name") != "artifacts" or not name:
        return False
    before = artifacts.get(name)
    if command in ("create", "rewrite"):
        title = text_of(arguments.get("title")) or (before.title if before else name)
        is_text = arguments["type"] in _TEXTS if "type" in arguments else before is None or before.is_text
        artifacts[name] = _Artifact(title, _exact(arguments.get("content")), is_text)
        return True
    old = _exact(arguments.get("old_str"))
    if command != "update" or before is None or not old or old not in before.text:
        return False
    artifacts[name] = before._replace(text=before.text.replace(old, _exact(arguments.get("new_str")), 1))
    return True


def _exact(value: object) -> str:
    return cleaned(value) if isinstance(value, str) else ""


def _not_text(message: dict[str, Any], artifacts: dict[str, _Artifact]) -> Iterator[LeftOut]:
    """The parts of a message that are no memory; `artifacts` get what it writes of them."""
    for block in map(mapping, array(message.get("content"))):
        if block.get("type") == "tool_use" and _change_artifact(block, artifacts):
            continue
        if block.get("type") in ("tool_use", "tool_result"):
            yield LeftOut("calls and results of tools")
        elif block.get("type") == "thinking":
            yield LeftOut("thoughts of a model")
    files = len(array(message.get("attachments"))) + len(array(message.get("files"))) - len(_with_text(message))
    if files:
        yield LeftOut("attached files", files)


def _project(value: Value, file: str, names: dict[str, str]) -> Iterator[Entry]:
    project, line = mapping(value.data), value.line
    id, name = text_of(project.get("uuid")), text_of(project.get("name"))
    if not id:
        yield FileTrouble(path=file, line=line, reason=f"item {value.number} is no project of Claude")
        return
    if project.get("is_starter_project"):
        yield LeftOut("projects that Claude begins with")
        return
    names[id] = name
    scope, source, about = scope_of("projects", name or id), _PROJECT + id, labels(project=id, project_name=name)
    created_at = time_of(project.get("created_at"))
    for what, key in (("description", "description"), ("instructions", "prompt_template")):
        if text := text_of(project.get(key)):
            record = NewRecord(
                id=f"project:{id}:{what}", text=text, context=label_of(f"{what} of the project {name}"),
                tags=(f"project-{what}",), scope=scope, source=source, created_at=created_at, metadata=about,
            )  # fmt: skip
            yield FoundMemory(record=record, path=file, line=line, changes=True, authority="user")
    for number, document in enumerate(map(mapping, array(project.get("docs")))):
        title = text_of(document.get("filename")) or f"document {number + 1}"
        path = f"project/{id}/{text_of(document.get('uuid')) or title}"
        at = time_of(document.get("created_at")) or created_at
        note = Note(path, text_of(document.get("content")), {}, 0, at or datetime.now(UTC))
        for record in _sections(note, title, "project-document", about, at, scope, source):
            yield FoundMemory(record=record, path=file, line=line, changes=True, authority="document")


def _memory(value: Value, file: str, names: dict[str, str]) -> Iterator[Entry]:
    """The memories that Claude has: a text for all conversations, one for each project, or files."""
    memory, line = mapping(value.data), value.line
    account = text_of(memory.get("account_uuid"))
    texts = [("/", f"memory/{account}", "Claude's memory", memory.get("conversations_memory"), None)]
    for project, text in mapping(memory.get("project_memories")).items():
        name = names.get(project) or project
        texts.append((scope_of("projects", name), f"memory/{project}", f"Claude's memory of {name}", text, None))
    for memory_file in map(mapping, array(memory.get("memory_files"))):
        path, content = text_of(memory_file.get("path")), memory_file.get("content")
        place = ("/", f"memory-file/{account}{path}", f"Claude's memory {path}")
        texts.append((*place, content, memory_file.get("updated_at")))
    for scope, path, title, text, updated_at in texts:
        at = time_of(updated_at)
        note = Note(path, _BOLD_LINE.sub(r"## \1", text_of(text)), {}, 0, at or datetime.now(UTC))
        for section in sections_of(note):
            record = NewRecord(
                id=section.id, text=section.text, context=context_in(label_of(title), section), tags=("saved-memory",),
                scope=scope, created_at=at,
            )  # fmt: skip
            yield FoundMemory(record=record, path=file, line=line, changes=True)


# Summaries and memories are Claude's.
SOURCE = Source(read, "Claude's export: its ZIP files, a folder of them or conversations.json", authority="agent")
