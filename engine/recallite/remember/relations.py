"""Relations between memories: which of two stands, what superseded what, and links.

What superseded what is data: it is checked as a whole, written in one transaction, and can be undone. Nothing is
deleted: superseded memories take no room in plain recall, and `history`, `as_of`, `valid_at` and `include_superseded`
show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast, get_args

import msgspec

from recallite.engine import Engine
from recallite.errors import Conflict, InvalidInput, NotFound, RecalliteError
from recallite.model import checks
from recallite.model.authority import Authority, authority_of, is_lower, rank_of, speaker
from recallite.model.filters import CHUNK_KIND, MESSAGE_KIND, Filter
from recallite.model.records import Direction, Link, Reached, Record
from recallite.model.reports import UndonePair
from recallite.remember.prepare import check_ids, check_order
from recallite.store.columns import Row, beginning, stated_at
from recallite.store.sql.derived import StatementCandidate
from recallite.store.sql.relations import (
    LinkRow,
    NamedSupersession,
    Occurrence,
    Standpoint,
    Supersession,
)
from recallite.store.transaction import Reader, Writer
from recallite.system.messages import shown
from recallite.system.telemetry import traced
from recallite.text.standing import whose
from recallite.text.topics import same_topic

Known: TypeAlias = Row | StatementCandidate
"""A record that a row is compared with: a row of the batch, or a stored one."""


class Claim(NamedTuple):
    """A statement as `which_stands` weighs it; times in microseconds.

    - told_at: all times at which it was said, ascending
    - authority: the rank of who said it
    - expires: whether it ends by itself
    - over_at: when what it tells of was over, if its text says so: "I moved to Rome in 2010"
    """

    told_at: tuple[int, ...]
    authority: int
    pinned: bool
    expires: bool
    over_at: int | None

    @classmethod
    def of(cls, known: Known, told_at: tuple[int, ...]) -> Claim:
        """Return the claim of a record that was said at these times."""
        over_at = known.valid_until if known.valid_resolved else None
        return cls(told_at, known.authority, known.pinned, known.expires_at is not None, over_at)

    @classmethod
    def of_record(cls, reader: Reader, row_id: int, record: Record, repeated: Iterable[Occurrence], now: int) -> Claim:
        """Return the claim of a record as callers have it."""
        created_at, recorded_from, valid_from, valid_until, updated_at = (
            checks.check_time(time, "time")
            for time in (
                record.created_at, record.recorded_from, record.valid_from, record.valid_until, record.updated_at
            )
        )  # fmt: skip
        told_at = stated_at(created_at or 0, recorded_from or 0, valid_from, resolved=record.valid_resolved)
        over_at = valid_until if record.valid_resolved else None
        times = {told_at, *(again.at for again in repeated)}
        if max(times) > now:
            times = without_future(times, now, written_at(reader, row_id, updated_at or 0, now))
        return cls(
            tuple(sorted(times)), rank_of(record.authority), record.pinned, record.expires_at is not None, over_at
        )


def which_stands(one: Claim, two: Claim) -> Claim | None:
    """Return which of two statements that exclude each other stands: the one that was said last, if it may.

    It may not if it is of a lower authority, if the other is pinned or stays when it expires, or if it tells of what
    was over when the other was told. Then neither stands in the place of the other, as for two that were said last at
    one moment. Every write decides by this alone: one by one, many at a time, compared later, imported or mended.
    """
    if one.told_at[-1] == two.told_at[-1]:
        return None
    new, old = sorted((one, two), key=lambda claim: claim.told_at[-1], reverse=True)
    past = new.over_at is not None and new.over_at <= old.told_at[-1]
    allowed = outranks(new.authority, old.authority) and not old.pinned and (old.expires or not new.expires)
    return new if allowed and not past else None


def without_future(times: Set[int], now: int, written_at: int) -> set[int]:
    """Return the times at which something was said, those that a clock ahead has dated after now as `written_at`."""
    return {moment if moment <= now else written_at for moment in times}


def written_at(reader: Reader, row_id: int, updated_at: int, now: int, others: Sequence[int] = ()) -> int:
    """Return when a record was written; if its clock was ahead, as its neighbours and `others` tell."""
    return updated_at if updated_at <= now else reader.records.written_by(row_id, now, others)


def outranks(authority: int, other: int) -> bool:
    """Whether a statement of one rank may replace one of another: a lower rank never does."""
    return authority >= other


def said_after(new: Claim, old: Claim) -> int | None:
    """Return the first time at which one was said after the last of the other; None if it never was."""
    return next((told_at for told_at in new.told_at if told_at > old.told_at[-1]), None)


def adds_nothing(row: Row, other: Known) -> bool:
    """Whether a record has all that a row of the same statement gives.

    At another valid time it is another event.
    """
    return (
        row.context == other.context and row.authority == other.authority
        and (row.valid_from, row.valid_until, row.expires_at) == (other.valid_from, other.valid_until, other.expires_at)
        and row.topic in (None, other.topic) and row.source in (None, other.source)
        and row.metadata in (None, other.metadata) and row.tags in ((), other.tags)
        and row.pinned <= other.pinned and (row.text == other.text or same_topic(row.text, other.text))
    )  # fmt: skip


def of_two_days(one: Known | Record, other: Known | Record) -> bool:
    """Whether each text tells of the day or week in which it was told, and these are two: "this evening"."""
    periods: list[tuple[Any, Any]] = []
    for known in (one, other):
        begin: Any = known.valid_from
        end: Any = known.valid_until
        if not known.valid_resolved or begin is None or end is None or not begin <= known.created_at < end:
            return False
        periods.append((begin, end))
    (_, first_end), (next_begin, _) = sorted(periods)
    return bool(first_end <= next_begin)


def of_one_subject(row: Row, other: Known) -> bool:
    """Whether a row and a record may be about the same thing, by `on_one_subject`."""
    if row.metadata == other.metadata:
        return on_one_subject((row.topic, other.topic), {}, {})
    one, two = (msgspec.json.decode(known.metadata or b"{}") for known in (row, other))
    return on_one_subject((row.topic, other.topic), one, two)


def on_one_subject(topics: tuple[str | None, str | None], one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether neither the topics nor the metadata of two records say that they are about different things."""
    if None not in topics and topics[0] != topics[1]:
        return False
    return whose(one) == whose(two)


