"""The database of OpenCode: ~/.local/share/opencode/opencode.db.

A message of the user or the assistant has parts, of which those of the type "text" are memories. `synthetic` ones are
of OpenCode itself, as the text of files that a prompt names, and `ignored` ones the model does not get. What a person
did not type without it saying so, as the text of a command, counts as the person's if it has no frame (frames.py). A
session with a parent is a subagent's, and an answer that is a `summary` shortens the session. What was taken back stays
in the database until the next prompt.

https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/session/session.sql.ts and message-v2.ts
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recallite.errors import InvalidInput
from recallite.model.reports import FileTrouble
from recallite.store.opening import foreign
from recallite_connect.frames import typed
from recallite_connect.importers.reading import (
    Entries,
    Entry,
    FoundMemory,
    LeftOut,
    json_value,
    labels,
    mapping,
    text_of,
    time_of,
)
from recallite_connect.importers.sources import Source, project_name, turn_record

_SESSION = ("id", "parent_id", "directory", "title", "revert")
_MESSAGE = ("id", "session_id", "time_created", "data")
_PART = ("message_id", "data")
_COUNTED = {"reasoning": "thoughts of a model", "tool": "calls and results of tools", "file": "images and files"}


def read(path: Path) -> Entries:
    """The memories of a database, or of those in a folder, but for links. InvalidInput for a folder without one."""
    databases = [path]
    if path.is_dir():
        databases = sorted(file for file in path.glob("opencode*.db") if file.is_file() and not file.is_symlink())
    if not databases:
        raise InvalidInput(f"{path} has no opencode.db: give the database of OpenCode")
    for database in databases:
        yield from _database(database)


def _database(path: Path) -> Iterator[Entry]:
    tables = foreign.tables(path)
    for table, columns in (("session", _SESSION), ("message", _MESSAGE), ("part", _PART)):
        if not {*columns} <= {*tables.get(table, ())}:
            raise InvalidInput(f"{path} is no database of OpenCode: it has no table {table} with {', '.join(columns)}")
    sessions = {row[0]: dict(zip(_SESSION, row, strict=True)) for row in foreign.rows(path, "session", _SESSION)}
    texts: defaultdict[object, list[str]] = defaultdict(list)
    for message, data in foreign.rows(path, "part", _PART, order_by=("message_id", "id")):
        part = _json(data)
        kind = text_of(part.get("type"))
        if kind in _COUNTED:
            yield LeftOut(_COUNTED[kind])
        elif kind == "text" and not part.get("synthetic") and not part.get("ignored"):
            texts[message].append(text_of(part.get("text")))
    positions: dict[object, int] = defaultdict(int)
    for row in foreign.rows(path, "message", _MESSAGE, order_by=("session_id", "time_created", "id")):
        id, session = str(row[0]), row[1]
        entry = _entry(
            id, row[2], _json(row[3]), texts.pop(row[0], []), sessions.get(session), positions[session], path
        )
        positions[session] += isinstance(entry, FoundMemory)
        if entry is not None:
            yield entry


def _entry(
    id: str, created: object, data: dict[str, Any], texts: list[str], session: dict[str, Any] | None, position: int,
    path: Path,
) -> Entry | None:  # fmt: skip
    """The memory of a message; None for one with calls of tools alone."""
    role = data.get("role")
    if session is None or role not in ("user", "assistant"):
        return FileTrouble(path=path.name, reason=f"the message {id} has no session, or no role")
    taken_back = text_of(_json(session["revert"]).get("messageID"))
    if session["parent_id"] is not None:
        return LeftOut("messages of subagents")
    if data.get("summary") is True or (taken_back and id >= taken_back):
        return LeftOut("hidden messages")
    prompt = typed(texts)
    text = prompt.text if role == "user" else "\n\n".join(filter(None, texts))
    if not text:
        return LeftOut("hidden messages") if role == "user" else None
    project, name = project_name(session["directory"]), str(session["id"])
    about = labels(
        session=name, project=session["directory"], title=session["title"],
        model=data.get("modelID") if role == "assistant" else None,
    )  # fmt: skip
    record = turn_record(
        "opencode", project, name, id=id, text=text, role=role, position=position, said_at=time_of(created), about=about
    )
    by_user = role == "user" and prompt.by_user
    return FoundMemory(record=record, path=path.name, authority="user" if by_user else "agent")


def _json(data: object) -> dict[str, Any]:
    """The object of a column; an empty one for what is none."""
    try:
        return mapping(json_value(data.encode("utf-8", "replace") if isinstance(data, str) else b""))
    except InvalidInput:
        return {}


SOURCE = Source(read, "OpenCode's database, or its folder", authority="agent", folder=".local/share/opencode")
