"""Functions of operations that are no method of `Memory` or of a service of it: their arguments are a request's."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from recallite.agents.sessions import Session
from recallite.documents.document import IngestedDocument
from recallite.errors import DocumentError, InvalidInput
from recallite.memory import Memory
from recallite.model.filters import FilterFields, bound_filter
from recallite.model.records import (
    Changes,
    Direction,
    Link,
    NewRecord,
    OnExisting,
    Plain,
    Reached,
    Record,
    RecordFields,
)
from recallite.model.reports import Forgotten, Imported
from recallite.model.settings import WritePolicy
from recallite.system.messages import shown

MEDIA_TYPES = {"jsonl": "application/jsonl", "csv": "text/csv", "text": "text/plain; charset=utf-8"}
"""The formats of exports and imports over HTTP."""


class OpenedSession(Plain, frozen=True, kw_only=True):
    """A session that was opened."""

    id: str
    agent: str | None = None
    provider: str | None = None
    created_at: datetime

    @classmethod
    def of(cls, session: Session) -> OpenedSession:
        """A session as JSON has it."""
        return cls(id=session.id, agent=session.agent, provider=session.provider, created_at=session.created_at)


class BootstrapText(Plain, frozen=True, kw_only=True):
    """The text of a `Bootstrap` and its tokens; `left_out` counts the entries over the budget.

    `replaced` counts the memories that it passed over because others have surely replaced them.
    """

    text: str
    tokens: int
    left_out: int = 0
    replaced: int = 0


class NewRecordFields(RecordFields, total=False):
    """The fields of a `NewRecord` but its text."""

    scope: str
    kind: str
    id: str | None
    indexed: bool


def remember(
    memory: Memory,
    text: str,
    *,
    on_existing: OnExisting = "error",
    policy: WritePolicy | None = None,
    **fields: Unpack[NewRecordFields],
) -> Record:
    """Store one memory, from the fields of a `NewRecord`: see `Memory.remember`."""
    return memory.remember(NewRecord(text, **fields), on_existing=on_existing, policy=policy)


def remember_many(
    memory: Memory,
    items: Sequence[str | dict[str, Any]],
    *,
    policy: WritePolicy | None = None,
    on_existing: OnExisting = "error",
) -> list[str]:
    """Store memories, each a text or the fields of a `NewRecord`, all or none; returns their ids."""
    batch_size = max(1, len(items))  # in one transaction, before which they are embedded
    return memory.remember_many(items, batch_size=batch_size, policy=policy, on_existing=on_existing)


def get(memory: Memory, id: str) -> Record:
    """The memory with this id."""
    return memory.get(id)


def get_many(memory: Memory, ids: Sequence[str]) -> list[Record]:
    """The memories with these ids, in their order; those that are not visible here are absent."""
    return [*memory.get(ids).values()]


def update(memory: Memory, id: str, /, **changes: Unpack[Changes]) -> Record:
    """Change fields of a memory; a new text or context closes the old version. See `Memory.update`."""
    return memory.update(id, **changes)


def touch(memory: Memory, ids: Sequence[str], *, expires_at: datetime | str | None = None, never: bool = False) -> int:
    """Let memories expire at another time, never, or (with neither) as long after now as each lives."""
    if never and expires_at is not None:
        raise InvalidInput("never and expires_at are given: leave one out")
    return memory.update(ids, expires_at=expires_at) if never or expires_at else memory.update(ids, renew=True)


def neighbors(
    memory: Memory, id: str, *, types: Sequence[str] = (), direction: Direction = "both", limit: int | None = 100
) -> list[Link]:
    """The links of a memory, strongest first."""
    return memory.neighbors(id, types=types, direction=direction, limit=limit)


def traverse(
    memory: Memory,
    id: str,
    *,
    depth: int = 2,
    types: Sequence[str] = (),
    direction: Direction = "both",
    limit: int | None = 100,
) -> list[Reached]:
    """The memories within `depth` links of one, nearest first, then strongest."""
    return memory.neighbors(id, types=types, direction=direction, depth=depth, limit=limit)


def forget_one(memory: Memory, id: str, *, chain: bool = False) -> Forgotten:
    """Purge a memory, with its versions, vectors and words; with `chain` also what it superseded."""
    return memory.forget(id, chain=chain)


def bootstrap(
    memory: Memory, agent: str | None, task: str, budget_tokens: int = 2_000, *, task_type: str | None = None
) -> BootstrapText:
    """The context that an agent needs for a task, as Markdown of at most `budget_tokens` tokens."""
    briefing = memory.bootstrap(agent, task, budget_tokens, task_type=task_type)
    return BootstrapText(
        text=briefing.text, tokens=briefing.tokens, left_out=briefing.left_out, replaced=briefing.replaced
    )


def open_session(
    memory: Memory, id: str | None = None, *, agent: str | None = None, provider: str | None = None
) -> OpenedSession:
    """Open the session with this id, or create it; without an id it gets a UUID."""
    return OpenedSession.of(memory.sessions.open(id, agent=agent, provider=provider))


def get_session(memory: Memory, id: str, *, agent: str | None = None) -> OpenedSession:
    """The existing session with this id."""
    return OpenedSession.of(memory.sessions.get(id, agent=agent))


def ingest(
    memory: Memory,
    *,
    name: str,
    title: str | None = None,
    scope: str = "/",
    metadata: Mapping[str, Any] | None = None,
    body: bytes = b"",
) -> IngestedDocument:
    """Ingest a document that was sent. Its name is its source: a name, no path, and no file is read.

    Raises InvalidInput for a path, and DocumentError for what cannot be read.
    """
    if not name or name in (".", "..") or any(character in name for character in "/\\\0"):
        raise InvalidInput(f"name is {shown(name)}: give the name of a file, such as report.pdf, and no path")
    if not body:
        raise DocumentError("the body is empty: send the bytes of the document")
    return memory.knowledge.ingest(body, name=name, title=title, scope=scope, metadata=metadata).documents[0]


def import_(memory: Memory, *, format: str = "jsonl", scope: str = "/", body: bytes = b"") -> Imported:
    """Import what was sent, all of it or nothing. Raises InvalidItem, which names the line."""
    text = io.TextIOWrapper(io.BytesIO(body), "utf-8")
    return memory.transfer.import_(text, format=format, scope=scope, whole=True)


def check_export(memory: Memory, format: str = "jsonl", vectors: bool = False, **fields: Unpack[FilterFields]) -> None:
    """Raise InvalidInput for a format or filter that no export takes, before its answer begins."""
    if format not in MEDIA_TYPES:
        raise InvalidInput(f"format is {shown(format)}: use {', '.join(MEDIA_TYPES)}")
    memory.count(**fields)
    if bound_filter("/", None, fields).sessions:
        raise InvalidInput("messages of sessions are in no export: leave sessions out, or use store.backup or copy")
