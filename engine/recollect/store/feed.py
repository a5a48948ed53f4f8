"""The change feed: which records an in-memory index must look at again.

`PRAGMA data_version` says whether another connection committed; the feed's sequence says what changed since. The
feed is trimmed, and who is further behind than it reaches loads everything afresh.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import apsw

__all__ = ["Change", "Operation", "append", "append_ids", "changes_since", "last_sequence", "refresh"]

Operation = Literal["insert", "text", "update", "delete", "link", "reload"]
KEPT_ROWS = 20_000
_TRIMMED_EVERY = 1_000


class Change(NamedTuple):
    """One row of the feed: the records `first_id` to `last_id` underwent `operation`."""

    sequence: int
    first_id: int
    last_id: int
    operation: Operation


def append(connection: apsw.Connection, operation: Operation, first_id: int, last_id: int | None = None) -> None:
    """Add a change to the feed, in the transaction that makes it."""
    _append(connection, [(first_id, first_id if last_id is None else last_id, operation)])


def append_ids(connection: apsw.Connection, operation: Operation, ids: list[int]) -> None:
    """Add one change per run of consecutive ids."""
    rows: list[tuple[int, int, Operation]] = []
    first = last = None
    for record_id in sorted(ids):
        if last is not None and record_id == last + 1:
            last = record_id
            continue
        if first is not None and last is not None:
            rows.append((first, last, operation))
        first = last = record_id
    if first is not None and last is not None:
        rows.append((first, last, operation))
    _append(connection, rows)


def _append(connection: apsw.Connection, rows: list[tuple[int, int, Operation]]) -> None:
    if not rows:
        return
    connection.executemany("INSERT INTO feed (first_id, last_id, operation) VALUES (?, ?, ?)", rows)
    sequence = connection.last_insert_rowid()
    if sequence % _TRIMMED_EVERY < len(rows):
        connection.execute("DELETE FROM feed WHERE sequence <= ?", (sequence - KEPT_ROWS,))


def last_sequence(connection: apsw.Connection) -> int:
    """The newest sequence number; 0 for a store without changes."""
    sequence: int = connection.execute("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'feed'), 0)").get
    return sequence


def changes_since(connection: apsw.Connection, sequence: int) -> list[Change] | None:
    """The changes after `sequence` in order, or None when the feed no longer reaches back so far."""
    rows: Any = connection.execute(
        "SELECT sequence, first_id, last_id, operation FROM feed WHERE sequence > ? ORDER BY sequence",
        (sequence,),
    ).fetchall()
    if rows:
        if rows[0][0] != sequence + 1 or any(row[3] == "reload" for row in rows):
            return None
    elif last_sequence(connection) != sequence:
        return None
    return [Change(*row) for row in rows]


def refresh(connection: apsw.Connection) -> None:
    """End this read transaction and begin one that sees the newest commit."""
    if connection.in_transaction:
        connection.execute("COMMIT")
        connection.execute("BEGIN")
