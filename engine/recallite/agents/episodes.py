"""Episodic memory: a log of what an agent did and saw, and snapshots of its sessions."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from recallite.agents.consolidator import Consolidator
from recallite.agents.service_base import own_metadata
from recallite.agents.session_messages import check_messages
from recallite.agents.snapshots import Snapshot, SnapshotService, checked_details
from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.policies import WritePolicy
from recallite.model.records import Record
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.messages import shown

KIND = "episode"
EVENT_TYPES = (
    "task-started", "task-completed", "task-failed", "decision-made", "error-encountered", "user-feedback",
    "tool-call", "observation", "chat-turn",
)  # fmt: skip


class Episodes(SnapshotService):
    """Records of kind "episode"; event type, task, cost and duration are in their metadata."""

    def log(
        self,
        content: str,
        *,
        event_type: str = "observation",
        agent: str | None = None,
        task_id: str | None = None,
        cost: float | None = None,
        duration_ms: float | None = None,
        importance: float = 0.5,
        pinned: bool = False,
        tags: Sequence[str] = (),
        context: str | None = None,
        source: str | None = None,
        position: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | str | None = None,
        valid_from: datetime | str | None = None,
        vector: object = None,
    ) -> Record:
        """Store an episode. `cost` is in a unit of your choice; `pinned` exempts the episode from consolidation.

        It is linked to similar episodes where `Settings.write` says so, and never merged or treated as a duplicate.
        Where `Settings.consolidation` is set, every `threshold`-th new episode runs a cycle before this returns; where
        the store is locked, the next episode runs it.
        """
        kept = own_metadata(
            metadata,
            event_type=checks.check_choice(event_type, "event_type", EVENT_TYPES),
            task_id=None if task_id is None else checks.check_name(task_id, "task_id"),
            cost=None if cost is None else checks.check_finite(cost, "cost", minimum=0.0),
            duration_ms=None if duration_ms is None else checks.check_finite(duration_ms, "duration_ms", minimum=0.0),
        )
        record = self._remember(
            agent, self._policy(), kind=KIND, text=content, importance=importance, pinned=pinned,
            tags=checks.check_tags(tags), context=context, source=source, position=position, metadata=kept,
            created_at=created_at, valid_from=valid_from, vector=vector,
        )  # fmt: skip
        Consolidator(self._handle)._run_if_due(self._scope(agent))
        return record

    def _policy(self) -> WritePolicy:
        """Only the links of the write policy: the same text twice is two events."""
        chosen = self._engine.settings.write_policy
        return WritePolicy(link_cosine=chosen.link_cosine, most_links=chosen.most_links)

    def recent(self, limit: int = 10, *, agent: str | None = None) -> builtins.list[Record]:
        """The newest episodes, the newest first."""
        return self._records(agent, KIND, limit=limit)

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
        """Episodes by task, type and time, in order ("oldest", "newest", "importance").

        `on` is a day of UTC, as a date or "2026-03-01"; `since` and `until` bound `valid_from`, else `created_at`.
        """
        checks.check_choice(order, "order", ("oldest", "newest", "importance"))
        where: dict[str, Any] = {}
        if task_id is not None:
            where["metadata.task_id"] = checks.check_name(task_id, "task_id")
        if event_type is not None:
            where["metadata.event_type"] = checks.check_choice(event_type, "event_type", EVENT_TYPES)
        if on is not None:
            if since is not None or until is not None:
                raise InvalidInput("episodes are listed by on, or by since and until, not both")
            since, until = _day(on)
        return self._records(agent, KIND, limit=limit, order=order, where=where, since=since, until=until)

    def get(self, id: str) -> Record:
        """The episode with this id; NotFound if there is none here."""
        return self._find(id, KIND)

    def snapshot(
        self,
        session_id: str | None = None,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        summary: str = "",
        key_decisions: Sequence[str] = (),
        task_ids: Sequence[str] = (),
        started_at: datetime | str | None = None,
        ended_at: datetime | str | None = None,
        total_cost: float = 0.0,
        total_tokens: int = 0,
        agent: str | None = None,
    ) -> Snapshot:
        """Keep what a session was: its messages, or those of the stored session of this id, and what came of it."""
        if session_id is not None:
            session_id = checks.check_name(session_id, "session_id")
        elif messages is None:
            raise InvalidInput("snapshot needs the messages, or the id of a session that is stored")
        policy = self._engine.settings.write_policy
        details = checked_details(
            policy, summary=summary, key_decisions=key_decisions, task_ids=task_ids, started_at=started_at,
            ended_at=ended_at, total_cost=total_cost, total_tokens=total_tokens,
        )  # fmt: skip
        texts = None if messages is None else [checked.text for checked in check_messages(messages, policy)]
        scope = self._scope(agent)
        with self._engine.atomic() as writer:
            return self._keep(writer, scope, session_id, texts, details)

    def last_snapshot(self, agent: str | None = None) -> Snapshot | None:
        """The snapshot that ended last; None when there is none."""
        return next(iter(self.snapshots(1, agent=agent)), None)

    def snapshots(self, limit: int = 10, *, agent: str | None = None) -> builtins.list[Snapshot]:
        """Snapshots, the one that ended last first."""
        scope = self._scope(agent)
        most = checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            return [self._snapshot(row) for row in reader.sessions.snapshots(scope, most)]


class AsyncEpisodes(AsyncService[Episodes]):
    """`Episodes`, awaited."""

    log = awaited(Episodes.log)
    recent = awaited(Episodes.recent)
    list = awaited(Episodes.list)
    get = awaited(Episodes.get)
    snapshot = awaited(Episodes.snapshot)
    last_snapshot = awaited(Episodes.last_snapshot)
    snapshots = awaited(Episodes.snapshots)


def _day(on: date | str) -> tuple[str, str]:
    """The first and last microsecond of a day of UTC."""
    if isinstance(on, str):
        try:
            on = date.fromisoformat(on)
        except ValueError:
            raise InvalidInput(f"on is {shown(on)}: give a date, e.g. '2026-03-01'") from None
    if not isinstance(on, date) or isinstance(on, datetime):
        raise InvalidInput(f"on is {shown(on)}: give a date, e.g. '2026-03-01'")
    start = datetime(on.year, on.month, on.day)
    end = start + timedelta(days=1, microseconds=-1)
    return f"{start.isoformat()}+00:00", f"{end.isoformat()}+00:00"
