"""Sessions: conversations that outlive the process, each message stored as it is appended.

A message is any JSON object, kept as it was given. A snapshot (messages, decisions and costs) is kept after its session
is removed.
"""

from __future__ import annotations

import builtins
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack

from msgspec import Struct, structs

from recallite.embedding.handle import Identity
from recallite.errors import EmbedderMismatch, InvalidInput, NotFound, StoreCorrupt
from recallite.model import checks
from recallite.model.filters import MESSAGE_KIND
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite.plugin import EngineHandle, Service
from recallite.remember.embed import embed_rows, identity_for, insert_rows
from recallite.remember.prepare import Arguments, prepare_all, uuid7
from recallite.remember.write import embed_some_pending
from recallite.store.columns import RowColumns
from recallite.store.sql.repository import stored_json
from recallite.store.sql.services import SessionRow, SnapshotRow
from recallite.store.transaction import Reader, Writer
from recallite.system.asynchrony import AsyncService, awaited, awaited_service, passed_on
from recallite.system.messages import shown

# Messages contain pictures and files as base64.
MAX_MESSAGE_BYTES = 32_000_000


class Checked(NamedTuple):
    """A message ready to be stored: its role, if it has one, its plain text, and the message as JSON."""

    role: str | None
    content: str
    text: str


def check_messages(messages: object, policy: WritePolicy) -> list[Checked]:
    """Check and redact several messages."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise InvalidInput(f"messages is {shown(messages)}: give a list of messages")
    checked = []
    for message in messages:
        if not isinstance(message, Mapping) or not message:
            what = "empty" if isinstance(message, Mapping) else f"{type(message).__name__} {shown(message)}"
            raise InvalidInput(f"the message is {what}: give a dict such as {{'role': 'user', 'content': 'Hello'}}")
        # Items of an agent's run, such as tool calls and their output, have a type and no role.
        role = None if message.get("role") is None else checks.check_name(message["role"], "the message's role")
        text = checks.check_json(dict(message), "message", MAX_MESSAGE_BYTES)
        if policy.redact is not None:
            message = policy.clean_json(json.loads(text))
            text = json.dumps(message, ensure_ascii=False)
        checked.append(Checked(role, plain_text(message.get("content")), text))
    return checked


def plain_text(content: object) -> str:
    """Return the plain text of a content: the str, or the texts of its parts, without tool calls and pictures."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return plain_text(content.get("text", content.get("content")))
    if isinstance(content, Sequence):
        return "\n".join(filter(None, map(plain_text, content)))
    return ""


def decoded(session: str, position: int, text: bytes) -> dict[str, Any]:
    """Return a stored message as it was given. Raises StoreCorrupt if it cannot be read."""
    try:
        message = json.loads(text.decode())
    except (ValueError, RecursionError) as fault:
        raise _damaged(session, position, f"it is not JSON ({fault})") from None
    if not isinstance(message, dict) or not isinstance(message.get("role"), str | None):
        raise _damaged(session, position, f"it is not a message: {shown(text)}")
    return message


def _damaged(session: str, position: int, fault: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"session {session!r}, message {position}: {fault}. It was changed by another program: mend the row in "
        "session_message, or read the rest with messages(skip_damaged=True)",
        "message",
    )


def no_session(session_id: str) -> NotFound:
    """Return the error for a session that is not there, or not for this agent."""
    return NotFound(
        f"no session {shown(session_id)} here: never opened, ended, or of another agent or scope, which list shows"
    )


# Snapshots of sessions.


class Snapshot(Struct, frozen=True, kw_only=True):
    """A session as it was, with its complete messages as they were given."""

    id: str
    agent: str | None = None
    scope: str = "/"
    session_id: str | None = None
    messages: tuple[dict[str, Any], ...] = ()
    summary: str = ""
    key_decisions: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime
    total_cost: float = 0.0
    total_tokens: int = 0


class SnapshotFields(TypedDict, total=False):
    """The results of a session; `ended_at` is now if it is not given."""

    summary: str
    key_decisions: Sequence[str]
    task_ids: Sequence[str]
    started_at: datetime | str | None
    ended_at: datetime | str | None
    total_cost: float
    total_tokens: int


