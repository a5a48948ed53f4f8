"""What the in-memory index reads of a store, and what a store says of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from recollect.store.packing import PackedVectors
from recollect.store.values import Change, Columns, Commit, LinkBlock, Operation, SnapshotIdentity, TermBlock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Blocks(Protocol):
    """Whole columns as arrays, for the in-memory index."""

    def columns(self, ids: Sequence[int]) -> Columns:
        """The columns of the records with row ids `ids`."""

    def column_range(self, bounds: tuple[int, int]) -> Columns:
        """The columns of the records with row ids in a range."""

    def vectors(self, embedder_id: int, dimension: int, ids: Sequence[int] | NDArray[np.int64]) -> PackedVectors:
        """The vectors of one embedder of the records with row ids `ids`, in their order, parts in theirs."""

    def ranges(self, table: Literal["columns", "terms", "vectors"]) -> list[tuple[int, int]]:
        """Ranges (after, up to) that cover the blocks of a sort, each small enough to be read at once."""

    def vector_range(self, embedder_id: int, dimension: int, bounds: tuple[int, int]) -> PackedVectors:
        """The vectors of one embedder with row ids in a range, in the order of these."""

    def exact_vectors(self, dimension: int, vector_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The stored float32 vectors (n, dimension) with these ascending row ids; a missing one is zeros."""

    def terms(self, ids: Sequence[int]) -> TermBlock:
        """The term lists of the records with row ids `ids`."""

    def term_range(self, bounds: tuple[int, int]) -> TermBlock:
        """The term lists of the records with row ids in a range."""

    def links(self, ids: Sequence[int] | None = None) -> LinkBlock:
        """All links, or those that touch the records `ids`."""


class Changes(Protocol):
    """The change feed: which records changed since a commit."""

    def commit(self) -> Commit:
        """The commit that this transaction sees."""

    def contained_in(self, commit: Commit) -> bool:
        """Whether `commit` contains all that this transaction sees: who has read it has nothing to catch up with."""

    def since(self, commit: Commit) -> list[Change] | None:
        """What changed after `commit`; None where that is not known any more, or all has to be read again."""

    def refresh(self) -> None:
        """End this read transaction and begin one that sees the newest commit."""


class ChangeWriter(Changes, Protocol):
    """The change feed: which records changed since a commit, in a write transaction."""

    def append(self, operation: Operation, first_id: int, last_id: int | None = None) -> None:
        """Add a change to the feed, in the transaction that makes it."""


class IndexSnapshot(Protocol):
    """Which index snapshot belongs to this commit."""

    def identity(self) -> SnapshotIdentity:
        """What the store expects of its index snapshot; an empty token when it has none."""


class IndexSnapshotWriter(IndexSnapshot, Protocol):
    """Which index snapshot belongs to this commit, in a write transaction."""

    def publish(self, made_of: SnapshotIdentity, token: str, commit: Commit, move: Callable[[], None]) -> bool:
        """Let `move` put an index snapshot of `commit` in place, and keep its token.

        False, and nothing is done, where something was purged or replaced since: a snapshot never outlives its records.
        """

    def discard(self) -> None:
        """Remove the index snapshot, which may hold traces of what this transaction purges."""


class Lexicon(Protocol):
    """Words and their numbers."""

    def lookup(self, words: Sequence[str]) -> dict[str, int]:
        """The numbers of those words that some record holds or held."""

    def recalled(self, words: Sequence[str], loads: int) -> dict[str, int]:
        """`lookup` for queries, cached for the process. `loads` grows when numbers may have changed."""