# Supersession: one memory in the place of another.

KINDS_THAT_LAST = {
    "episode": "an episode, which happened",
    CHUNK_KIND: "a chunk of a document: change the document and ingest it again",
    MESSAGE_KIND: "a message of a session, which is kept as it was said",
    "procedure": "a procedure: procedures.save makes a new version",
}
"""Kinds of which nothing supersedes anything."""
_MAX_REASON_CHARS = 1_000
_MOST_PAIRS = 10_000


class RowRefused(RecalliteError):
    """A row names records that it cannot supersede; the transaction is to be rolled back."""

    def __init__(self, row: Row, error: RecalliteError) -> None:
        super().__init__(str(error))
        self.row, self.error = row, error


def find_row_id(reader: Reader, public_id: object, base: str, *shared: str) -> int:
    """Find the row id of a current record that a handle bound to `base` may see; NotFound otherwise."""
    ids = find_row_ids(reader, [public_id], base, *shared)
    if ids:
        return ids[checks.plain_str(str(public_id))]
    where = "" if base == "/" else " in this scope"
    raise NotFound(f"no memory {shown(public_id)}{where}: it was never stored, was forgotten, or is elsewhere")


def find_row_ids(reader: Reader, public_ids: Sequence[object], base: str, *shared: str) -> dict[str, int]:
    """Find the row ids of the current records that a handle bound to `base` may see, by id, in this order.

    It also sees those of the `shared` scopes.
    """
    names = dict.fromkeys(checks.plain_str(public_id) for public_id in public_ids if _may_be_id(public_id))
    ids: dict[str, int] = {}
    for scope in (base, *shared):
        ids |= reader.records.find_ids([*names], scope)
    return {name: ids[name] for name in names if name in ids}


