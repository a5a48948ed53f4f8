"""How records relate: links, which superseded which, and which wait to be compared or judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallite.errors import InvalidInput
from recallite.model.checks import to_datetime
from recallite.model.filters import Filter
from recallite.model.records import Direction, Link
from recallite.model.settings import WritePolicy
from recallite.store.sql.meta import runs_of
from recallite.store.sql.repository import IN_ARRAY, NEVER, NO_LIMIT, Moment, Repository, read_row


class LinkRow(NamedTuple):
    """A link as it is written, with the row ids of its ends."""

    source: int
    target: int
    type: str
    strength: float
    created_at: int
    reason: str | None = None


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

    def of(self, row_id: int, *, incoming: bool, types: Sequence[str]) -> list[Link]:
        """The links that leave (or reach) a record, strongest first."""
        near, far = ("target_id", "source_id") if incoming else ("source_id", "target_id")
        of_types, bound = self._of_types(types)
        rows = self._execute(
            f"{_LINK} WHERE l.{near} = ? {of_types} ORDER BY l.strength DESC, l.{far}, l.type", (row_id, *bound)
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
        distinct = {row[:3]: row for row in reversed(rows)}
        return [
            row
            for key, row in distinct.items()
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
    ) -> list[tuple[int, int, float]]:
        """Every link from one of these records to one that a filter admits: both, and its strength."""
        condition = self._tx.conditions.matching(visible, now)
        of_types, bound = self._of_types(types)
        steps: list[tuple[int, int, float]] = []
        for name, near, far in (("out", "source_id", "target_id"), ("in", "target_id", "source_id")):
            if direction in (name, "both"):
                steps += self._rows(
                    f"SELECT l.{near}, l.{far}, l.strength FROM link l JOIN record r ON r.id = l.{far} "
                    f"WHERE l.{near} {IN_ARRAY} {of_types} AND ({condition.sql})",
                    (self._id_array(ids), *bound, *condition.values),
                )
        return steps

    def _of_types(self, types: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
        return (f"AND l.type {IN_ARRAY}", (self._array(types),)) if types else ("", ())

    def contradictions(self, ids: Sequence[int], scope_ids: Sequence[int] | None) -> list[tuple[int, int, str]]:
        """(one, other, public id of the other) for these records and the open ones of some scopes that contradict them.

        None is every scope.
        """
        within = "" if scope_ids is None else f"AND r.scope_id {IN_ARRAY} "
        scopes = () if scope_ids is None else (self._id_array(scope_ids),)
        return [
            (one, other, public_id)
            for near, far in (("source_id", "target_id"), ("target_id", "source_id"))
            for one, other, public_id in self._execute(
                f"SELECT l.{near}, l.{far}, r.public_id FROM link l JOIN record r ON r.id = l.{far} WHERE "
                f"l.type = 'contradicts' AND r.recorded_until IS NULL {within}AND l.{near} {IN_ARRAY} "
                f"ORDER BY l.{near}, l.{far}",
                (*scopes, self._id_array(ids)),
            )
        ]

    def any_contradiction(self) -> bool:
        """Whether any record contradicts another."""
        return bool(self._column("SELECT EXISTS (SELECT 1 FROM link WHERE type = 'contradicts')")[0])

    def contradicting(self) -> set[tuple[int, int]]:
        """Pairs of row ids, the lower first, with a link of type "contradicts"."""
        rows = self._rows("SELECT source_id, target_id FROM link WHERE type = 'contradicts'")
        return {(min(row), max(row)) for row in rows}


def _link(row: tuple[Any, ...]) -> Link:
    source, target, kind, strength, created, reason = read_row(row, _LinkRow, "a link of")
    return Link(
        source=source, target=target, type=kind, strength=strength, created_at=to_datetime(created), reason=reason
    )


# Supersessions; what is derived from them on records stays in step.


class Supersession(NamedTuple):
    """The open version `new_id` in the place of `old_id`; times in microseconds.

    `holds_from` is the valid time from which the new one holds, `known_from` and `known_until` say when the store knew
    of it: it stands while `known_until` is None. The old one is left out of what is current only if this is `certain`.
    `by_rule` says that rules or a language model found it, and no caller said it.
    """

    old_id: int
    new_id: int
    holds_from: int
    known_from: int
    known_until: int | None = None
    reason: str | None = None
    strength: float = 1.0
    certain: bool = True
    by_rule: bool = False


class NamedSupersession(NamedTuple):
    """A supersession between public ids, as exports have it."""

    old: str
    new: str
    holds_from: Moment
    known_from: Moment
    known_until: Moment | None
    reason: str | None
    strength: float
    certain: bool | int
    by_rule: bool | int


class Standpoint(NamedTuple):
    """The fields that decide whether a record may take part in a supersession."""

    row_id: int
    public_id: str
    scope: str
    kind: str
    begins_at: int
    recorded_from: int
    expires_at: int | None
    pinned: bool
    authority: int


class FormerRow(NamedTuple):
    """A record that another has superseded, and the valid times between which it held."""

    public_id: str
    text: str
    held_from: Moment
    held_until: Moment


LINK_TYPE = "supersedes"
_COLUMNS = "old_id, new_id, holds_from, known_from, known_until, reason, strength, certain, by_rule"
_HELD_FROM = "coalesce({row}.valid_from, {row}.created_at)"
# `beginning` in SQL.
_BEGINS = f"CASE WHEN {{row}}.valid_resolved THEN {{row}}.created_at ELSE {_HELD_FROM} END"

# What follows from the standing supersessions of each record, as (old_id, superseded_at, superseded_until, held_until).
# A successor that expires stands for longer if it has successors itself. Only what is certain ends what a record says.
DERIVED_SQL = f"""SELECT x.old_id AS record_id, min(x.known_from) AS superseded_at, nullif(max(CASE
    WHEN n.expires_at IS NULL OR (n.superseded_at IS NOT NULL AND n.superseded_until IS NULL) THEN {NEVER}
    WHEN n.superseded_until > n.expires_at THEN n.superseded_until ELSE n.expires_at END), {NEVER}) AS superseded_until,
    min(CASE WHEN x.certain THEN x.holds_from END) AS held_until
    FROM supersession x JOIN record n ON n.id = x.new_id WHERE x.known_until IS NULL"""


class Supersessions(Repository):
    """The table `supersession`."""

    def of_old(self, old_ids: Sequence[int]) -> list[Supersession]:
        """The standing supersessions of these records, by others."""
        return self._standing("old_id", old_ids)

    def of_new(self, new_ids: Sequence[int]) -> list[Supersession]:
        """The standing supersessions by these records, of others."""
        return self._standing("new_id", new_ids)

    def _standing(self, end: str, ids: Sequence[int]) -> list[Supersession]:
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM supersession WHERE {end} {IN_ARRAY} AND known_until IS NULL ORDER BY id",
            (self._id_array(ids),),
        )
        return [_supersession(row) for row in rows]

    def following(self, ids: Sequence[int]) -> set[int]:
        """The records that supersede these, directly or through others."""
        return set(
            self._column(
                f"WITH RECURSIVE reached(id) AS (SELECT new_id FROM supersession WHERE old_id {IN_ARRAY} "
                "AND known_until IS NULL UNION SELECT x.new_id FROM reached JOIN supersession x "
                "ON x.old_id = reached.id AND x.known_until IS NULL) SELECT id FROM reached",
                (self._id_array(ids),),
            )
        )

    def ahead(self, ids: Sequence[int], now: int) -> list[Supersession]:
        """What stands in the place of these records, and of what replaced them, without what has expired."""
        columns = ", ".join(f"x.{name}" for name in _COLUMNS.split(", "))
        standing = (
            "JOIN record n ON n.id = x.new_id WHERE x.known_until IS NULL AND (n.expires_at IS NULL OR "
            "n.expires_at > ? OR (n.superseded_at IS NOT NULL AND coalesce(n.superseded_until, ?) > ?))"
        )
        rows = self._execute(
            f"WITH RECURSIVE ahead({_COLUMNS}) AS (SELECT {columns} FROM supersession x {standing} AND x.old_id "
            f"{IN_ARRAY} UNION SELECT {columns} FROM ahead JOIN supersession x ON x.old_id = ahead.new_id {standing}) "
            f"SELECT {_COLUMNS} FROM ahead",
            (now, NEVER, now, self._id_array(ids), now, NEVER, now),
        )
        return [_supersession(row) for row in rows]

    def standpoints(self, ids: Sequence[int]) -> dict[int, Standpoint]:
        """The fields that decide whether these open records may take part, by row id."""
        rows = self._execute(
            f"SELECT r.id, r.public_id, s.path, r.kind, {_BEGINS.format(row='r')}, r.recorded_from, r.expires_at, "
            f"r.pinned, r.authority FROM record r JOIN scope s ON s.id = r.scope_id WHERE r.recorded_until IS NULL "
            f"AND r.id {IN_ARRAY}",
            (self._id_array(ids),),
        )
        return {row[0]: Standpoint(*row) for row in rows}

    def chain(self, row_id: int) -> list[int]:
        """A record, and the records that it supersedes and that supersede it, transitively: the oldest first."""
        begins_at, sorter = {row_id: 0}, TopologicalSorter({row_id: ()})
        for near, far in (("old_id", "new_id"), ("new_id", "old_id")):
            rows = self._execute(
                f"WITH RECURSIVE reached(id) AS (SELECT ? UNION SELECT x.{far} FROM reached JOIN supersession x "
                f"ON x.{near} = reached.id AND x.known_until IS NULL) "
                f"SELECT x.old_id, x.new_id, {_BEGINS.format(row='r')} FROM reached JOIN supersession x "
                f"ON x.{near} = reached.id AND x.known_until IS NULL JOIN record r ON r.id = x.{far}",
                (row_id,),
            )
            for old, new, begins in rows:
                sorter.add(new, old)
                begins_at[new if far == "new_id" else old] = begins
        with suppress(CycleError):  # which another program has made: what is outside of it is in order
            sorter.prepare()
        # Where that leaves a choice, the one that began first.
        free: list[tuple[int, int]] = []
        ordered: list[int] = []
        while True:
            for free_id in sorter.get_ready():
                heappush(free, (begins_at[free_id], free_id))
            if not free:
                return ordered
            ordered.append(heappop(free)[1])
            sorter.done(ordered[-1])

    def formers(
        self, ids: Sequence[int] | NDArray[np.int64], now: int, known_at: int | None = None
    ) -> dict[int, list[FormerRow]]:
        """The records that these versions supersede, by row id, the last that held first; others are absent.

        As it is known now or was at `known_at`, without what has expired.
        """
        condition, bound = _known(known_at)
        # A record may have another text or scope since.
        version = "o.id = x.old_id"
        if known_at is not None:
            version = (
                "o.public_id = (SELECT public_id FROM record WHERE id = x.old_id) AND o.recorded_from <= ? "
                "AND (o.recorded_until IS NULL OR o.recorded_until > ?) AND o.scope_id = r.scope_id"
            )
        formers: dict[int, list[FormerRow]] = {}
        for row_id, *row in self._execute(
            f"SELECT r.id, o.public_id, o.text, {_HELD_FROM.format(row='o')}, x.holds_from FROM record r JOIN record c "
            "ON c.public_id = r.public_id AND c.recorded_until IS NULL JOIN supersession x ON x.new_id = c.id JOIN "
            f"record o ON {version} WHERE r.id {IN_ARRAY} AND {condition} AND (o.expires_at IS NULL OR "
            "o.expires_at > ?) ORDER BY x.holds_from DESC, o.id DESC",
            (*bound, self._id_array(ids), *bound, now),
        ):
            formers.setdefault(row_id, []).append(read_row(tuple(row), FormerRow, "record"))
        return formers

    def successors(
        self, ids: Sequence[int] | NDArray[np.int64], known_at: int | None = None
    ) -> dict[int, tuple[int | None, tuple[str, ...]]]:
        """The time when each of these versions surely stopped to hold, and its successors; current ones are absent.

        A successor that is in another scope since is not named.
        """
        condition, bound = _known(known_at)
        successors: dict[int, tuple[int | None, tuple[str, ...]]] = {}
        for row_id, ended, public_id in self._execute(
            "SELECT r.id, CASE WHEN x.certain THEN x.holds_from END, "
            "CASE WHEN n.scope_id = r.scope_id THEN n.public_id END FROM record r JOIN record c ON "
            "c.public_id = r.public_id AND c.recorded_until IS NULL JOIN supersession x ON x.old_id = c.id "
            "JOIN record n ON n.id = x.new_id WHERE "
            f"r.id {IN_ARRAY} AND {condition} ORDER BY x.holds_from, n.id",
            (self._id_array(ids), *bound),
        ):
            held_until, names = successors.get(row_id, (None, ()))
            named = names if public_id is None else (*names, public_id)
            successors[row_id] = ended if held_until is None else held_until, named
        return successors

    def undone(self, known_at: int, valid_at: int | None = None) -> list[int]:
        """Row ids of all versions that were superseded with certainty at `known_at` by what has been undone since.

        With `valid_at` only versions that, as it was known then, no longer held at that valid time.
        """
        ids = self._column(
            "SELECT DISTINCT x.old_id FROM supersession x JOIN record n ON n.id = x.new_id WHERE x.known_until > ?1 "
            "AND x.known_from <= ?1 AND x.certain AND (n.expires_at IS NULL OR n.expires_at > ?1) AND "
            "x.holds_from <= ?2",
            (known_at, NO_LIMIT if valid_at is None else valid_at),
        )
        return [*ids, *self._tx.records.closed_versions(ids)] if ids else []

    def lapses(self) -> list[tuple[int, int]]:
        """The times when superseded versions are current again, and their row ids; ascending."""
        # With ORDER BY, SQLite walks all records instead of the index of these few: 4 ms of 20,000.
        return sorted(self._execute("SELECT superseded_until, id FROM record WHERE superseded_until <= ?", (NO_LIMIT,)))

    def missing(self, row: Supersession) -> bool:
        """Whether the store lacks a supersession: between these records, and standing, or undone at the same times."""
        return not self._execute(
            "SELECT 1 FROM supersession WHERE old_id = ?1 AND new_id = ?2 AND known_until IS NOT DISTINCT FROM ?4 "
            "AND (known_until IS NULL OR known_from = ?3)",
            (row.old_id, row.new_id, row.known_from, row.known_until),
        ).get

    def edges(self, ids: Sequence[int]) -> list[Supersession]:
        """All supersessions of these records by others, undone ones too."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM supersession WHERE old_id {IN_ARRAY}", (self._id_array(ids),))
        return [_supersession(row) for row in rows]

    def between(self, filter: Filter) -> Iterator[NamedSupersession]:
        """All supersessions, undone ones too, between open records that a filter admits, in order of storing."""
        condition = self._tx.conditions.exported(filter)
        within = f"IN (SELECT r.id FROM record r WHERE {condition.sql})"
        rows = self._execute(
            "SELECT o.public_id, n.public_id, x.holds_from, x.known_from, x.known_until, x.reason, x.strength, "
            "x.certain, x.by_rule "
            "FROM supersession x JOIN record o ON o.id = x.old_id JOIN record n ON n.id = x.new_id "
            f"WHERE x.old_id {within} AND x.new_id {within} ORDER BY x.id",
            (*condition.values, *condition.values),
        )
        for row in rows:
            pair = read_row(row, NamedSupersession, "a supersession of")
            yield pair._replace(certain=bool(pair.certain), by_rule=bool(pair.by_rule))

    def replace(self, old_id: int, new_id: int, known_from: int, row: Supersession | None) -> None:
        """Store what is known of a supersession in place of what was, or (None) remove it, with its link."""
        dropped = "DELETE FROM supersession WHERE old_id = ? AND new_id = ? AND known_from = ? RETURNING known_until"
        if (None,) in self._rows(dropped, (old_id, new_id, known_from)):
            self._tx.links.drop(new_id, old_id, [LINK_TYPE])
            self.derive([old_id])
        if row is not None:
            self.put([row])

    def put(self, rows: Sequence[Supersession]) -> None:
        """Store supersessions, with links for the standing ones."""
        if not rows:
            return
        self._insert_many("supersession", _COLUMNS, rows)
        standing = [row for row in rows if row.known_until is None]
        self._tx.links.put(
            LinkRow(row.new_id, row.old_id, LINK_TYPE, row.strength, row.known_from, row.reason) for row in standing
        )
        self.derive(sorted({row.old_id for row in standing}))

    def undo(self, old_ids: Sequence[int], known_until: int) -> int:
        """End the standing supersessions of these records by others, and remove their links; returns how many."""
        standing = self.of_old(old_ids)
        self._execute_many(
            "UPDATE supersession SET known_until = CASE WHEN known_from > ?1 THEN known_from ELSE ?1 END "
            "WHERE old_id = ?2 AND new_id = ?3 AND known_until IS NULL",
            [(known_until, row.old_id, row.new_id) for row in standing],
        )
        for row in standing:
            self._tx.links.drop(row.new_id, row.old_id, [LINK_TYPE])
        self.derive(sorted({row.old_id for row in standing}))
        return len(standing)

    def hold_from(self, new_id: int, before: int, after: int) -> None:
        """Have what this record supersedes from one valid time on be superseded from another on."""
        self._execute(
            "UPDATE supersession SET holds_from = ? WHERE new_id = ? AND holds_from = ? AND known_until IS NULL",
            (after, new_id, before),
        )
        self.derive([row.old_id for row in self.of_new([new_id])])

    def derive(self, ids: Sequence[int]) -> None:
        """Set again what is derived from the supersessions of these records, by others."""
        while ids:
            standing = f"{DERIVED_SQL} AND x.old_id {IN_ARRAY} GROUP BY x.old_id"
            stored = f"SELECT id, superseded_at, superseded_until, held_until FROM record WHERE id {IN_ARRAY}"
            derived, before = (
                {row[0]: row[1:] for row in self._execute(sql, (self._id_array(ids),))} for sql in (standing, stored)
            )
            changed = [row_id for row_id in before if before[row_id] != derived.get(row_id, (None, None, None))]
            versions: list[int] = []
            for row_id in changed:
                of_record = [row_id, *self._tx.records.closed_versions([row_id])]
                self._execute(
                    f"UPDATE record SET superseded_at = ?, superseded_until = ?, held_until = ? WHERE id {IN_ARRAY}",
                    (*derived.get(row_id, (None, None, None)), self._id_array(of_record)),
                )
                versions += of_record
            if changed:
                self._tx.statements.list_keys(changed)
                self._tx.changes.append_ids("update", versions)
            # Whether it stands in the place of others depends on its own successors only where it expires.
            ids = self._column(
                "SELECT DISTINCT x.old_id FROM supersession x JOIN record n ON n.id = x.new_id "
                f"WHERE x.known_until IS NULL AND n.expires_at IS NOT NULL AND x.new_id {IN_ARRAY}",
                (self._id_array(changed),),
            )

    def rebuild(self) -> None:
        """Make the links and what is derived on records again; supersessions of what is no open record are removed."""
        ends = "(SELECT id FROM record WHERE recorded_until IS NULL)"
        self._execute(f"DELETE FROM supersession WHERE old_id NOT IN {ends} OR new_id NOT IN {ends}")
        self._execute(f"DELETE FROM link WHERE type = '{LINK_TYPE}'")
        self._execute(
            "INSERT INTO link (source_id, target_id, type, strength, created_at, reason) SELECT new_id, old_id, "
            f"'{LINK_TYPE}', strength, known_from, reason FROM supersession WHERE known_until IS NULL"
        )
        self._execute(
            "UPDATE record SET superseded_at = NULL, superseded_until = NULL, held_until = NULL "
            "WHERE coalesce(superseded_at, superseded_until, held_until) IS NOT NULL"
        )
        self.derive(self._column("SELECT DISTINCT old_id FROM supersession WHERE known_until IS NULL"))

    def losing(self, new_ids: Sequence[int]) -> tuple[list[int], list[Supersession]]:
        """The records that these ones supersede, before they are purged, and what supersedes them from then on.

        Where the purged one has successors itself, they follow: what was replaced twice does not become current.
        """
        purged = set(new_ids)
        olds: dict[int, list[Supersession]] = {}
        for row in self.of_new(new_ids):
            if row.old_id not in purged:
                olds.setdefault(row.old_id, []).append(row)
        following: list[Supersession] = []
        for old_id, lost in olds.items():
            standing = self.of_old([old_id])
            if len(standing) > len(lost):
                continue
            # The supersessions that lead from purged records to the first that stay.
            edges, seen, ids = list[Supersession](), set[int](), [row.new_id for row in lost]
            while ids:
                seen.update(ids)
                further = self.of_old(ids)
                edges += [edge for edge in further if edge.new_id not in purged]
                ids = [edge.new_id for edge in further if edge.new_id in purged and edge.new_id not in seen]
            known_from = max(row.known_from for row in (*lost, *edges))
            following += {
                edge.new_id: edge._replace(
                    old_id=old_id, holds_from=min(row.holds_from for row in standing), known_from=known_from
                )
                for edge in edges
            }.values()
        return sorted(olds), following


