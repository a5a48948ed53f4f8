"""The change feed: which records an in-memory index has to read again.

A commit is named by the sequence number of its last change. The feed is trimmed: an index that is further behind than
it reaches is loaded again.
"""

from __future__ import annotations

from recallite.store.sql.changes import Changes
from recallite.store.values import Change, Commit, Operation

KEPT_ROWS = 20_000

# A few rows at a time: a thousand overwrite thirty pages, for which one write in a thousand took ten times as long.
_TRIMMED_EVERY = 32


class SqliteChanges(Changes):
    """The table `feed`."""

    # The newest sequence number that a read transaction sees, read once; None in one that writes, or before it is read.
    _seen: int | None = None
    _reads = False

    def begin_reading(self) -> None:
        """Prepare for a read transaction, which sees one commit."""
        self._reads, self._seen = True, None

    def _append(self, rows: list[tuple[int, int, Operation]]) -> None:
        self._insert_many("feed", "first_id, last_id, operation", rows)
        if any(operation == "reload" for *_, operation in rows):
            self._tx.forget_known()
        sequence = self._tx.connection.last_insert_rowid()  # type: ignore[attr-defined]
        if sequence % _TRIMMED_EVERY < len(rows):
            self._execute("DELETE FROM feed WHERE sequence <= ?", (sequence - KEPT_ROWS,))

    def commit(self) -> Commit:
        return Commit(str(self.last()))

    def last(self) -> int:
        """The newest sequence number; 0 for a store without changes."""
        if self._seen is not None:
            return self._seen
        last = self._number("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'feed'), 0)")
        if self._reads:
            self._seen = last
        return last

    def matches(self, commit: Commit) -> bool:
        return self.last() == int(commit)

    def contained_in(self, commit: Commit) -> bool:
        return self.last() <= int(commit)

    def since(self, commit: Commit) -> list[Change] | None:
        sequence = int(commit)
        rows = self._rows(
            "SELECT sequence, first_id, last_id, operation FROM feed WHERE sequence > ? ORDER BY sequence", (sequence,)
        )
        if rows:
            if rows[0][0] != sequence + 1 or any(row[3] == "reload" for row in rows):
                return None
        elif self.last() != sequence:
            return None
        return [Change(*row[1:]) for row in rows]

    def refresh(self) -> None:
        if self._tx.connection.in_transaction:  # type: ignore[attr-defined]
            self._execute("COMMIT")
            self._execute("BEGIN")
            self._seen = None
