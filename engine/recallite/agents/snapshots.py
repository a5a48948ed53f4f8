"""Snapshots of sessions: messages, decisions and costs, kept after the session itself is removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from recallite.agents.service_base import Service
from recallite.agents.session_messages import read_messages
from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.policies import WritePolicy
from recallite.remember.uuid7 import uuid7
from recallite.store.protocol import Writer
from recallite.store.rows import stored_json
from recallite.store.values import SnapshotRow
from recallite.system.messages import shown


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


class SnapshotService(Service):
    """The base of the services that keep snapshots."""

    def _keep(
        self, writer: Writer, scope: str, session_id: str | None, texts: list[str] | None, details: dict[str, Any]
    ) -> Snapshot:
        """Store a snapshot in this transaction: of these messages as JSON, or of those of a stored session.

        `details` come from `checked_details`.
        """
        if texts is None:
            assert session_id is not None
            found, texts = read_messages(writer, scope, session_id)
            details["started_at"] = details["started_at"] or found.created_at
        row = SnapshotRow(
            public_id=uuid7(), scope=scope, session=session_id, messages=f"[{','.join(texts)}]", **details
        )
        writer.sessions.put_snapshot(row)
        return self._snapshot(row)

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
        raise InvalidInput(f"summary is {shown(summary)}: give a str")
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
        raise InvalidInput(f"{name} is {shown(values)}: give a list of str")
    return checks.check_json(list(values), name, checks.MAX_METADATA_BYTES)
