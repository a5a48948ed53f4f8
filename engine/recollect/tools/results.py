"""What tools answer. Text that was stored stands under `results` only, and with it the notice that it is a quote."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from recollect.records import Hit, Record
from recollect.text.quoting import NOTICE

__all__ = [
    "Changed",
    "Contradicted",
    "FoundMemory",
    "FoundMessage",
    "FoundPassage",
    "IngestedDocuments",
    "IngestedFile",
    "ListedDocument",
    "ListedMemory",
    "ListedSession",
    "Message",
    "Quotes",
    "Recalled",
    "RecalledMemory",
    "Recorded",
    "Tip",
    "Written",
]


class Contradicted(Struct, frozen=True, kw_only=True):
    """A memory that seems to say otherwise than the one just written."""

    id: str
    content: str
    reason: str


class Written(Struct, frozen=True, kw_only=True):
    """What a write did: `outcome` is created, merged, replaced or duplicate; the last three name the memory."""

    outcome: str
    id: str
    scope: str
    merged_into: str | None = None
    notice: str = NOTICE
    contradictions: list[Contradicted] = []


class Changed(Struct, frozen=True, kw_only=True):
    """What replace and remove did to which memory."""

    outcome: str
    id: str


class FoundMemory(Struct, frozen=True, kw_only=True):
    """A hit of search."""

    content: str
    score: float
    created_at: datetime
    tags: list[str]
    id: str
    scope: str
    source: str | None

    @classmethod
    def of(cls, hit: Hit, scope: str) -> FoundMemory:
        """A hit as it is shown."""
        source = None if hit.source is None else hit.source.id
        return cls(
            content=hit.text, score=hit.score, created_at=hit.created_at, tags=list(hit.tags), id=hit.id, scope=scope,
            source=source,
        )  # fmt: skip


class RecalledMemory(Struct, frozen=True, kw_only=True):
    """A hit of recall."""

    content: str
    scope: str
    importance: float
    score: float
    match_reasons: list[str]
    evidence_gaps: list[str]
    created_at: datetime
    id: str
    source: str | None
    tags: list[str]

    @classmethod
    def of(cls, hit: Hit, scope: str) -> RecalledMemory:
        """A hit as it is shown."""
        source = None if hit.source is None else hit.source.id
        return cls(
            content=hit.text, scope=scope, importance=hit.importance, score=hit.score,
            match_reasons=list(hit.match_reasons), evidence_gaps=list(hit.evidence_gaps), created_at=hit.created_at,
            id=hit.id, source=source, tags=list(hit.tags),
        )  # fmt: skip


class ListedMemory(Struct, frozen=True, kw_only=True):
    """A memory of a list."""

    content: str
    created_at: datetime
    tags: list[str]
    importance: float
    id: str
    scope: str
    source: str | None

    @classmethod
    def of(cls, record: Record, scope: str) -> ListedMemory:
        """A record as it is shown."""
        return cls(
            content=record.text, created_at=record.created_at, tags=list(record.tags), importance=record.importance,
            id=record.id, scope=scope, source=record.source,
        )  # fmt: skip


class ListedSession(Struct, frozen=True, kw_only=True):
    """A session of a list."""

    id: str
    agent: str | None
    provider: str | None
    messages: int
    created_at: datetime
    updated_at: datetime


class Message(Struct, frozen=True, kw_only=True):
    """A message of a session; `content` is as it was given, for some a list of parts."""

    role: str
    content: Any


class FoundMessage(Struct, frozen=True, kw_only=True):
    """A message that a search found."""

    content: str
    role: str
    session: str
    position: int
    score: float
    created_at: datetime
    agent: str | None


class FoundPassage(Struct, frozen=True, kw_only=True):
    """A passage of a document; `metadata` has the document's own, and title, headings, path, and lines or page."""

    content: str
    source: str
    score: float
    metadata: dict[str, Any]
    document_id: str | None = field(name="documentId")
    scope: str


class ListedDocument(Struct, frozen=True, kw_only=True):
    """A document of a list."""

    document_id: str = field(name="documentId")
    source: str
    title: str | None
    chunks: int
    updated_at: datetime
    metadata: dict[str, Any]
    scope: str


class IngestedFile(Struct, frozen=True, kw_only=True):
    """What became of a document: created, updated, unchanged or duplicate."""

    outcome: str
    document_id: str = field(name="documentId")
    source: str
    title: str | None
    chunks: int


class IngestedDocuments(Struct, frozen=True, kw_only=True):
    """What an ingest did, the first documents of many; `counts` has all."""

    results: list[IngestedFile]
    counts: dict[str, int]
    skipped: list[dict[str, str]]
    notice: str = NOTICE


class Tip(Struct, frozen=True, kw_only=True):
    """A sentence about what worked."""

    content: str


class Recorded(Struct, frozen=True, kw_only=True):
    """What an action on a session, or a record of experience, did."""

    outcome: str
    id: str | None = None
    position: int | None = None


class Quotes(Struct, frozen=True, kw_only=True):
    """Stored texts, with where each is from."""

    results: list[Any]
    notice: str = NOTICE

    @classmethod
    def of(cls, results: Iterable[Struct]) -> Quotes:
        """Results under the notice."""
        return cls(results=list(results))


class Recalled(Struct, frozen=True, kw_only=True):
    """The hits of recall, and what the store seems not to know."""

    results: list[RecalledMemory]
    evidence_gaps: list[str] = []
    sub_queries: list[str] = []
    notice: str = NOTICE
