"""Cycles of consolidation over the episodes of one scope. Every function runs inside `Store.read()` or `atomic()`."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw

from recollect.policies import Consolidation
from recollect.store import changing, feed
from recollect.store.rows import Moment, read_row, read_rows

__all__ = [
    "CycleRow",
    "add_cycle",
    "compress",
    "cycles",
    "episodes_between",
    "last_cycle",
    "last_episode",
    "new_since",
    "replayed_again",
]

_EPISODES = (
    "r.kind = 'episode' AND r.valid_to IS NULL AND r.scope_id = (SELECT id FROM scope WHERE path = ?) "
    "AND r.id > ? AND r.id <= ?"
)
_CYCLE = (
    "SELECT c.id, p.path, c.trigger_id, c.replayed_id, c.created_at, c.compressed, c.pruned, c.replayed, c.promoted, "
    "c.error FROM consolidation c JOIN scope p ON p.id = c.scope_id"
)


class CycleRow(NamedTuple):
    """What one cycle did; time in microseconds."""

    row_id: int
    scope: str
    trigger_id: int
    replayed_id: int
    created_at: Moment
    compressed: int
    pruned: int
    replayed: int
    promoted: int
    error: str | None


def last_episode(connection: apsw.Connection, scope: str) -> int:
    """The row id of the newest episode of exactly this scope; 0 for none."""
    found: int = connection.execute(
        "SELECT coalesce(max(r.id), 0) FROM record r WHERE r.kind = 'episode' AND r.valid_to IS NULL "
        "AND r.scope_id = (SELECT id FROM scope WHERE path = ?)",
        (scope,),
    ).get
    return found


def last_cycle(connection: apsw.Connection, scope: str) -> CycleRow | None:
    """The newest cycle of exactly this scope."""
    row: Any = connection.execute(f"{_CYCLE} WHERE p.path = ? ORDER BY c.id DESC LIMIT 1", (scope,)).fetchone()
    return None if row is None else read_row(row, CycleRow, "consolidation")


def cycles(connection: apsw.Connection, scope: str, limit: int) -> list[CycleRow]:
    """The cycles of exactly this scope, newest first."""
    rows: Any = connection.execute(f"{_CYCLE} WHERE p.path = ? ORDER BY c.id DESC LIMIT ?", (scope, limit))
    return read_rows(rows, CycleRow, "consolidation")


def new_since(connection: apsw.Connection, scope: str, enough: int) -> int:
    """How many episodes of this scope are newer than its last cycle; counts no further than `enough`."""
    number: int = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM record r WHERE r.kind = 'episode' AND r.valid_to IS NULL "
        "AND r.scope_id = (SELECT id FROM scope WHERE path = ?1) AND r.id > coalesce((SELECT max(c.trigger_id) "
        "FROM consolidation c JOIN scope p ON p.id = c.scope_id WHERE p.path = ?1), 0) LIMIT ?2)",
        (scope, enough),
    ).get
    return number


def episodes_between(connection: apsw.Connection, scope: str, after: int, last: int) -> list[int]:
    """The row ids of the episodes of exactly this scope after one and up to another, ascending."""
    rows = connection.execute(f"SELECT r.id FROM record r WHERE {_EPISODES} ORDER BY r.id", (scope, after, last))
    return [row[0] for row in rows]


def compress(connection: apsw.Connection, scope: str, last: int, policy: Consolidation) -> tuple[int, int]:
    """Multiply the importance of all episodes up to the row id `last` that are not pinned; purge what falls too low.

    An episode is purged when its new importance is under prune_threshold * decay_factor ** (cycles_a_recall *
    accesses). Returns how many were multiplied, the purged among them, and how many were purged.
    """
    chosen = f"{_EPISODES} AND NOT r.pinned"
    bound = (scope, 0, last)
    doomed = [
        row[0]
        for row in connection.execute(
            f"SELECT r.id FROM record r LEFT JOIN access a ON a.record_id = r.id WHERE {chosen} "
            "AND r.importance * ? < ? * pow(?, coalesce(a.count, 0))",
            (*bound, policy.decay_factor, policy.prune_threshold, policy.decay_factor**policy.cycles_a_recall),
        )
    ]
    changing.delete(connection, doomed)
    # What ranks stays as it was given (age is weighed at read time, and would count twice).
    connection.execute(
        "UPDATE record AS r SET base_importance = coalesce(r.base_importance, r.importance), "
        f"importance = r.importance * ? WHERE {chosen}",
        (policy.decay_factor, *bound),
    )
    kept = connection.changes()
    # What an index holds of episodes stays right, but not the filters by importance that it keeps between changes.
    feed.append(connection, "update", last)
    return kept + len(doomed), len(doomed)


def replayed_again(connection: apsw.Connection, row: CycleRow) -> None:
    """Write down what an extractor made of episodes after their cycle."""
    connection.execute(
        "UPDATE consolidation SET replayed_id = ?, replayed = ?, promoted = ?, error = ? WHERE id = ?",
        (row.replayed_id, row.replayed, row.promoted, row.error, row.row_id),
    )


def add_cycle(connection: apsw.Connection, scope_id: int, row: CycleRow) -> None:
    """Write down what a cycle did."""
    connection.execute(
        "INSERT INTO consolidation (scope_id, trigger_id, replayed_id, created_at, compressed, pruned, replayed, "
        "promoted, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (scope_id, *row[2:]),
    )