class SnapshotService(Service):
    """The base of the services that keep snapshots."""

    def _take_snapshot(
        self, writer: Writer, scope: str, session_id: str | None, texts: list[str] | None, columns: dict[str, Any]
    ) -> Snapshot:
        """Store a snapshot in this transaction: of these messages as JSON, or of those of a stored session.

        `columns` come from `snapshot_columns`.
        """
        if texts is None:
            assert session_id is not None
            session = writer.sessions.find(scope, session_id)
            if session is None:
                raise no_session(session_id)
            texts = []
            for position, text in writer.sessions.messages(session.row_id):
                decoded(session_id, position, text)  # which refuses a damaged one
                texts.append(text.decode())
            columns["started_at"] = columns["started_at"] or session.created_at
        messages = f"[{','.join(texts)}]"
        row = SnapshotRow(public_id=uuid7(), scope=scope, session=session_id, messages=messages, **columns)
        writer.sessions.put_snapshot(row)
        return self._snapshot(row)

    def _snapshot(self, row: SnapshotRow) -> Snapshot:
        name = f"snapshot {row.public_id}"
        return self._to_public(
            Snapshot, row, id=row.public_id, session_id=row.session,
            messages=tuple(stored_json(row.messages, name, list[dict[str, Any]])),
            key_decisions=tuple(stored_json(row.key_decisions, name, list[str])),
            task_ids=tuple(stored_json(row.task_ids, name, list[str])),
        )  # fmt: skip


def snapshot_columns(policy: WritePolicy, fields: SnapshotFields) -> dict[str, Any]:
    """Return the results of a session, checked and redacted as `policy` says, as they are stored."""
    if unknown := fields.keys() - SnapshotFields.__annotations__.keys():
        raise TypeError(f"a snapshot has no field {min(unknown)!r}: use {', '.join(SnapshotFields.__annotations__)}")
    summary = checks.check_str(fields.get("summary", ""), "summary")
    return {
        "summary": policy.clean(checks.encodable(checks.plain_str(summary), "summary")),
        "key_decisions": _texts(policy.clean_json(fields.get("key_decisions", ())), "key_decisions"),
        "task_ids": _texts(fields.get("task_ids", ()), "task_ids"),
        "started_at": checks.check_time(fields.get("started_at"), "started_at"),
        "ended_at": checks.time_or(fields.get("ended_at"), "ended_at", checks.now_us()),
        "total_cost": checks.check_finite(fields.get("total_cost", 0.0), "total_cost", minimum=0.0),
        "total_tokens": checks.check_count(fields.get("total_tokens", 0), "total_tokens", minimum=0),
    }


def _texts(values: object, name: str) -> str:
    if isinstance(values, str) or not isinstance(values, Sequence) or not all(isinstance(text, str) for text in values):
        raise InvalidInput(f"{name} is {shown(values)}: give a list of str")
    return checks.check_json(list(values), name, checks.MAX_METADATA_BYTES)


# Sessions, and what a search in their messages finds.


class SessionInfo(Struct, frozen=True, kw_only=True):
    """A session as it is listed; `messages` is their number."""

    id: str
    agent: str | None = None
    scope: str = "/"
    provider: str | None = None
    messages: int = 0
    created_at: datetime
    updated_at: datetime


class MessageHit(Struct, frozen=True, kw_only=True):
    """A message that a search found; `score` and `confidence` are those of a `Hit`."""

    session: str
    agent: str | None = None
    scope: str = "/"
    position: int
    role: str | None = None
    content: str
    created_at: datetime
    score: float
    confidence: float


