"""Snapshots of sessions: messages, decisions and costs, kept after the session itself is removed."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from recollect import checks
from recollect.errors import InvalidInput
from recollect.policies import WritePolicy
from recollect.remember.prepare import uuid7
from recollect.store.protocol import Writer
from recollect.store.rows import stored_json
from recollect.store.values import SnapshotRow
from recollect.tiers.messages import check_message, read_messages
from recollect.tiers.service import Service

__all__ = ["Snapshot", "Snapshots", "checked_details"]


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


class Snapshots(Service):
    """Takes and lists snapshots for `memory.episodes` and for sessions that end."""

    def take(
        self, session_id: str | None, messages: Sequence[Mapping[str, Any]] | None, *, agent: str | None, **what: Any
    ) -> Snapshot:
        """Store a snapshot of these messages, or of those of a stored session."""
        if session_id is not None:
            session_id = checks.check_name(session_id, "session_id")
        if messages is None and session_id is None:
            raise InvalidInput("snapshot needs the messages, or the id of a session that is stored")
        if messages is not None and (isinstance(messages, str | Mapping) or not isinstance(messages, Sequence)):
            raise InvalidInput(f"messages is {checks.shown(messages)}: give a list of messages")
        scope = self._scope(agent)
        policy = self._engine.settings.write_policy
        details = checked_details(policy, **what)
        given = None if messages is None else [check_message(message, policy).text for message in messages]
        with self._engine.atomic() as writer:
            return self.put(writer, scope, session_id, given, details)

    def put(
        self,
        writer: Writer,
        scope: str,
        session_id: str | None,
        texts: list[str] | None,
        details: dict[str, Any],
    ) -> Snapshot:
        """Store a snapshot in this transaction; `details` come from `checked_details`."""
        if texts is None:
            assert session_id is not None
            found, texts = read_messages(writer, scope, session_id)
            details["started_at"] = details["started_at"] or found.created_at
        row = SnapshotRow(
            public_id=uuid7(), scope=scope, session=session_id, messages=f"[{','.join(texts)}]", **details
        )
        writer.sessions.put_snapshot(row)
        return self._snapshot(row)

    def list(self, limit: int, *, agent: str | None = None) -> builtins.list[Snapshot]:
        """Snapshots, the one that ended last first."""
        scope = self._scope(agent)
        most = checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            return [self._snapshot(row) for row in reader.sessions.snapshots(scope, most)]

    def _snapshot(self, row: SnapshotRow) -> Snapshot:
        called = f"snapshot {row.public_id}"
        return self._shown(
            Snapshot,
            row,
            id=row.public_id,
            session_id=row.session,
            messages=tuple(stored_json(row.messages, called, list[dict[str, Any]])),
            key_decisions=tuple(stored_json(row.key_decisions, called, list[str])),
            task_ids=tuple(stored_json(row.task_ids, called, list[str])),
        )


def checked_details(
    policy: WritePolicy,
    *,
    summary: str = "",
    key_decisions: Sequence[str] = (),
    task_ids: Sequence[str] = (),
    started_at: object = None,
    ended_at: object = None,
    total_cost: float = 0.0,
    total_tokens: int = 0,
) -> dict[str, Any]:
    """The fields of a snapshot besides its messages, checked, redacted as `policy` says, and as they are stored."""
    if not isinstance(summary, str):
        raise InvalidInput(f"summary is {checks.shown(summary)}: give a str")
    ended = checks.check_time(ended_at, "ended_at")
    return {
        "summary": policy.clean(checks.encodable(checks.plain_str(summary), "summary")),
        "key_decisions": _texts(policy.clean_json(key_decisions), "key_decisions"),
        "task_ids": _texts(task_ids, "task_ids"),
        "started_at": checks.check_time(started_at, "started_at"),
        "ended_at": checks.now_us() if ended is None else ended,
        "total_cost": checks.check_finite(total_cost, "total_cost", minimum=0.0),
        "total_tokens": checks.check_count(total_tokens, "total_tokens", minimum=0),
    }


def _texts(values: object, name: str) -> str:
    """A list of str as JSON."""
    if isinstance(values, str) or not isinstance(values, Sequence) or not all(isinstance(each, str) for each in values):
        raise InvalidInput(f"{name} is {checks.shown(values)}: give a list of str")
    return checks.check_json(list(values), name, checks.MAX_METADATA_BYTES)
