"""The repositories that the in-memory index reads: blocks of arrays, changes, its snapshot, words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol

from recallite.model.filters import Filter
from recallite.store.overview import Labels
from recallite.store.packing import PackedVectors
from recallite.store.values import (
    Change,
    Columns,
    Commit,
    EmbedderRow,
    LinkBlock,
    SnapshotIdentity,
    TermBlock,
    TokenBlock,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Blocks(Protocol):
    """Whole columns as arrays, for the in-memory index."""

    def within(self, scope: str) -> Blocks:
        """The same of the records in a scope and its descendants alone, of stores that read them by themselves."""

    def reading_all(self) -> AbstractContextManager[None]:
        """Within it everything is read once: what has been read need not be cached."""

    def columns(self, ids: Sequence[int]) -> Columns:
        """The columns of these records."""

    def column_range(self, bounds: tuple[int, int]) -> Columns:
        """The columns of the records in a range."""

    def vectors(self, embedder_id: int, dimension: int, ids: Sequence[int] | NDArray[np.int64]) -> PackedVectors:
        """The packed vectors of these records by one embedder, by record and part."""

    def ranges(self, table: Literal["columns", "terms", "vectors"]) -> list[tuple[int, int]]:
        """Ranges (after, up to) that cover the blocks of a sort, each small enough to be read at once."""

    def vector_range(self, embedder: EmbedderRow, bounds: tuple[int, int]) -> PackedVectors:
        """The packed vectors of one embedder in a range, by vector id."""

    def token_codes(self, vector_ids: NDArray[np.int64]) -> TokenBlock:
        """The token codes of the vectors with these vector ids."""

    def token_code_range(self, bounds: tuple[int, int]) -> TokenBlock:
        """The token codes in a range of `ranges("vectors")`."""

    def terms(self, ids: Sequence[int]) -> TermBlock:
        """The term lists of these records."""

    def term_range(self, bounds: tuple[int, int]) -> TermBlock:
        """The term lists of the records in a range."""

    def links(self, ids: Sequence[int] | None = None) -> LinkBlock:
        """All links, or those of these records, incoming and outgoing."""


class Changes(Protocol):
    """The change feed: which records changed since a commit."""

    def commit(self) -> Commit:
        """The commit that this transaction sees."""

    def matches(self, commit: Commit) -> bool:
        """Whether this transaction sees exactly what `commit` names."""

    def contained_in(self, commit: Commit) -> bool:
        """Whether `commit` includes all that this transaction sees: a reader of it has nothing to catch up with."""

    def since(self, commit: Commit) -> list[Change] | None:
        """What changed after `commit`; None if that is unknown or everything has to be read again."""

    def refresh(self) -> None:
        """Continue this read transaction at the newest commit."""


class IndexSnapshot(Protocol):
    """Which index snapshot belongs to this commit."""

    def identity(self) -> SnapshotIdentity:
        """What the store expects of its index snapshot; an empty token when it has none."""


class IndexSnapshotWriter(IndexSnapshot, Protocol):
    """The same in a write transaction."""

    def publish(self, made_of: SnapshotIdentity, token: str, commit: Commit, move: Callable[[], None]) -> bool:
        """Let `move` put an index snapshot of `commit` in place, and keep its token.

        False, and nothing is done, if records were purged or replaced since: a snapshot must not outlive its records.
        """


class Overview(Protocol):
    """Columns of many records at once, without their texts."""

    def labels(self, chosen: Filter, now: int) -> Labels:
        """Ids, scopes, kinds and sources of the records that a filter admits."""

    def count_by_day(self, chosen: Filter, now: int) -> list[tuple[int, int]]:
        """How many records that a filter admits tell of each day that has any: days since 1970 (UTC), ascending.

        A record tells of its valid time, else of when it was created.
        """


class Lexicon(Protocol):
    """Words and their numbers."""

    def lookup(self, words: Sequence[str]) -> dict[str, int]:
        """The numbers of words; those that no record ever had are absent."""

    def recalled(self, words: Sequence[str], generation: int) -> dict[str, int]:
        """`lookup` with a cache, for queries. `generation` is another whenever numbers may have changed."""
