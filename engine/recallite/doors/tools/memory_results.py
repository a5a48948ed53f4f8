"""What the tool memory answers: memories as a model sees them, with what they said before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from recallite.doors.tools.action import Call, Shown
from recallite.model.records import Former, Hit, Record, SourceRef
from recallite.text.quoting import NOTICE

if TYPE_CHECKING:
    from recallite.memory import Memory


class Was(Struct, frozen=True, kw_only=True):
    """What a memory took the place of, and until when that held."""

    id: str
    content: str
    until: datetime | None

    @classmethod
    def of(cls, former: Former) -> Was:
        """A superseded memory as a model sees it."""
        return cls(id=former.id, content=former.text, until=former.held_until)


class Contradicted(Struct, frozen=True, kw_only=True):
    """A memory that may contradict the one just written."""

    id: str
    content: str
    reason: str


class Written(Struct, frozen=True, kw_only=True):
    """The outcome of a write; `merged_into` is the memory that was there, `said` how often it has been written.

    `was` are the memories that it superseded.
    """

    outcome: str
    id: str
    scope: str
    merged_into: str | None = None
    said: int | UnsetType = UNSET
    was: list[Was] | UnsetType = UNSET
    notice: str = NOTICE
    contradictions: list[Contradicted] = []


class Removed(Struct, frozen=True, kw_only=True):
    """The outcome of a removal; `holds_again` is what the memory had superseded."""

    outcome: str
    id: str
    holds_again: list[Was] | UnsetType = UNSET
    notice: str | UnsetType = UNSET


class FoundMemory(Shown, frozen=True, kw_only=True):
    """A hit of search."""

    content: str
    score: float
    confidence: float
    created_at: datetime
    tags: list[str]
    id: str
    scope: str
    source: str | None
    was: list[Was] | UnsetType
    until: datetime | UnsetType
    superseded_by: list[str] | UnsetType


class RecalledMemory(Shown, frozen=True, kw_only=True):
    """A hit of recall."""

    content: str
    scope: str
    importance: float
    score: float
    confidence: float
    match_reasons: list[str]
    evidence_gaps: list[str]
    created_at: datetime
    id: str
    source: str | None
    tags: list[str]
    was: list[Was] | UnsetType
    until: datetime | UnsetType
    superseded_by: list[str] | UnsetType


class Recalled(Struct, frozen=True, kw_only=True):
    """The hits of recall, with evidence gaps and sub-queries."""

    results: list[RecalledMemory]
    evidence_gaps: list[str] = []
    sub_queries: list[str] = []
    notice: str = NOTICE


class ListedMemory(Shown, frozen=True, kw_only=True):
    """A memory of a list."""

    content: str
    created_at: datetime
    tags: list[str]
    importance: float
    id: str
    scope: str
    source: str | None
    was: list[Was] | UnsetType
    until: datetime | UnsetType
    superseded_by: list[str] | UnsetType


class Version(Struct, frozen=True, kw_only=True):
    """A text of a history, and from when until when it held; `until` is null for what holds now."""

    content: str
    since: datetime
    until: datetime | None
    id: str


def found(call: Call, hit: Hit) -> dict[str, Any]:
    """The fields of a hit that a model sees under another name or in another form."""
    return _place(call, hit) | {"was": [Was.of(each) for each in hit.supersedes] or UNSET}


def listed(call: Call, records: Iterable[Record]) -> list[ListedMemory]:
    """Memories of a list, with what they superseded."""
    records = list(records)
    formers = former_texts(call.memory, [id for record in records for id in record.supersedes])
    return [
        ListedMemory.of(
            record, **_place(call, record), was=[formers[id] for id in record.supersedes if id in formers] or UNSET
        )
        for record in records
    ]


def former_texts(memory: Memory, ids: Iterable[str], *, include_superseded: bool = True) -> dict[str, Was]:
    """Memories that were superseded, by id; without `include_superseded` those that hold again."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    records = memory.list(where={"id": {"in": wanted}}, include_superseded=include_superseded, limit=None)
    return {record.id: Was(id=record.id, content=record.text, until=record.held_until) for record in records}


def _place(call: Call, found: Record | Hit) -> dict[str, Any]:
    source = found.source.id if isinstance(found.source, SourceRef) else found.source
    return {
        "content": found.text,
        "scope": call.scope_of(found.scope),
        "source": source,
        # Both are of what is superseded, which is shown where a past time is asked for.
        "until": UNSET if found.held_until is None else found.held_until,
        "superseded_by": list(found.superseded_by) or UNSET,
    }
