"""Memories as a model sees them, with what they said before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from recallite.doors.tools.action import Call
from recallite.model.authority import said_by
from recallite.model.records import Former, Hit, Record, SourceRef
from recallite.text.quotes import NOTICE

if TYPE_CHECKING:
    from recallite.memory import Memory


class Was(Struct, frozen=True, kw_only=True):
    """A memory that another superseded, and until when it held."""

    id: str
    text: str
    until: datetime | None

    @classmethod
    def of(cls, former: Former | Record) -> Was:
        """A superseded memory as a model sees it."""
        return cls(id=former.id, text=former.text, until=former.held_until)


class FoundMemory(Struct, frozen=True, kw_only=True):
    """A memory. `was` is what it took the place of; `until` and `superseded_by` say that it no longer holds.

    `score` orders the results of one question, `confidence` is the chance that it answers it; a list has neither.
    `said_by` is the user, or another with its source, as "web:evil.example".
    """

    id: str
    text: str
    kind: str
    scope: str
    created_at: datetime
    tags: list[str]
    importance: float
    source: str | None = None
    said_by: str = "user"
    score: float | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    match_reasons: list[str] | UnsetType = UNSET
    evidence_gaps: list[str] | UnsetType = UNSET
    was: list[Was] | UnsetType = UNSET
    until: datetime | UnsetType = UNSET
    superseded_by: list[str] | UnsetType = UNSET

    @classmethod
    def of(cls, call: Call, memory: Hit | Record, formers: Sequence[Was] = ()) -> FoundMemory:
        """A hit, or a memory of a list with what it took the place of."""
        hit: dict[str, Any] = {}
        if isinstance(memory, Hit):
            hit = {
                "score": memory.score, "confidence": memory.confidence, "match_reasons": list(memory.match_reasons),
                "evidence_gaps": list(memory.evidence_gaps),
            }  # fmt: skip
            formers = [Was.of(item) for item in memory.supersedes]
        source = memory.source.id if isinstance(memory.source, SourceRef) else memory.source
        return cls(
            id=memory.id, text=memory.text, kind=memory.kind, scope=call.scope_of(memory.scope),
            created_at=memory.created_at, tags=list(memory.tags), importance=memory.importance,
            source=source, said_by=said_by(memory.authority, source),
            was=list(formers) or UNSET, until=memory.held_until or UNSET,
            superseded_by=list(memory.superseded_by) or UNSET, **hit,
        )  # fmt: skip


class FoundMemories(Struct, frozen=True, kw_only=True):
    """Memories, best or newest first; `left_out` counts those that did not fit into the budget of tokens.

    `evidence_gaps` say what the memory seems not to know; `sub_queries` are what was asked besides.
    """

    results: list[FoundMemory]
    left_out: int = 0
    evidence_gaps: list[str] = []
    sub_queries: list[str] = []
    notice: str = NOTICE


class Contradicted(Struct, frozen=True, kw_only=True):
    """A memory that may contradict the one just written."""

    id: str
    text: str
    said_by: str
    reason: str


class Written(Struct, frozen=True, kw_only=True):
    """The outcome of a write; `merged_into` is the memory that was there, `occurrences` how often it has been written.

    `was` are the memories that it superseded.
    """

    outcome: str
    id: str
    scope: str
    merged_into: str | None = None
    occurrences: int | UnsetType = UNSET
    was: list[Was] | UnsetType = UNSET
    notice: str = NOTICE
    contradictions: list[Contradicted] = []

    @classmethod
    def of(cls, call: Call, record: Record) -> Written:
        """The outcome of a write."""
        return cls(
            outcome=record.outcome,
            id=record.id,
            scope=call.scope_of(record.scope),
            merged_into=None if record.outcome in ("created", "skipped") else record.id,
            occurrences=record.occurrences if record.occurrences > 1 else UNSET,
            was=[*former_texts(call.memory, record.supersedes).values()] or UNSET,
            contradictions=[
                Contradicted(id=item.id, text=item.text, said_by=item.authority, reason=item.reason)
                for item in record.contradictions
            ],
        )


class Removed(Struct, frozen=True, kw_only=True):
    """The outcome of a removal; `holds_again` is what the memory had superseded."""

    outcome: str
    id: str
    holds_again: list[Was] | UnsetType = UNSET
    notice: str | UnsetType = UNSET


class Version(Struct, frozen=True, kw_only=True):
    """A text of a history, and from when until when it held; `until` is null for what holds now."""

    text: str
    since: datetime
    until: datetime | None
    id: str


def remove(call: Call, record: Record, outcome: str) -> Removed:
    """Forget a memory, and tell what holds again."""
    call.memory.forget(record.id)
    again = former_texts(call.memory, record.supersedes, include_superseded=False)
    return Removed(
        outcome=outcome, id=record.id, holds_again=[*again.values()] or UNSET, notice=NOTICE if again else UNSET
    )


def listed(call: Call, records: Iterable[Record]) -> list[FoundMemory]:
    """Memories of a list, with what they superseded."""
    records = list(records)
    formers: Mapping[str, Was] = former_texts(call.memory, [id for record in records for id in record.supersedes])
    return [
        FoundMemory.of(call, record, [formers[id] for id in record.supersedes if id in formers]) for record in records
    ]


def former_texts(memory: Memory, ids: Iterable[str], *, include_superseded: bool = True) -> dict[str, Was]:
    """Memories that were superseded, by id; without `include_superseded` those that hold again."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    records = memory.list(where={"id": {"in": wanted}}, include_superseded=include_superseded, limit=None)
    return {record.id: Was.of(record) for record in records}