class Session(SnapshotService):
    """One conversation. Every call reads or writes the file, so that several processes may share it."""

    _use: ClassVar[Mapping[str, str]] = {
        "add": "append", "add_message": "append", "add_messages": "extend", "history": "messages",
        "get_messages": "messages", "close": "end", "delete": "end",
    }  # fmt: skip

    def __init__(self, handle: EngineHandle, opened: SessionRow) -> None:
        super().__init__(handle)
        self._opened = opened

    @property
    def id(self) -> str:
        """The session's id."""
        return self._opened.name

    @property
    def agent(self) -> str | None:
        """The agent whose session it is; None for the handle's own."""
        return self._agent_of(self._opened.scope)

    @property
    def provider(self) -> str | None:
        """The model provider, as last given to `open`."""
        return self._opened.provider

    @property
    def created_at(self) -> datetime:
        """The time at which it was first opened."""
        return checks.to_datetime(self._opened.created_at)

    def append(
        self, message: Mapping[str, Any] | str, content: object = None, *, created_at: datetime | str | None = None
    ) -> int:
        """Store a message at the end and return its position; when this returns, it survives power loss.

        A message is any JSON object, kept as it is: with a role and a content, which may be None or a list of parts, or
        another item of an agent's run, such as a tool call; or it is a role and a content: `append("user", "Hello")`.
        NotFound when the session has ended.
        """
        if isinstance(message, str):
            if content is None:
                raise InvalidInput(
                    f"append was given {shown(message)} alone: give a role and a content, as in append('user', 'Hello')"
                )
            message = {"role": message, "content": content}
        elif content is not None:
            raise InvalidInput("append takes a message, or a role and a content, not both")
        return self.extend([message], created_at=created_at)

    def extend(self, messages: Iterable[Mapping[str, Any]], *, created_at: datetime | str | None = None) -> int:
        """Store several messages at the end, all or none; returns the position of the first."""
        checked = check_messages(messages, self._engine.write_policy)
        now = checks.time_or(created_at, "created_at", checks.now_us())
        with_text = [i for i, message in enumerate(checked) if message.content.strip()]
        rows, identity = self._records([checked[i] for i in with_text], now)
        with self._engine.atomic([self._opened.scope]) as writer:
            session = self._row_id(writer)
            first = writer.sessions.next_position(session)
            rows.position[:] = [first + i for i in with_text]
            ids = dict(zip(with_text, insert_rows(writer, rows, identity), strict=True))
            stored = [(message.text, ids.get(i)) for i, message in enumerate(checked)]
            writer.sessions.append(session, first, stored, now)
        embed_some_pending(self._engine, rows.pending, rows.vectors)
        return first

    def _records(self, messages: Sequence[Checked], now: int) -> tuple[RowColumns, Identity | None]:
        """Return the records of messages with a text, by which they are found, embedded.

        A message is stored whatever the embedder does: where it fails, the record waits for its vector. A long text, as
        tools return, is found by all its words and by the meaning of its beginning; of one longer than a memory may be,
        only the beginning is searched.
        """
        engine, most = self._engine, self._engine.settings.max_text_chars
        new = [
            NewRecord(
                message.content[:most], kind=MESSAGE_KIND, context=message.role, source=self.id,
                created_at=checks.to_datetime(min(now, checks.now_us())),
            )
            for message in messages
        ]  # fmt: skip
        policy = structs.replace(engine.write_policy, redact=None)  # they are redacted already
        rows = prepare_all(Arguments(new), base=self._opened.scope, max_text_chars=most, policy=policy, messages=True)
        identity = None
        with suppress(EmbedderMismatch):
            identity = identity_for(engine, None)
        embed_rows(engine.embedder, rows, [None] * len(new), identity)
        return rows, identity

    def messages(self, *, limit: int | None = None, skip_damaged: bool = False) -> builtins.list[dict[str, Any]]:
        """Return the messages in order, as they were given; with `limit`, the last of them.

        StoreCorrupt names a message that another program has damaged; `skip_damaged` leaves such messages out, and
        the limit does not count them.
        """
        most = None if limit is None else checks.check_count(limit, "limit", minimum=0)
        read: builtins.list[dict[str, Any]] = []
        before = None
        with self._engine.store.read() as reader:
            row_id = self._row_id(reader)
            while most is None or len(read) < most:
                missing = None if most is None else most - len(read)
                rows = reader.sessions.messages(row_id, limit=missing, before=before)
                read = [*self._decoded(rows, skip_damaged=skip_damaged), *read]
                if missing is None or len(rows) < missing:
                    break
                before = rows[0][0]
        return read

    def pop(self, *, skip_damaged: bool = False) -> dict[str, Any] | None:
        """Remove the last message and return it, in one transaction; None if there is none.

        StoreCorrupt if another program has damaged it; with `skip_damaged` it is removed too, and the last intact
        one is returned.
        """
        with self._engine.atomic() as writer:
            row_id = self._row_id(writer)
            before = None
            while rows := writer.sessions.messages(row_id, limit=1, before=before):
                before = rows[0][0]
                if intact := self._decoded(rows, skip_damaged=skip_damaged):
                    writer.sessions.remove_from(row_id, before)
                    return intact[0]
            if before is not None:
                writer.sessions.remove_from(row_id, before)
        return None

    def clear(self) -> int:
        """Remove every message and return their number. The session stays open."""
        with self._engine.atomic() as writer:
            return writer.sessions.remove_from(self._row_id(writer), 0)

    def _decoded(self, rows: Sequence[tuple[int, bytes]], *, skip_damaged: bool) -> builtins.list[dict[str, Any]]:
        """Return stored messages as they were given, without damaged ones; or raise StoreCorrupt."""
        read = []
        for position, text in rows:
            try:
                read.append(decoded(self.id, position, text))
            except StoreCorrupt:
                if not skip_damaged:
                    raise
        return read

    def end(self, *, snapshot: bool = False, **fields: Unpack[SnapshotFields]) -> Snapshot | None:
        """Remove the session and, with `snapshot`, keep a snapshot of it, in one transaction.

        Returns the snapshot; None without one, and for a session that has ended already.
        """
        columns = snapshot_columns(self._engine.write_policy, fields)
        with self._engine.atomic() as writer:
            row_id = writer.sessions.find_id(self._opened.scope, self.id)
            if row_id is None:
                return None
            taken = self._take_snapshot(writer, self._opened.scope, self.id, None, columns) if snapshot else None
            writer.sessions.delete([row_id])
        return taken

    def _row_id(self, reader: Reader) -> int:
        row_id = reader.sessions.find_id(self._opened.scope, self.id)
        if row_id is None:
            raise no_session(self.id)
        return row_id