def _supersession(row: tuple[Any, ...]) -> Supersession:
    return Supersession(*row[:-2], *map(bool, row[-2:]))


def _known(known_at: int | None) -> tuple[str, tuple[int, ...]]:
    """The supersessions `x` that stand, or that stood as the store knew it at a time."""
    if known_at is None:
        return "x.known_until IS NULL", ()
    return "x.known_from <= ? AND (x.known_until IS NULL OR x.known_until > ?)", (known_at, known_at)


# Records that wait to be compared, pairs that wait to be judged, and statements that were repeated.


class Uncompared(NamedTuple):
    """The records from `first_id` to `last_id` wait to be compared, as a policy in JSON says."""

    first_id: int
    last_id: int
    policy: str


class Judgement(NamedTuple):
    """A pair of open records; the rules leave open whether the new one supersedes the old."""

    old_id: int
    new_id: int
    confidence: float
    reason: str
    created_at: int


class Occurrence(NamedTuple):
    """A further time at which a statement was remembered; `text` where it differs from the record's."""

    at: Moment
    text: str | None


@lru_cache(maxsize=16)
def read_policy(policy: str) -> WritePolicy | None:
    """Return the policy of records that wait; None if it cannot be read."""
    try:
        return WritePolicy.from_dict(msgspec.json.decode(policy, type=dict[str, Any]))
    except (InvalidInput, msgspec.MsgspecError):
        return None


