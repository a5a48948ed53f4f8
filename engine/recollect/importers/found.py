"""What a reader of another system's files finds in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from recollect.records import NewRecord
from recollect.reports import FileTrouble


class Found(Struct, frozen=True, kw_only=True):
    """A memory. Its `record.id` is that of the source, which no other memory there has; `place` is where it stood."""

    record: NewRecord
    path: str
    line: int | None = None


class FoundLink(Struct, frozen=True, kw_only=True):
    """A link between two memories of the source, by their ids there."""

    source: str
    target: str
    type: str
    path: str
    line: int | None = None


Entry: TypeAlias = Found | FoundLink | FileTrouble
"""A memory, a link between two, or something that could not be read."""
Entries: TypeAlias = Iterator[Entry]
"""What a reader returns: one entry at a time, however large its files are."""
