"""The change feed: which records an in-memory index has to read again.

A commit is named by the sequence number of its last change and by a random number, which the feed has too: another
file, such as an older copy that went on by itself, never has both. The feed is trimmed: an index that is further behind
than it reaches is loaded again.
"""

from __future__ import annotations

from recallite.store.sql.changes import Changes
from recallite.store.values import Change, Commit, Operation

KEPT_ROWS = 20_000

# A few rows at a time: a thousand overwrite thirty pages, for which one write in a thousand took ten times as long.
_TRIMMED_EVERY = 32


class SqliteChanges(Changes):
    """The table `feed`."""

    # The last row that a read transaction sees, read once; None in one that writes, or before it is read.
    _seen: tuple[int, int] | None = None
    _reads = False

    def begin_reading(self) -> None:
        """Prepare for a read transaction, which sees one commit."""
        self._reads, self._seen = True, None

    def _append(self, rows: list[tuple[int, int, Operation]]) -> None:
        name: int = self._tx.commit_name  # type: ignore[attr-defined]
        self._insert_many("feed", "first_id, last_id, operation, commit_name", [(*row, name) for row in rows])
        if any(operation == "reload" for *_, operation in rows):
            self._tx.forget_known()
        sequence = self._tx.connection.last_insert_rowid()  # type: ignore[attr-defined]
        self._tx.fed = sequence, name  # type: ignore[attr-defined]
        if sequence % _TRIMMED_EVERY < len(rows):
            self._execute("DELETE FROM feed WHERE sequence <= ?", (sequence - KEPT_ROWS,))

    def commit(self) -> Commit:
        sequence, name = self._last()
        return Commit(f"{self._opened} {name} {sequence}")

    def last(self) -> int:
        """The newest sequence number; 0 for a store without changes."""
        return self._last()[0]

    def _last(self) -> tuple[int, int]:
        if self._seen is not None:
            return self._seen
        last = self._execute("SELECT sequence, commit_name FROM feed ORDER BY sequence DESC LIMIT 1").get or (0, 0)
        if self._reads:
            self._seen = last
        return last

    @property
    def _opened(self) -> int:
        """A random number for the connections that were opened together, and see a file go on, never back."""
        return self._tx.opened  # type: ignore[attr-defined, no-any-return]

    def matches(self, commit: Commit) -> bool:
        return self._last() == _parts(commit)[1:]

    def contained_in(self, commit: Commit) -> bool:
        opened, sequence, name = _parts(commit)
        last = self._last()
        return last == (sequence, name) or (last[0] < sequence and opened == self._opened)

    def since(self, commit: Commit) -> list[Change] | None:
        _, sequence, name = _parts(commit)
        rows = self._rows(
            "SELECT sequence, commit_name, first_id, last_id, operation FROM feed WHERE sequence >= ? "
            "ORDER BY sequence",
            (sequence,),
        )
        if not sequence:
            if rows and rows[0][0] != 1:
                return None
        elif not rows or rows.pop(0)[:2] != (sequence, name):
            return None
        return None if any(row[-1] == "reload" for row in rows) else [Change(*row[2:]) for row in rows]

    def refresh(self) -> None:
        if self._tx.connection.in_transaction:  # type: ignore[attr-defined]
            self._execute("COMMIT")
            self._execute("BEGIN")
            self._seen = None


def _parts(commit: Commit) -> tuple[int, int, int]:
    opened, name, sequence = map(int, commit.split(" "))
    return opened, sequence, name
