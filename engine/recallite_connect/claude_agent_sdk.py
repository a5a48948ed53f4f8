"""A `SessionStore` of the Claude Agent SDK: transcripts in a Recallite memory, resumed on any machine that opens it."""

from __future__ import annotations

import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from recallite.agents.sessions import SessionInfo, plain_text
from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.model.records import NewRecord, Record
from recallite.system.messages import shown
from recallite_connect.common import (
    OnMemory,
    existing_session,
    needed,
    scope_segment,
    stored_messages,
    threaded,
    to_embed,
)
from recallite_connect.importers.reading import cleaned_json

with needed("claude-agent-sdk"):
    import anyio.to_thread
    from claude_agent_sdk import SessionStore, fold_session_summary

__all__ = ["RecalliteSessionStore"]

R = TypeVar("R")
_KIND = "claude-session"
# Sessions whose uuids stay in memory: about 100 bytes an entry.
_MOST_KNOWN = 16


async def _in_thread(call: Callable[..., R], *args: Any) -> R:
    """The result of a call that runs in a thread, on asyncio or Trio; a cancelled one ends first."""
    done: R = await anyio.to_thread.run_sync(call, *args)
    return done


class _Stale(Exception):
    """Another process has changed a session since its uuids were read."""


class _Known:
    """The uuids in a transcript, as far as it was read: up to a position. `created_at` tells it from a later one."""

    def __init__(self, created_at: datetime | None, entries: list[Any]) -> None:
        self.created_at, self.end = created_at, len(entries)
        self.uuids = {entry["uuid"] for entry in entries if entry.get("uuid")}


class RecalliteSessionStore(OnMemory, SessionStore):
    """Transcripts as sessions of a memory.

    - memory: a Memory, which stays open, or a path
    - scope: the scope below which everything is

    A project is the scope `/claude/<project_key>`, a transcript a session in it, named `<session_id>` or, for a
    subagent's, `<session_id>/<subpath>`. An entry with a `uuid` that the transcript has is not stored again. The texts
    of messages are found by `memory.sessions.search`. The summary of a session, which the SDK folds, is a memory of the
    kind `claude-session` that is in no recall; it is written in the same transaction as the entries.
    """

    def __init__(self, memory: Memory | str | os.PathLike[str], *, scope: str = "/claude") -> None:
        super().__init__(memory)
        self._scoped = self._memory.scoped(scope)
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._lock = threading.Lock()

    def _append(self, key: Mapping[str, Any], entries: list[Any]) -> None:
        """Store entries at the end of a transcript, all or none; when this returns, they survive power loss."""
        if not entries:
            return
        project, name = _place(key)
        with self._lock:
            while True:
                known = self._read_known(project, name)
                fresh = list(_unknown(entries, known.uuids))
                if not fresh:
                    return
                try:
                    known.created_at = self._write(key, fresh, known)
                except _Stale:
                    self._known.pop((project, name), None)
                    continue
                known.end += len(fresh)
                known.uuids.update(entry["uuid"] for entry in fresh if entry.get("uuid"))
                return

    def _write(self, key: Mapping[str, Any], entries: list[Any], known: _Known) -> datetime:
        """Append entries, fold the summary, and return when the session began. Raises _Stale if it is not as known."""
        project, name = _place(key)
        memory = self._project(project)
        messages = [*map(_message_of, cleaned_json(entries))]
        with memory.transaction(embed=to_embed(messages)):
            session = memory.sessions.open(name, provider="claude")
            if known.created_at not in (None, session.created_at):
                raise _Stale
            if session.extend(messages) != known.end:
                raise _Stale
            if key.get("subpath"):
                return session.created_at
            record = _stored_summary(memory, name)
            previous = None if record is None else _summary(record.metadata, 0)
            summary = {"session_id": name, "data": fold_session_summary(previous, dict(key), entries)["data"]}
            if record is None:
                item = NewRecord(name, id=str(uuid.uuid4()), kind=_KIND, metadata=summary, indexed=False)
                memory.remember(item)
            elif summary != record.metadata:
                memory.update(record.id, metadata=summary)
            return session.created_at

    def _read_known(self, project: str, name: str) -> _Known:
        known = self._known.get((project, name))
        session = existing_session(self._project(project).sessions, name)
        created_at = None if session is None else session.created_at
        if known is None or known.created_at != created_at:
            known = self._known[project, name] = _Known(created_at, self._entries(project, name) or [])
        self._known.move_to_end((project, name))
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return known

    def _load(self, key: Mapping[str, Any]) -> list[Any] | None:
        """The entries of a transcript; None if there is none."""
        return self._entries(*_place(key))

    def _entries(self, project: str, name: str) -> list[Any] | None:
        return [message["entry"] for message in stored_messages(self._project(project).sessions, name)] or None

    def _list_sessions(self, project_key: str) -> list[Any]:
        """The sessions of a project, with the time of their last entry in milliseconds."""
        return [
            {"session_id": session.id, "mtime": _milliseconds(session.updated_at)}
            for session in self._sessions(project_key)
            if "/" not in session.id
        ]

    def _summaries(self, project_key: str) -> list[Any]:
        """The summaries of a project's sessions."""
        times = {session.id: _milliseconds(session.updated_at) for session in self._sessions(project_key)}
        records = self._project(scope_segment(project_key)).list(kinds=_KIND, limit=None)
        return [_summary(record.metadata, times[record.text]) for record in records if record.text in times]

    def _delete(self, key: Mapping[str, Any]) -> None:
        """Purge a transcript; without a subpath also the transcripts of its subagents."""
        project, name = _place(key)
        memory = self._project(project)
        with self._lock, memory.transaction():
            names = [name]
            if not key.get("subpath"):
                names += [session.id for session in memory.sessions.list() if session.id.startswith(f"{name}/")]
                if (record := _stored_summary(memory, name)) is not None:
                    memory.forget(record.id)
            for transcript in names:
                self._known.pop((project, transcript), None)
                if (session := existing_session(memory.sessions, transcript)) is not None:
                    session.end()

    def _list_subkeys(self, key: Mapping[str, Any]) -> list[str]:
        """The subpaths of a session's other transcripts."""
        above = key["session_id"] + "/"
        ids = [session.id for session in self._sessions(key["project_key"])]
        return [id.removeprefix(above) for id in ids if id.startswith(above)]

    def _sessions(self, project_key: str) -> list[SessionInfo]:
        return self._project(scope_segment(project_key)).sessions.list()

    def _project(self, segment: str) -> Memory:
        return self._scoped.scoped(f"/{segment}")

    append, load, delete = threaded(_append, _in_thread), threaded(_load, _in_thread), threaded(_delete, _in_thread)
    list_sessions, list_session_summaries = threaded(_list_sessions, _in_thread), threaded(_summaries, _in_thread)
    list_subkeys = threaded(_list_subkeys, _in_thread)


