"""Episodic memory: a log of what an agent did and saw, and snapshots of its sessions."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, ClassVar, Unpack

from recallite.agents.consolidator import Consolidator
from recallite.agents.session_messages import check_messages
from recallite.agents.snapshots import Snapshot, SnapshotFields, SnapshotService, snapshot_columns
from recallite.agents.tier import AsyncTier, Check, RecordTier, check_amount, optional
from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.records import Record, RecordFields
from recallite.model.settings import WritePolicy
from recallite.system.asynchrony import awaited
from recallite.system.messages import shown

EVENT_TYPES = (
    "task-started", "task-completed", "task-failed", "decision-made", "error-encountered", "user-feedback",
    "tool-call", "observation", "chat-turn",
)  # fmt: skip


class Episodes(RecordTier, SnapshotService):
    """Records of kind "episode"; event type, task, cost and duration are in their metadata."""

    _kind = "episode"
    _checks: ClassVar[Mapping[str, Check]] = {
        "event_type": lambda value, name: checks.check_choice(value, name, EVENT_TYPES),
        "task_id": optional(checks.check_name),
        "cost": optional(check_amount),
        "duration_ms": optional(check_amount),
    }

    def log(
        self,
        content: str,
        *,
        event_type: str = "observation",
        task_id: str | None = None,
        cost: float | None = None,
        duration_ms: float | None = None,
        agent: str | None = None,
        **fields: Unpack[RecordFields],
    ) -> Record:
        """Store an episode. `cost` is in a unit of your choice; `pinned` exempts the episode from consolidation.

        It is linked to similar episodes if `Settings.write` says so, and never merged or treated as a duplicate.
        If `Settings.consolidation` is set, every `threshold`-th new episode runs a cycle before this returns, or in the
        background if it asks the language model; if the store is locked, the next episode runs it.
        """
        values = {"event_type": event_type, "task_id": task_id, "cost": cost, "duration_ms": duration_ms}
        write = self._engine.settings.write_policy
        # Only the links of the write policy: the same text twice is two events.
        policy = WritePolicy(link_cosine=write.link_cosine, most_links=write.most_links)
        record = self._remember(agent, content, values, fields, policy)
        Consolidator(self._handle)._run_if_due(self._scope(agent))
        return record

    def list(
        self,
        *,
        agent: str | None = None,
        task_id: str | None = None,
        event_type: str | None = None,
        on: date | str | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        order: str = "oldest",
        limit: int | None = 100,
    ) -> builtins.list[Record]:
        """Return episodes by task, type and time, in order ("oldest", "newest", "importance").

        `on` is a day of UTC, as a date or "2026-03-01"; `since` and `until` bound `valid_from`, else `created_at`.
        """
        checks.check_choice(order, "order", ("oldest", "newest", "importance"))
        values = {"task_id": task_id, "event_type": event_type}
        where: dict[str, Any] = {
            f"metadata.{name}": self._checks[name](value, name) for name, value in values.items() if value is not None
        }
        if on is not None:
            if since is not None or until is not None:
                raise InvalidInput("episodes are listed by on, or by since and until, not both")
            since, until = _day(on)
        return self._list(agent, limit=limit, order=order, where=where, since=since, until=until)

    def snapshot(
        self,
        session_id: str | None = None,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        agent: str | None = None,
        **fields: Unpack[SnapshotFields],
    ) -> Snapshot:
        """Store the messages of a session, or of the stored session of this id, and its results."""
        if session_id is not None:
            session_id = checks.check_name(session_id, "session_id")
        elif messages is None:
            raise InvalidInput("snapshot needs the messages, or the id of a session that is stored")
        policy = self._engine.settings.write_policy
        columns = snapshot_columns(policy, fields)
        texts = None if messages is None else [checked.text for checked in check_messages(messages, policy)]
        scope = self._scope(agent)
        with self._engine.atomic() as writer:
            return self._take_snapshot(writer, scope, session_id, texts, columns)

    def last_snapshot(self, agent: str | None = None) -> Snapshot | None:
        """Return the snapshot that ended last; None if there is none."""
        return next(iter(self.snapshots(1, agent=agent)), None)

    def snapshots(self, limit: int = 10, *, agent: str | None = None) -> builtins.list[Snapshot]:
        """Return snapshots, the one that ended last first."""
        scope = self._scope(agent)
        most = checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            return [self._snapshot(row) for row in reader.sessions.snapshots(scope, most)]


class AsyncEpisodes(AsyncTier[Episodes]):
    """`Episodes`, awaited."""

    log = awaited(Episodes.log)
    list = awaited(Episodes.list)
    snapshot = awaited(Episodes.snapshot)
    last_snapshot = awaited(Episodes.last_snapshot)
    snapshots = awaited(Episodes.snapshots)


def _day(on: date | str) -> tuple[str, str]:
    """Return the first and last microsecond of a day of UTC; a text is any time of that day."""
    if isinstance(on, str):
        on = checks.to_datetime(checks.check_time(on, "on") or 0).date()
    if not isinstance(on, date) or isinstance(on, datetime):
        raise InvalidInput(f"on is {shown(on)}: give a date, e.g. '2026-03-01'")
    start = datetime(on.year, on.month, on.day)
    end = start + timedelta(days=1, microseconds=-1)
    return f"{start.isoformat()}+00:00", f"{end.isoformat()}+00:00"
