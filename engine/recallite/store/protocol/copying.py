"""The repository by which a store is copied to another: its tables, row by row, whatever the store is made of.

Rows are tuples of the columns that every store has, in the order of the table's key. Row ids stay as they are, so that
everything which is derived with them in it, and ties of recall, are the same in the copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

CopiedRow = tuple[Any, ...]


class CopiedPart(NamedTuple):
    """What of a store is copied: a scope with those below it, and whether its access tokens are."""

    scope: str = "/"
    access_tokens: bool = False


class CopyMark(NamedTuple):
    """What an unfinished copy says of itself: whose it is, what of it, and which run writes to it."""

    source: str
    part: CopiedPart
    run: str


class PartReader(Protocol):
    """The rows of a part of a store, in a read transaction."""

    tables: tuple[str, ...]
    """The tables of the part; each comes after those that its rows refer to."""

    def count(self, table: str) -> int:
        """How many rows of a table are in the part."""

    def rows(self, table: str, after: CopiedRow | None) -> list[CopiedRow]:
        """The next rows of a table after one of them (None: from the first); none at the end.

        Raises StoreCorrupt for a row that is not what was stored.
        """


class Copying(Protocol):
    """What a copy is read from."""

    def of(self, part: CopiedPart, *, everything: bool = False) -> PartReader:
        """The rows of a part; with `everything`, of its tables all rows."""

    def last_ids(self) -> dict[str, int]:
        """The last row id that each table has given to a row, present or not; those that gave none are absent."""

    def mark(self) -> CopyMark | None:
        """What the store says of itself if it is an unfinished copy."""

    def holds(self, part: CopiedPart) -> str | None:
        """A table with rows of its own, of those that a copy of this part writes to; None for none."""


class CopyWriter(Copying, Protocol):
    """What a copy is written to."""

    def put(self, table: str, rows: Sequence[CopiedRow]) -> None:
        """Add rows as they are, and what this store alone derives from them."""

    def clear(self, part: CopiedPart) -> None:
        """Remove all rows of the tables that a copy of this part writes to."""

    def set_mark(self, mark: CopyMark | None) -> None:
        """Mark the store as an unfinished copy, or (None) as finished."""

    def finish(self, last_ids: dict[str, int]) -> None:
        """Have new rows get ids after these, and whoever has the store open read everything again."""
