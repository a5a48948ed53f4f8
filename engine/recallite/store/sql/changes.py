"""The change feed: which records an in-memory index has to read again."""

from __future__ import annotations

from abc import abstractmethod

from recallite.store.rows import runs_of
from recallite.store.sql.repository import Repository
from recallite.store.values import Change, Commit, Operation


class Changes(Repository):
    """The table `feed`; how its rows are ordered, and a commit named, is each database's own."""

    def append(self, operation: Operation, first_id: int, last_id: int | None = None) -> None:
        """Add a change of the records `first_id` to `last_id`."""
        self._append([(first_id, first_id if last_id is None else last_id, operation)])

    def append_ids(self, operation: Operation, ids: list[int]) -> None:
        """Add one change per run of consecutive ids."""
        if runs := runs_of(ids):
            self._append([(first, last, operation) for first, last in runs])

    @abstractmethod
    def _append(self, rows: list[tuple[int, int, Operation]]) -> None:
        """Add rows to the feed."""

    @abstractmethod
    def commit(self) -> Commit:
        """The commit that this transaction sees."""

    @abstractmethod
    def matches(self, commit: Commit) -> bool:
        """Whether this transaction sees what `commit` names, and nothing else."""

    @abstractmethod
    def contained_in(self, commit: Commit) -> bool:
        """Whether `commit` includes all that this transaction sees."""

    @abstractmethod
    def since(self, commit: Commit) -> list[Change] | None:
        """The changes after `commit`; None if they are unknown or everything has to be read again."""

    @abstractmethod
    def refresh(self) -> None:
        """Continue this read transaction at the newest commit."""

    @abstractmethod
    def last(self) -> int:
        """The newest sequence number; 0 for a store without changes."""