class AsyncSession(AsyncService[Session]):
    """`Session`, awaited."""

    append = awaited(Session.append)
    extend = awaited(Session.extend)
    messages = awaited(Session.messages)
    pop = awaited(Session.pop)
    clear = awaited(Session.clear)
    end = awaited(Session.end)

    id: str = passed_on("id")
    """The session's id."""
    agent: str | None = passed_on("agent")
    """The agent whose session it is; None for the handle's own."""
    provider: str | None = passed_on("provider")
    """The model provider, as last given to `open`."""
    created_at: datetime = passed_on("created_at")
    """The time at which it was first opened."""


class Sessions(Service):
    """Conversations by id. Ids belong to an agent: no agent can open, or learn of, a session of another."""

    _use: ClassVar[Mapping[str, str]] = {
        "create": "open", "new": "open", "start": "open", "add": "open", "delete": "get(id).end", "end": "get(id).end",
        "append": "open(id).append",
    }  # fmt: skip

    def open(self, id: str | None = None, *, agent: str | None = None, provider: str | None = None) -> Session:
        """Open the session with this id, or create it; without an id it gets a UUID."""
        name = str(uuid.uuid4()) if id is None else checks.check_name(id, "id")
        if provider is not None:
            provider = checks.check_name(provider, "provider")
        scope = self._scope(agent)
        with self._engine.store.read() as reader:
            row = reader.sessions.find(scope, name)
        if row is None or (provider is not None and provider != row.provider):
            with self._engine.atomic([scope]) as writer:
                row = writer.sessions.find(scope, name)
                if row is None:
                    writer.sessions.create(scope, name, provider, checks.now_us())
                elif provider is not None:
                    writer.sessions.set_provider(row.row_id, provider)
                row = writer.sessions.find(scope, name)
        assert row is not None
        return Session(self._handle, row)

    def get(self, id: str, *, agent: str | None = None) -> Session:
        """Return the existing session with this id; NotFound if there is none here."""
        with self._engine.store.read() as reader:
            row = reader.sessions.find(self._scope(agent), checks.check_name(id, "id"))
        if row is None:
            raise no_session(id)
        return Session(self._handle, row)

    def list(self, *, agent: str | None = None, limit: int | None = None) -> builtins.list[SessionInfo]:
        """Return sessions, the last used first; without an agent, those of all agents."""
        most = None if limit is None else checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            rows = reader.sessions.in_scope(self._scope(agent), limit=most)
        return [self._to_public(SessionInfo, row, id=row.name) for row in rows]

    def search(
        self, query: str, *, agent: str | None = None, limit: int = 10, relevant: bool = False
    ) -> builtins.list[MessageHit]:
        """Return messages that answer `query`, by meaning and words, best first, as `recall` finds memories.

        The limit is filled; with `relevant` what does not answer is left out. `recall(sessions=True)` finds memories
        and messages together.
        """
        hits = self._recall(agent, MESSAGE_KIND, query, limit, {"relevant": relevant, "scope": "/"})
        return [
            MessageHit(
                session=hit.source.id, agent=self._agent_of(checks.join_scopes(self._base, hit.scope) or "/"),
                scope=hit.scope, position=hit.source.position, role=hit.context, content=hit.text,
                created_at=hit.created_at, score=hit.score, confidence=hit.confidence,
            )
            for hit in hits
            if hit.source is not None and hit.source.position is not None
        ]  # fmt: skip

    def cleanup(self, older_than: timedelta, *, agent: str | None = None) -> int:
        """Remove the sessions not used for longer than this and return their number."""
        if not isinstance(older_than, timedelta) or older_than < timedelta(0):
            raise InvalidInput(f"older_than is {shown(older_than)}: give a timedelta, e.g. timedelta(days=30)")
        before = max(checks.now_us() - older_than // timedelta(microseconds=1), checks.EARLIEST_US)
        with self._engine.atomic() as writer:
            old = writer.sessions.unused_since(self._scope(agent), before)
            writer.sessions.delete(old)
        return len(old)


class AsyncSessions(AsyncService[Sessions]):
    """`Sessions`, awaited."""

    open = awaited_service(Sessions.open, AsyncSession)
    get = awaited_service(Sessions.get, AsyncSession)
    list = awaited(Sessions.list)
    search = awaited(Sessions.search)
    cleanup = awaited(Sessions.cleanup)
