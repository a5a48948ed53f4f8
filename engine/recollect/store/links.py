"""Links beyond one: removing them, and the steps of a walk along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import apsw

from recollect.filters import Filter
from recollect.store import feed
from recollect.store.arrays import id_array
from recollect.store.conditions import matching

__all__ = ["Direction", "Step", "contradicting", "drop_links", "steps"]

Direction = Literal["out", "in", "both"]


class Step(NamedTuple):
    """One link, as row ids of where a walk comes from and where it leads."""

    near: int
    far: int
    strength: float


def drop_links(connection: apsw.Connection, source: int, target: int, types: Sequence[str]) -> int:
    """Remove the links from one record to another, of these types or of all; returns how many there were."""
    chosen, bound = _of_types(types)
    connection.execute(
        f"DELETE FROM link AS l WHERE source_id = ? AND target_id = ? {chosen}", (source, target, *bound)
    )
    dropped = connection.changes()
    if dropped:
        feed.append(connection, "link", source)
    return dropped


def steps(
    connection: apsw.Connection,
    ids: Sequence[int],
    direction: Direction,
    types: Sequence[str],
    visible: Filter,
    now: int,
) -> list[Step]:
    """Every link that leads from one of these records to one that a filter admits; two statements at most."""
    condition = matching(visible, now)
    chosen, bound = _of_types(types)
    found: list[Step] = []
    for name, near, far in (("out", "source_id", "target_id"), ("in", "target_id", "source_id")):
        if direction in (name, "both"):
            rows: Any = connection.execute(
                f"SELECT l.{near}, l.{far}, l.strength FROM link l JOIN record r ON r.id = l.{far} "
                f"WHERE l.{near} IN (SELECT value FROM carray(?)) {chosen} AND ({condition.sql})",
                (id_array(ids), *bound, *condition.values),
            )
            found += map(Step._make, rows)
    return found


def _of_types(types: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
    return ("AND l.type IN (SELECT value FROM carray(?))", (apsw.carray(tuple(types)),)) if types else ("", ())


def contradicting(connection: apsw.Connection) -> set[tuple[int, int]]:
    """The pairs of row ids, the lower first, that are linked as contradicting each other."""
    rows: Any = connection.execute("SELECT source_id, target_id FROM link WHERE type = 'contradicts'")
    return {(min(row), max(row)) for row in rows}
