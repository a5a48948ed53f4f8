"""What the tools of the server answer: JSON objects with a schema."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from recallite.doors.tools.memory_results import Was
from recallite.text.quoting import NOTICE


class FoundMemory(Struct, frozen=True, kw_only=True):
    """A memory. `was` is what it took the place of; `until` and `superseded_by` say that it no longer holds.

    `score` orders the results of one question, `confidence` is the chance that it answers it; a list has neither.
    """

    id: str
    content: str
    kind: str
    scope: str
    created_at: datetime
    tags: list[str]
    source: str | None = None
    score: float | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    match_reasons: list[str] | UnsetType = UNSET
    was: list[Was] | UnsetType = UNSET
    until: datetime | UnsetType = UNSET
    superseded_by: list[str] | UnsetType = UNSET


class FoundMemories(Struct, frozen=True, kw_only=True):
    """Memories, best or newest first; `left_out` counts those that did not fit into the budget of tokens.

    `evidence_gaps` say what the memory seems not to know.
    """

    results: list[FoundMemory]
    left_out: int = 0
    evidence_gaps: list[str] = []
    notice: str = NOTICE


class FoundPassage(Struct, frozen=True, kw_only=True):
    """A passage of a document, and where in it: its title, headings, and lines or page."""

    id: str
    content: str
    source: str
    score: float
    place: dict[str, Any]
    scope: str


class FoundPassages(Struct, frozen=True, kw_only=True):
    """Passages, best first; `left_out` counts those that did not fit into the budget of tokens."""

    results: list[FoundPassage]
    left_out: int = 0
    notice: str = NOTICE


class SearchResult(Struct, frozen=True, kw_only=True):
    """A result of `search`, to be read with `fetch`."""

    id: str
    title: str
    url: str


class SearchResults(Struct, frozen=True, kw_only=True):
    """What `search` found, best first."""

    results: list[SearchResult]


class Fetched(Struct, frozen=True, kw_only=True):
    """A memory or passage; `left_out` in its metadata says how much did not fit into the budget of tokens."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]
