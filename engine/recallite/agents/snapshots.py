"""Snapshots of sessions: messages, decisions and costs, kept after the session itself is removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from msgspec import Struct

from recallite.agents.service_base import Service
from recallite.agents.session_messages import read_messages
from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.settings import WritePolicy
from recallite.remember.fields import uuid7
from recallite.store.transaction import Writer
from recallite.store.values import SnapshotRow, stored_json
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
            session, texts = read_messages(writer, scope, session_id)
            columns["started_at"] = columns["started_at"] or session.created_at
        row = SnapshotRow(
            public_id=uuid7(), scope=scope, session=session_id, messages=f"[{','.join(texts)}]", **columns
        )
        writer.sessions.put_snapshot(row)
        return self._snapshot(row)

    def _snapshot(self, row: SnapshotRow) -> Snapshot:
        name = f"snapshot {row.public_id}"
        return self._to_public(
            Snapshot,
            row,
            id=row.public_id,
            session_id=row.session,
            messages=tuple(stored_json(row.messages, name, list[dict[str, Any]])),
            key_decisions=tuple(stored_json(row.key_decisions, name, list[str])),
            task_ids=tuple(stored_json(row.task_ids, name, list[str])),
        )


def snapshot_columns(policy: WritePolicy, fields: SnapshotFields) -> dict[str, Any]:
    """Return the results of a session, checked and redacted as `policy` says, as they are stored."""
    if unknown := fields.keys() - SnapshotFields.__annotations__.keys():
        raise TypeError(f"a snapshot has no field {min(unknown)!r}: use {', '.join(SnapshotFields.__annotations__)}")
    summary = fields.get("summary", "")
    if not isinstance(summary, str):
        raise InvalidInput(f"summary is {shown(summary)}: give a str")
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