def _may_be_id(public_id: object) -> TypeGuard[str]:
    """Whether this can be the id of a record: a str that the store can hold."""
    try:
        return isinstance(public_id, str) and "\x00" not in public_id and bool(public_id.encode())
    except UnicodeEncodeError:  # a lone surrogate
        return False


def check_speaker(public_id: str, authority: Authority, verb: str) -> None:
    """Refuse what a lower authority would do to the word of a higher one."""
    if is_lower(speaker(), authority):
        raise InvalidInput(
            f"{public_id} is the word of the {authority}, which the {speaker()} cannot {verb}: remember what is true "
            f"now, and both are shown. The {authority} can with the command line, the page or Memory, or gives a tool "
            f"or MCP server authority={authority!r}",
            "authority",
        )


def check_speaker_of(reader: Reader, row_ids: Sequence[int], verb: str) -> None:
    """Refuse the same of several open records."""
    if speaker() == "user" or not row_ids:
        return
    standpoints = reader.supersessions.standpoints(row_ids).values()
    highest = max(standpoints, key=lambda standpoint: standpoint.authority, default=None)
    if highest is not None:
        check_speaker(highest.public_id, authority_of(highest.authority), verb)


@traced("supersede")
def supersede(
    engine: Engine, old: object, new: object, *, reason: object, strength: float, at: object, base: str
) -> None:
    """Supersede records: all of the old by all of the new, or none."""
    olds, news = check_ids(old, "old"), check_ids(new, "new")
    for name, ids in (("old", olds), ("new", news)):
        if not ids:
            raise InvalidInput(f"{name} names no memory: give an id, or a list of ids")
    stated_reason, share = check_reason(reason), checks.check_unit(strength, "strength")
    stated_reason = None if stated_reason is None else engine.write_policy.clean(stated_reason)
    moment = checks.check_time(at, "at")
    with engine.atomic() as writer:
        old_ids = [find_row_id(writer, public_id, base) for public_id in olds]
        new_ids = [find_row_id(writer, public_id, base) for public_id in news]
        put_in_place(
            writer, old_ids, new_ids, holds_from=moment, known_from=checks.now_us(), reason=stated_reason,
            strength=share,
        )  # fmt: skip


def supersede_named(writer: Writer, rows: Sequence[Row], ids: Sequence[int]) -> None:
    """Supersede the records that rows name which have just been inserted."""
    for row, row_id in zip(rows, ids, strict=True):
        if row.supersedes:
            try:
                olds = [find_row_id(writer, public_id, row.base) for public_id in row.supersedes]
                put_in_place(writer, olds, [row_id])
            except RecalliteError as reason:
                raise RowRefused(row, reason) from reason


