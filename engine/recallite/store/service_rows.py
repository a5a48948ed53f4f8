"""Rows of the services: sessions, their snapshots and messages, consolidation, patterns of tools and recoveries."""

from __future__ import annotations

from typing import NamedTuple

from recallite.store.rows import Moment


class SessionRow(NamedTuple):
    """A session as it is listed; times in microseconds."""

    row_id: int
    name: str
    scope: str
    provider: str | None
    messages: int
    created_at: Moment
    updated_at: Moment


class FoundMessage(NamedTuple):
    """A message that a search found; a higher score is better."""

    session: str
    scope: str
    position: int
    role: str | None
    content: str
    created_at: Moment
    score: float


class SnapshotRow(NamedTuple):
    """A snapshot as it is stored: lists are JSON."""

    public_id: str
    scope: str
    session: str | None
    messages: str
    summary: str
    key_decisions: str
    task_ids: str
    started_at: Moment | None
    ended_at: Moment
    total_cost: float
    total_tokens: int


class CycleRow(NamedTuple):
    """The work of one cycle; time in microseconds."""

    row_id: int
    scope: str
    trigger_id: int
    replayed_id: int
    created_at: Moment
    compressed: int
    pruned: int
    replayed: int
    promoted: int
    error: str | None


class ToolPattern(NamedTuple):
    """The record of one tool list for one type of task; an average is None if no run told its figure."""

    task_type: str
    pattern: str
    total_count: int
    success_count: int
    avg_steps: float | None
    avg_tokens: float | None


class Recovery(NamedTuple):
    """The recovery that helped against an error of a tool."""

    tool: str
    error_pattern: str
    error: str
    recovery: str
    total_count: int
