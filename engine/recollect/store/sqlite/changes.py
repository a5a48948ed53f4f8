"""The change feed: which records an in-memory index has to read again.

A commit is named by the sequence number of its last change. The feed is trimmed: an index that is further behind than
it reaches is loaded again.
"""

from __future__ import annotations

from recollect.store.sqlite.repository import Repository
from recollect.store.values import Change, Commit, Operation

KEPT_ROWS = 20_000

# A few rows at a time: a thousand overwrite thirty pages, for which one write in a thousand took ten times as long.
_TRIMMED_EVERY = 32


class SqliteChanges(Repository):
    """The table `feed`."""

    def append(self, operation: Operation, first_id: int, last_id: int | None = None) -> None:
        self._append([(first_id, first_id if last_id is None else last_id, operation)])

    def append_ids(self, operation: Operation, ids: list[int]) -> None:
        """Add one change per run of consecutive ids."""
        rows: list[tuple[int, int, Operation]] = []
        for record_id in sorted(ids):
            first = rows.pop()[0] if rows and rows[-1][1] == record_id - 1 else record_id
            rows.append((first, record_id, operation))
        self._append(rows)

    def _append(self, rows: list[tuple[int, int, Operation]]) -> None:
        if not rows:
            return
        self._execute_many("INSERT INTO feed (first_id, last_id, operation) VALUES (?, ?, ?)", rows)
        sequence = self._connection.last_insert_rowid()
        if sequence % _TRIMMED_EVERY < len(rows):
            self._execute("DELETE FROM feed WHERE sequence <= ?", (sequence - KEPT_ROWS,))

    def commit(self) -> Commit:
        return Commit(str(self.last()))

    def last(self) -> int:
        """The newest sequence number; 0 for a store without changes."""
        return self._number("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'feed'), 0)")

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
        if self._connection.in_transaction:
            self._execute("COMMIT")
            self._execute("BEGIN")
