"""Links between records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from recallite.model.checks import to_datetime
from recallite.model.filters import Filter
from recallite.model.records import Link
from recallite.store.rows import Moment, read_row
from recallite.store.sql.repository import IN_ARRAY, Repository
from recallite.store.values import Direction, LinkRow, Step

_LINK = (
    "SELECT a.public_id, b.public_id, l.type, l.strength, l.created_at, l.reason FROM link l "
    "JOIN record a ON a.id = l.source_id JOIN record b ON b.id = l.target_id"
)


class _LinkRow(NamedTuple):
    source: str
    target: str
    type: str
    strength: float
    created_at: Moment
    reason: str | None


class Links(Repository):
    """The table `link`."""

    def of(self, record_id: int, *, incoming: bool, types: Sequence[str]) -> list[Link]:
        """The links that leave (or reach) a record, strongest first."""
        near, far = ("target_id", "source_id") if incoming else ("source_id", "target_id")
        of_types, bound = self._of_types(types)
        rows = self._execute(
            f"{_LINK} WHERE l.{near} = ? {of_types} ORDER BY l.strength DESC, l.{far}, l.type", (record_id, *bound)
        )
        return [*map(_link, rows)]

    def between(self, filter: Filter, *, chunks: bool = True) -> Iterator[Link]:
        """Links between open records that a filter admits, but "supersedes", streamed; with or without `chunks`."""
        condition = self._tx.conditions.exported(filter, chunks=chunks)
        within = f"IN (SELECT r.id FROM record r WHERE {condition.sql})"
        # Without the plus SQLite looks up every pair of records: 1.6 s for 1,500 links of 3,000.
        rows = self._execute(
            f"{_LINK} WHERE l.type != 'supersedes' AND l.source_id {within} AND +l.target_id {within} "
            "ORDER BY l.source_id, l.target_id, l.type",
            (*condition.values, *condition.values),
        )
        yield from map(_link, rows)

    def missing(self, rows: Sequence[LinkRow]) -> list[LinkRow]:
        """The links among these that the store does not have, each once."""
        wanted = {row[:3]: row for row in reversed(rows)}
        return [
            row
            for key, row in wanted.items()
            if not self._execute("SELECT 1 FROM link WHERE source_id = ? AND target_id = ? AND type = ?", key).get
        ]

    def put(self, links: Iterable[LinkRow]) -> None:
        """Insert or strengthen links."""
        rows = [LinkRow(*row) for row in links]
        self._execute_many(
            "INSERT INTO link (source_id, target_id, type, strength, created_at, reason) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (source_id, target_id, type) DO UPDATE SET strength = excluded.strength, "
            "reason = coalesce(excluded.reason, link.reason)",
            rows,
        )
        # One end is enough: the links of a record are read in both directions.
        self._tx.changes.append_ids("link", sorted({row[0] for row in rows}))

    def drop(self, source: int, target: int, types: Sequence[str]) -> int:
        """Remove the links from one record to another, of these types or (empty) all but "supersedes".

        Returns how many.
        """
        of_types, bound = self._of_types(types)
        spared = "" if types else "AND l.type != 'supersedes'"
        self._execute(
            f"DELETE FROM link AS l WHERE source_id = ? AND target_id = ? {of_types} {spared}", (source, target, *bound)
        )
        dropped = self._connection.changes()
        if dropped:
            self._tx.changes.append("link", source)
        return dropped

    def steps(
        self, ids: Sequence[int], direction: Direction, types: Sequence[str], visible: Filter, now: int
    ) -> list[Step]:
        """Every link from one of these records to one that a filter admits."""
        condition = self._tx.conditions.matching(visible, now)
        of_types, bound = self._of_types(types)
        steps: list[Step] = []
        for name, near, far in (("out", "source_id", "target_id"), ("in", "target_id", "source_id")):
            if direction in (name, "both"):
                rows = self._rows(
                    f"SELECT l.{near}, l.{far}, l.strength FROM link l JOIN record r ON r.id = l.{far} "
                    f"WHERE l.{near} {IN_ARRAY} {of_types} AND ({condition.sql})",
                    (self._id_array(ids), *bound, *condition.values),
                )
                steps += map(Step._make, rows)
        return steps

    def _of_types(self, types: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
        return (f"AND l.type {IN_ARRAY}", (self._array(types),)) if types else ("", ())

    def contradicting(self) -> set[tuple[int, int]]:
        """Pairs of row ids, the lower first, with a link of type "contradicts"."""
        rows = self._rows("SELECT source_id, target_id FROM link WHERE type = 'contradicts'")
        return {(min(row), max(row)) for row in rows}


def _link(row: tuple[Any, ...]) -> Link:
    source, target, kind, strength, created, reason = read_row(row, _LinkRow, "a link of")
    return Link(
        source=source, target=target, type=kind, strength=strength, created_at=to_datetime(created), reason=reason
    )
