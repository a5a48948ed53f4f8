"""Answers of the server's own tools: JSON objects with a schema."""

from __future__ import annotations

from msgspec import Struct

from recallite.text.quoting import NOTICE


class SearchResult(Struct, frozen=True, kw_only=True):
    """A result of `search`, to be read with `fetch`."""

    id: str
    title: str
    url: str


class SearchResults(Struct, frozen=True, kw_only=True):
    """Results of `search`, best first."""

    results: list[SearchResult]
    notice: str = NOTICE


class Fetched(Struct, frozen=True, kw_only=True):
    """A memory or passage; `left_out` in its metadata says how much did not fit into the budget of tokens."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]