def put_in_place(
    writer: Writer,
    old_ids: Sequence[int],
    new_ids: Sequence[int],
    *,
    holds_from: int | None = None,
    known_from: int | None = None,
    reason: str | None = None,
    strength: float = 1.0,
    certain: bool = True,
    by_rule: bool = False,
) -> None:
    """Record that each new record supersedes each old one, given as row ids of open versions.

    `holds_from` is the valid time from which they hold: when each begins, by default. The store knows it `known_from`:
    by default, as of something that was just written, as soon as both were stored. Old records are left out of what is
    current only if it is `certain`; `by_rule` says that no caller said it.

    Raises InvalidInput, or Conflict; what the transaction has written must then be rolled back.
    """
    standpoints = writer.supersessions.standpoints([*old_ids, *new_ids])
    olds, news = [standpoints[row_id] for row_id in old_ids], [standpoints[row_id] for row_id in new_ids]
    if len(olds) * len(news) > _MOST_PAIRS:
        raise InvalidInput(
            f"{len(olds):,} memories superseded by {len(news):,} are {len(olds) * len(news):,} pairs: at most "
            f"{_MOST_PAIRS:,} in one call"
        )
    _check_pairs(olds, news)
    now = checks.now_us()
    repeated = _superseded_already(writer, olds, {new.row_id for new in news}, now)
    _check_acyclic(writer, olds, news)
    rows = _corrected(writer, repeated, holds_from, now, reason, strength, certain, by_rule)
    for old in olds:
        if old.row_id not in repeated:
            for new in news:
                begins = new.begins_at if holds_from is None else holds_from
                known = min(max(new.recorded_from, old.recorded_from), now) if known_from is None else known_from
                row = Supersession(old.row_id, new.row_id, begins, known, None, reason, strength, certain, by_rule)
                rows.append(row)
    for row in rows:
        old, new = standpoints[row.old_id], standpoints[row.new_id]
        # A record that a clock ahead of ours has written begins no later than now.
        if row.holds_from < old.begins_at and old.recorded_from <= now:
            raise InvalidInput(
                f"{new.public_id} holds from {_iso(row.holds_from)} and {old.public_id} only from "
                f"{_iso(old.begins_at)}: what began later cannot be superseded by what began before; swap them, or "
                "give `at`"
            )
    writer.supersessions.put(rows)


def settle_change(writer: Writer, row_id: int, now: Record, columns: dict[str, Any]) -> None:
    """Refuse a change of `columns` that a record's supersessions do not allow, and have others follow it.

    Given times replace times that were found in the text.
    """
    created = checks.check_time(now.created_at, "created_at") or 0
    was, until = (checks.check_time(time, "time") for time in (now.valid_from, now.valid_until))
    if "valid_resolved" not in columns and ("valid_from" in columns or "valid_until" in columns):
        begins = columns.get("valid_from", None if now.valid_resolved else was)
        ends = columns.get("valid_until", None if now.valid_resolved else until)
        check_order(begins, ends, created)
        columns |= {"valid_from": begins, "valid_until": ends, "valid_resolved": False}
    olds, news = writer.supersessions.of_new([row_id]), writer.supersessions.of_old([row_id])
    if not olds and not news:
        return
    if columns.get("scope", now.scope) != now.scope or columns.get("kind") in KINDS_THAT_LAST:
        what = "scope" if columns.get("scope", now.scope) != now.scope else "kind"
        remedy = " and ".join(
            f"restore({standpoint!r})" for standpoint in (*now.supersedes, *((now.id,) if news else ()))
        )
        raise InvalidInput(
            f"{now.id} {'is superseded' if news else 'supersedes others'}, so its {what} cannot become "
            f"{shown(columns[what])}: undo that first, with {remedy}"
        )
    before = beginning(created, was, resolved=now.valid_resolved)
    resolved = bool(columns.get("valid_resolved", now.valid_resolved))
    begins = beginning(created, columns.get("valid_from", was), resolved=resolved)
    if begins == before:
        return
    held_until = min((row.holds_from for row in news), default=begins)
    others = writer.supersessions.standpoints([row.old_id for row in olds if row.holds_from == before])
    if begins > held_until or any(standpoint.begins_at > begins for standpoint in others.values()):
        raise InvalidInput(
            f"valid_from is {_iso(begins)}, but {now.id} was superseded by what holds from {_iso(held_until)}"
            if begins > held_until
            else f"valid_from is {_iso(begins)}, but what {now.id} supersedes began later: undo that with restore first"
        )
    writer.supersessions.hold_from(row_id, before, begins)


