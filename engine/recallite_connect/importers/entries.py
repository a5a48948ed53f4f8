"""Entries that a reader of another system's files finds in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from recallite.model.authority import Authority
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble


class FoundMemory(Struct, frozen=True, kw_only=True):
    """A memory. Its `record.id` is that of the source, which no other memory there has; `path` is where it stood.

    `changes` says that it may be edited there and read again, `authority` whose word it is; None: as the source is
    declared. `times` is how often it is said there.
    """

    record: NewRecord
    path: str
    line: int | None = None
    changes: bool | None = None
    authority: Authority | None = None
    times: int = 1


class FoundLink(Struct, frozen=True, kw_only=True):
    """A link between two memories of the source, by their ids there."""

    source: str
    target: str
    type: str
    path: str
    line: int | None = None


class LeftOut(Struct, frozen=True):
    """Something that is read well and is no memory, as a tool's output; `what` names its kind in the plural."""

    what: str
    count: int = 1


Entry: TypeAlias = FoundMemory | FoundLink | FileTrouble | LeftOut
"""A memory, a link between two, something that could not be read, or something that is no memory."""
Entries: TypeAlias = Iterator[Entry]
"""The result of a reader: one entry at a time, however large its files are."""
