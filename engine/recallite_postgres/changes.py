"""The change feed under concurrent writers.

Sequence numbers have gaps and are committed out of order, so a commit is named by a whole snapshot: it tells of every
transaction whether it was visible. What a reader has to catch up with is what is visible now and was not then: nothing
twice, nothing missed, however long a writer takes. A snapshot of a server that has been started again since, or has
recovered from a crash, or of another one after a failover, says nothing: who holds one loads everything again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from recallite.store.sql.changes import Changes
from recallite.store.values import Change, Commit, Operation

if TYPE_CHECKING:
    from recallite_postgres.transaction import PostgresTransaction

KEPT_ROWS = 100_000
_TRIMMED_EVERY = 1024
_TRIMMED = "feed_trimmed"
_TRIMMING = 17
# A server of which one process was killed recovers without being started again, and gives numbers of transactions
# that it had lost to others; its statistics begin anew then.
_VISIBLE = (
    "SELECT pg_current_snapshot()::text, concat_ws('-', CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 "
    "AS BIGINT), CAST(extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000 AS BIGINT))"
)
_SEEN = (
    f"{_VISIBLE}, coalesce(pg_current_xact_id_if_assigned()::text, ''), coalesce((SELECT max(sequence) FROM feed "
    "WHERE xid = pg_current_xact_id_if_assigned()), 0)"
)
# Who only reads has no changes of its own; to plan for them would take longer than the answer.
SEEN_BY_READERS = f"{_VISIBLE}, '', 0"
# What is visible here and not in a snapshot, nor written by a transaction up to one of its own changes.
_UNSEEN = (
    "FROM feed WHERE xid >= pg_snapshot_xmin(?1::text::pg_snapshot) "
    "AND NOT pg_visible_in_snapshot(xid, ?1::text::pg_snapshot) AND NOT (xid::text = ?2 AND sequence <= ?3)"
)


class _Seen(NamedTuple):
    """The state that a commit names: a snapshot, when its server began to run, and a writer's own changes so far."""

    snapshot: str
    server: str
    xid: str
    sequence: int

    @classmethod
    def of(cls, commit: Commit) -> _Seen | None:
        """The state that a commit names; None for a commit of another store."""
        parts = commit.split("/")
        try:
            seen = cls(parts[0], parts[1], parts[2], int(parts[3]))
        except (IndexError, ValueError):
            return None
        return seen if seen.name == commit else None

    @property
    def name(self) -> Commit:
        """The commit's name."""
        return Commit(f"{self.snapshot}/{self.server}/{self.xid}/{self.sequence}")

    def within(self, other: _Seen) -> bool:
        """Whether `other` sees every transaction that this one sees."""
        _, last, running = _parsed(self.snapshot)
        _, other_last, other_running = _parsed(other.snapshot)
        writing = int(self.xid) if self.xid and self.sequence else None
        if writing is not None and self.xid != other.xid and (writing >= other_last or writing in other_running):
            return False
        return last <= other_last and all(xid >= last or xid in running for xid in other_running)


def _parsed(snapshot: str) -> tuple[int, int, frozenset[int]]:
    """The least running transaction, the first that had not begun, and those that ran."""
    first, last, running = snapshot.split(":")
    return int(first), int(last), frozenset(map(int, filter(None, running.split(","))))


class PostgresChanges(Changes):
    """The table `feed`."""

    _tx: PostgresTransaction
    # What this read transaction sees, which does not change in it; None in a write transaction.
    _fixed: _Seen | None = None
    # The last row that this transaction wrote; 0 for none.
    last_written = 0

    def _append(self, rows: list[tuple[int, int, Operation]]) -> None:
        self._insert_many("feed", "first_id, last_id, operation", rows)
        self.last_written = self._execute("SELECT currval(pg_get_serial_sequence('feed', 'sequence'))").get
        if self.last_written % _TRIMMED_EVERY < len(rows):
            self._trim(self.last_written - KEPT_ROWS)

    def _trim(self, up_to: int) -> None:
        if self._tx.confined:  # old rows of others, which a function of the schema may remove
            self._execute("SELECT trim_feed()")
            return
        # One transaction at a time: two would wait for each other's rows.
        if not self._execute("SELECT pg_try_advisory_xact_lock('feed'::regclass::oid::int, ?::int)", (_TRIMMING,)).get:
            return
        newest = self._execute(
            "WITH gone AS (DELETE FROM feed WHERE sequence <= ? RETURNING xid) SELECT max(xid::text::bigint) FROM gone",
            (up_to,),
        ).get
        if newest is not None:
            # What is trimmed later may be older: a row is seen when its transaction ends.
            self._execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE "
                "SET value = greatest(meta.value::bigint, excluded.value::bigint)::text",
                (_TRIMMED, str(newest)),
            )

    def begin(self, seen: Sequence[Any] | None = None) -> None:
        """Note that a transaction begins, and of a reader what it sees: the answer to `SEEN_BY_READERS`."""
        self._fixed = None if seen is None else _Seen(*seen)
        self.last_written = 0

    def own_mark(self) -> tuple[int | None, int]:
        """The number of this transaction, None if it wrote nothing, and a row of the feed that it wrote.

        A transaction that changed no record writes a row that means nothing: by it can be found out whether it is done.
        """
        number = self._execute("SELECT pg_current_xact_id_if_assigned()::text").get
        if number is None:
            return None, 0
        if not self.last_written:
            self._append([(0, 0, "update")])
        return int(number), self.last_written

    def _seen(self) -> _Seen:
        return _Seen(*self._execute(_SEEN).fetchone()) if self._fixed is None else self._fixed

    def commit(self) -> Commit:
        return self._seen().name

    def matches(self, commit: Commit) -> bool:
        seen, named = self._seen(), _Seen.of(commit)
        if seen == named:
            return True
        return named is not None and self._continues(named) and named.within(seen) and not self._unseen(named)

    def contained_in(self, commit: Commit) -> bool:
        named = _Seen.of(commit)
        return named is not None and self._continues(named) and not self._unseen(named)

    def since(self, commit: Commit) -> list[Change] | None:
        named = _Seen.of(commit)
        if named is None or not self._continues(named):
            return None
        trimmed: str | None = self._execute("SELECT value FROM meta WHERE key = ?", (_TRIMMED,)).get
        if trimmed is not None and int(trimmed) >= _parsed(named.snapshot)[0]:
            return None
        rows = self._rows(f"SELECT first_id, last_id, operation {_UNSEEN} ORDER BY sequence", _bound(named))
        changes = [Change(*row) for row in rows]
        return None if any(change.operation == "reload" for change in changes) else changes

    def _continues(self, named: _Seen) -> bool:
        """Whether the server is the one that the snapshot is of."""
        return named.server == self._seen().server

    def _unseen(self, named: _Seen) -> bool:
        return bool(self._execute(f"SELECT EXISTS (SELECT 1 {_UNSEEN})", _bound(named)).get)

    def refresh(self) -> None:
        self._tx.restart()

    def last(self) -> int:
        return self._number("SELECT coalesce(max(sequence), 0) FROM feed")


def _bound(named: _Seen) -> tuple[str, str, int]:
    return named.snapshot, named.xid, named.sequence