class Comparisons(Repository):
    """The tables `uncompared`, `judgement` and `occurrence`."""

    def first(self, limit: int) -> Uncompared | None:
        """The first `limit` records that wait under a policy that can be read, or fewer; None if none does."""
        entries = (entry for entry in self._entries() if read_policy(entry.policy) is not None)
        entry = next(entries, None)
        return None if entry is None else entry._replace(last_id=min(entry.last_id, entry.first_id + limit - 1))

    def unreadable(self) -> list[Uncompared]:
        """List the records that wait under an unreadable policy: a newer version's, or a damaged one."""
        return [entry for entry in self._entries() if read_policy(entry.policy) is None]

    def mend(self) -> None:
        """Have records with an unreadable policy wait under the default one."""
        usual = msgspec.json.encode(WritePolicy().to_dict()).decode()
        for entry in self.unreadable():
            self._execute("UPDATE uncompared SET policy = ? WHERE first_id = ?", (usual, entry.first_id))

    def _entries(self) -> list[Uncompared]:
        rows = self._rows("SELECT first_id, last_id, policy FROM uncompared ORDER BY first_id")
        return [Uncompared(*row) for row in rows]

    def without(self, ids: Sequence[int]) -> Sequence[int]:
        """Return these records without the waiting ones."""
        ranges = self.ranges()
        if not ranges:
            return ids
        first, last = np.array(ranges, dtype=np.int64).T
        before = np.searchsorted(first, ids, side="right") - 1
        waiting = (before >= 0) & (np.asarray(ids) <= last[before])
        return [row_id for row_id, waits in zip(ids, waiting.tolist(), strict=True) if not waits]

    def ranges(self) -> list[tuple[int, int]]:
        """The first and the last row id of each range that waits, ascending."""
        return self._rows("SELECT first_id, last_id FROM uncompared ORDER BY first_id")

    def count(self) -> int:
        """The number of waiting records, without the ones forgotten by now."""
        return self._number("SELECT count(*) FROM uncompared u JOIN record r ON r.id BETWEEN u.first_id AND u.last_id")

    def add(self, ids: Sequence[int], policy: str) -> None:
        """Have records wait to be compared under a policy."""
        self._insert_many("uncompared", "first_id, last_id, policy", [(*run, policy) for run in runs_of(ids)])

    def done(self, first: Uncompared) -> None:
        """Take what `first` returned off the waiting list."""
        following = self._column(
            "SELECT min(r.id) FROM uncompared u JOIN record r ON r.id > ? AND r.id <= u.last_id WHERE u.first_id = ?",
            (first.last_id, first.first_id),
        )[0]
        if following is None:
            self._execute("DELETE FROM uncompared WHERE first_id = ?", (first.first_id,))
        else:
            self._execute("UPDATE uncompared SET first_id = ? WHERE first_id = ?", (following, first.first_id))

    def pairs(self, limit: int) -> list[Judgement]:
        """The first pairs that wait to be judged, in order of their row ids."""
        rows = self._execute(
            "SELECT old_id, new_id, confidence, reason, created_at FROM judgement ORDER BY old_id, new_id LIMIT ?",
            (limit,),
        )
        return [Judgement(*row) for row in rows]

    def count_pairs(self) -> int:
        """The number of pairs that wait to be judged."""
        return self._number("SELECT count(*) FROM judgement")

    def put_pairs(self, rows: Iterable[Judgement]) -> None:
        """Queue pairs for judging."""
        self._execute_many(
            "INSERT INTO judgement VALUES (?, ?, ?, ?, ?) ON CONFLICT (old_id, new_id) DO UPDATE SET "
            "confidence = excluded.confidence, reason = excluded.reason, created_at = excluded.created_at",
            [*rows],
        )

    def drop_pairs(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Remove pairs (old, new)."""
        self._execute_many("DELETE FROM judgement WHERE old_id = ? AND new_id = ?", [*pairs])

    def occurrences(self, row_ids: Sequence[int]) -> dict[int, list[Occurrence]]:
        """The further times of these records, oldest first, by row id; records without any are absent."""
        by_id: dict[int, list[Occurrence]] = {}
        for row_id, *row in self._execute(
            f"SELECT record_id, at, text FROM occurrence WHERE record_id {IN_ARRAY} ORDER BY record_id, at, id",
            (self._id_array(row_ids),),
        ):
            by_id.setdefault(row_id, []).append(read_row(tuple(row), Occurrence, "an occurrence at"))
        return by_id

    def add_occurrences(self, rows: Iterable[tuple[int, int, str | None]]) -> None:
        """Add further times, given as row id, time and (where it differs from the record's) text."""
        self._insert_many("occurrence", "record_id, at, text", [*rows])

    def last_occurrence(self) -> int:
        """The number of the newest further time; a new one is no change of the feed."""
        return self._number("SELECT coalesce(max(id), 0) FROM occurrence")

    def said_after(self, occurrence: int) -> list[int]:
        """The records with further times after the one of this number."""
        return self._column("SELECT record_id FROM occurrence WHERE id > ?", (occurrence,))

    def move_occurrences(self, row_id: int, to_id: int) -> None:
        """Leave the times of a text that has been replaced to its closed version."""
        self._execute("UPDATE occurrence SET record_id = ? WHERE record_id = ?", (to_id, row_id))