def check_pair(writer: Writer, old_id: int, new_id: int, *, standing: bool) -> None:
    """Refuse a pair of records if one cannot supersede the other; what is not `standing` makes no cycle."""
    standpoints = writer.supersessions.standpoints([old_id, new_id])
    olds, news = [standpoints[old_id]], [standpoints[new_id]]
    _check_pairs(olds, news)
    if standing:
        _check_acyclic(writer, olds, news)


def undo(engine: Engine, public_id: str, *, base: str) -> Record:
    """Make a superseded record current again; returns it."""
    with engine.atomic() as writer:
        row_id = find_row_id(writer, public_id, base)
        successors = [row.new_id for row in writer.supersessions.of_old([row_id])]
        check_speaker_of(writer, [row_id, *successors], "restore")
        if not writer.supersessions.undo([row_id], checks.now_us()):
            raise InvalidInput(
                f"{public_id} is not superseded: give the version to restore, an index into history(id, chain=False)"
            )
        return writer.records.get(row_id, outcome="updated")


def undone_pairs(engine: Engine, base: str) -> list[UndonePair]:
    """Return the pairs that a rule had superseded and `restore` undid, the last undone first.

    Left out is what stands again by now, what a caller overruled or its expiry ended, and texts that are gone.
    """
    with engine.store.read() as reader:
        rows = [*reader.supersessions.between(Filter().within(base).replaced(include_superseded=True))]
        standing = {(row.old, row.new) for row in rows if row.known_until is None}
        ended = [row for row in rows if row.known_until is not None and (row.old, row.new) not in standing]
        ended = [row for row in ended if row.by_rule]
        names = {name for row in ended for name in (row.old, row.new)}
        versions = {name: reader.records.history(name, base) for name in names}
    by_old: dict[str, list[NamedSupersession]] = {}
    for row in rows:
        by_old.setdefault(row.old, []).append(row)
    pairs: dict[tuple[str, str], UndonePair] = {}
    for row in ended:
        until = row.known_until
        if until is None or any(
            other.known_from <= until and (other.known_until is None or other.known_until > until)
            for other in by_old[row.old]
        ):
            continue
        undone_at = checks.to_datetime(until)
        of_both = [version for name in (row.old, row.new) for version in versions[name]]
        then = [version for version in of_both if was_current(version, undone_at)]
        if len(then) == 2 and (then[1].expires_at is None or then[1].expires_at > undone_at):
            pairs[row.old, row.new] = UndonePair(
                old=then[0].text, new=then[1].text, reason=row.reason or "", confidence=row.strength,
                undone_at=undone_at, old_id=row.old, new_id=row.new,
            )  # fmt: skip
    return sorted(pairs.values(), key=lambda pair: pair.undone_at, reverse=True)


def was_current(version: Record, moment: datetime) -> bool:
    """Whether this version was the current one at a time."""
    return version.recorded_from <= moment and (version.recorded_until is None or version.recorded_until > moment)


def check_reason(reason: object) -> str | None:
    """A short text; None is none."""
    return None if reason is None else checks.check_text(reason, _MAX_REASON_CHARS, "reason")


def _check_pairs(olds: Sequence[Standpoint], news: Sequence[Standpoint]) -> None:
    """Refuse what is no pair of statements of one scope, a lower authority over a higher one, and changes of pins.

    Only the user may supersede a pinned memory. The author counts, not the caller: a page that the user stores
    is still the page's word.
    """
    for standpoint in (*olds, *news):
        if standpoint.kind in KINDS_THAT_LAST:
            raise InvalidInput(f"{standpoint.public_id} is {KINDS_THAT_LAST[standpoint.kind]}")
    pairs = [*product(olds, news)]
    for old, new in pairs:
        if old.row_id == new.row_id:
            raise InvalidInput(f"{old.public_id} cannot supersede itself")
        if old.scope != new.scope:
            raise InvalidInput(
                f"{old.public_id} is in another scope than {new.public_id}: a memory supersedes those of its own"
            )
    for old, new in pairs:
        ranks = authority_of(new.authority), authority_of(old.authority)
        if not outranks(new.authority, old.authority):
            raise InvalidInput(
                f"{old.public_id} is the word of the {ranks[1]}, and stays beside {new.public_id}, the word of the "
                f"{ranks[0]}: only the {ranks[1]} can say which one holds, by remembering it as their own word "
                f"(without a source of the web or a context of another speaker) with supersedes={old.public_id!r}",
                "authority",
            )
        if old.pinned and speaker() != "user":
            raise InvalidInput(
                f"{old.public_id} is pinned, and stays beside {new.public_id}: only the user can say which one holds",
                "authority",
            )