def _place(key: Mapping[str, Any]) -> tuple[str, str]:
    """The scope's segment and the session's name."""
    if not isinstance(key, Mapping) or not all(
        isinstance(key.get(part), str) for part in ("project_key", "session_id")
    ):
        raise InvalidInput(f"key is {shown(key)}: give {{'project_key': ..., 'session_id': ...}}")
    subpath = key.get("subpath")
    return scope_segment(key["project_key"]), key["session_id"] + (f"/{subpath}" if subpath else "")


def _stored_summary(memory: Memory, name: str) -> Record | None:
    return next(iter(memory.list(kinds=_KIND, where={"text": name}, limit=1)), None)


def _summary(metadata: Mapping[str, Any], mtime: int) -> dict[str, Any]:
    return {"session_id": metadata["session_id"], "mtime": mtime, "data": metadata["data"]}


def _message_of(entry: Any) -> dict[str, Any]:
    """An entry as a message of a session: beside it what a search finds."""
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"an entry is {shown(entry)}: give a dict")
    content = entry.get("message")
    message: dict[str, Any] = {"entry": entry}
    if isinstance(content, Mapping) and (text := plain_text(content.get("content"))):
        message |= {"role": content.get("role"), "content": text}
    return message


def _unknown(entries: list[Any], uuids: set[str]) -> Iterator[Any]:
    """The entries with a uuid that is neither known nor used by another entry here."""
    seen = set(uuids)
    for entry in entries:
        name = entry.get("uuid") if isinstance(entry, Mapping) else None
        if name is None or name not in seen:
            yield entry
        if name is not None:
            seen.add(name)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