def _superseded_already(writer: Writer, olds: Sequence[Standpoint], news: set[int], now: int) -> set[int]:
    """Return the old records that these new ones supersede already.

    One is free again if all its successors have expired, or none of them is certain.
    """
    by_old: dict[int, list[int]] = {}
    certain = set[int]()
    for row in writer.supersessions.of_old([old.row_id for old in olds]):
        by_old.setdefault(row.old_id, []).append(row.new_id)
        if row.certain:
            certain.add(row.old_id)
    still_superseded: set[int] = set()
    for old in olds:
        if old.row_id not in by_old:
            continue
        successors = writer.supersessions.standpoints(by_old[old.row_id])
        if any(lapsed == old.row_id and moment <= now for moment, lapsed in writer.supersessions.lapses()):
            expired = max(standpoint.expires_at or now for standpoint in successors.values())
            writer.supersessions.undo([old.row_id], min(expired, now))
        elif successors.keys() == news:
            still_superseded.add(old.row_id)
        elif old.row_id not in certain:
            writer.supersessions.undo([old.row_id], now)
        else:
            names = " and ".join(standpoint.public_id for standpoint in successors.values())
            raise Conflict(
                f"{old.public_id} is superseded by {names}: supersede that one, restore({old.public_id!r}) first, or "
                "give all that supersede it in one call",
                "superseded",
            )
    return still_superseded


def _corrected(
    writer: Writer, repeated: set[int], holds_from: int | None, now: int, reason: str | None, strength: float,
    certain: bool, by_rule: bool,
) -> list[Supersession]:  # fmt: skip
    """Return the supersessions that are repeated with another reason, time or strength, as they will be stored."""
    before = writer.supersessions.of_old(sorted(repeated))
    after = [
        row._replace(
            reason=row.reason if reason is None else reason,
            holds_from=row.holds_from if holds_from is None else holds_from,
            strength=row.strength if strength == 1.0 else strength,
            certain=row.certain or certain,
            by_rule=row.by_rule and by_rule,
        )
        for row in before
    ]
    changed = {row.old_id for row, corrected in zip(before, after, strict=True) if row != corrected}
    writer.supersessions.undo(sorted(changed), now)
    return [corrected._replace(known_from=now) for corrected in after if corrected.old_id in changed]


def _check_acyclic(writer: Writer, olds: Sequence[Standpoint], news: Sequence[Standpoint]) -> None:
    """Refuse an old record that follows, through others, from a new one."""
    following = writer.supersessions.following([standpoint.row_id for standpoint in news])
    for old in olds:
        if old.row_id in following:
            raise InvalidInput(
                f"{old.public_id} supersedes {news[0].public_id} already, directly or through others: "
                "a memory cannot be superseded by what it supersedes"
            )


def _iso(moment: int) -> str:
    return checks.to_datetime(moment).isoformat()


# Links: create, remove, list and traverse them.

LINK_TYPES = ("similar", "sequential", "causal", "contradicts", "supports", "elaborates")
SUPERSEDES = "supersedes"
"""The type of links that `supersede` makes and `restore` removes."""


def link(engine: Engine, source: str, target: str, type: str, strength: float, *, base: str) -> None:
    """Link two records; linking them again changes the strength."""
    type = check_link_type(type)
    strength = checks.check_unit(strength, "strength")
    with engine.atomic() as writer:
        ends = find_row_id(writer, source, base), find_row_id(writer, target, base)
        if ends[0] == ends[1]:
            raise InvalidInput(f"{source} cannot be linked to itself")
        writer.links.put([LinkRow(*ends, type, strength, checks.now_us())])


def unlink(engine: Engine, source: str, target: str, type: str | None, *, base: str) -> int:
    """Remove the link of a type, or every link, from one record to another; returns how many there were."""
    if type == SUPERSEDES:
        raise InvalidInput("links of type 'supersedes' show what supersede has done: undo it with restore(target)")
    types = [] if type is None else [check_link_type(type)]
    with engine.atomic() as writer:
        ends = find_row_id(writer, source, base), find_row_id(writer, target, base)
        if type in (None, "contradicts", "supports"):
            check_speaker_of(writer, ends, "unlink")
        return writer.links.drop(*ends, types)


def neighbors(engine: Engine, id: str, types: Sequence[str], direction: str, *, base: str) -> list[Link]:
    """The links of a record to others that the handle may see, strongest first."""
    way, shown_types = _check_sides(direction, types)
    with engine.store.read() as reader:
        row_id = find_row_id(reader, id, base)
        sides = {"out": (False,), "in": (True,), "both": (False, True)}[way]
        links = [link for side in sides for link in reader.links.of(row_id, incoming=side, types=shown_types)]
        ends = [link.target if link.source == id else link.source for link in links]
        seen = reader.records.find_ids(ends, base)
    visible = [link for link, end in zip(links, ends, strict=True) if end in seen]
    return sorted(visible, key=lambda link: -link.strength)


def traverse(
    engine: Engine, id: str, depth: int, types: Sequence[str], direction: str, limit: int | None, *, base: str
) -> list[Reached]:
    """The records that links lead to from one, breadth first, each once, at its least distance.

    Paths lead only through records that a recall of the handle would see. Of the shortest paths the strongest counts;
    the strength of a path is the product over its links. Sorted by distance, then strength, then in the order stored.
    """
    way, shown_types = _check_sides(direction, types)
    depth = checks.check_count(depth, "depth")
    most = None if limit is None else checks.check_count(limit, "limit")
    visible, now = Filter(include_superseded=True).within(base), checks.now_us()
    with engine.store.read() as reader:
        edge = {find_row_id(reader, id, base): 1.0}
        seen = set(edge)
        reached: list[tuple[int, int, float]] = []
        for distance in range(1, depth + 1):
            following: dict[int, float] = {}
            for near, far, strength in reader.links.steps(list(edge), way, shown_types, visible, now):
                if far not in seen:
                    following[far] = max(following.get(far, 0.0), edge[near] * strength)
            edge = following
            seen |= edge.keys()
            ordered = sorted(edge, key=lambda far: (-following[far], far))
            reached += [(far, distance, edge[far]) for far in ordered]
            if not edge or (most is not None and len(reached) >= most):
                break
        reached = reached[:most]
        ids = sorted(far for far, _, _ in reached)
        records = dict(zip(ids, reader.records.get_many(ids), strict=True))
    return [Reached(record=records[far], distance=distance, strength=strength) for far, distance, strength in reached]


def check_link_type(type: object) -> str:
    """One of the types of links that `link` makes."""
    if isinstance(type, str) and type == SUPERSEDES:
        raise InvalidInput("link makes no links of type 'supersedes': use supersede(old, new)")
    return checks.check_choice(type, "type", LINK_TYPES)


def _check_sides(direction: object, types: Sequence[object]) -> tuple[Direction, list[str]]:
    way = cast("Direction", checks.check_choice(direction, "direction", get_args(Direction)))
    return way, [checks.check_choice(type, "type", (*LINK_TYPES, SUPERSEDES)) for type in types]
