"""Two statements: when each was told, which of them stands, and whether both are about the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from recallite.model.authority import rank_of
from recallite.model.checks import check_time
from recallite.model.records import Record
from recallite.store.values import Occurrence, Row, Standpoint, StatementCandidate, beginning, telling
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
    def of(cls, known: Known, again: Iterable[int] = ()) -> Claim:
        """Return the claim of a record, which was said again at some times that the store does not have yet."""
        further = known.repeated_at if isinstance(known, StatementCandidate) else ()
        if isinstance(known, Row) and known.repeated:
            further = tuple(at for at, _ in known.repeated)
        told_at = telling(known.created_at, known.recorded_from, known.valid_from, resolved=known.valid_resolved)
        over_at = known.valid_until if known.valid_resolved else None
        times = tuple(sorted({told_at, *further, *again}))
        return cls(times, known.authority, known.pinned, known.expires_at is not None, over_at)

    @classmethod
    def of_record(cls, record: Record, repeated: Iterable[Occurrence] = ()) -> Claim:
        """Return the claim of a record as callers have it."""
        created_at, recorded_from, valid_from, valid_until = (
            check_time(time, "time")
            for time in (record.created_at, record.recorded_from, record.valid_from, record.valid_until)
        )
        told_at = telling(created_at or 0, recorded_from or 0, valid_from, resolved=record.valid_resolved)
        over_at = valid_until if record.valid_resolved else None
        times = tuple(sorted({told_at, *(again.at for again in repeated)}))
        return cls(times, rank_of(record.authority), record.pinned, record.expires_at is not None, over_at)


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


def outranks(authority: int, other: int) -> bool:
    """Whether the word of one rank may take the place of that of another: a lower one never does."""
    return authority >= other


def said_after(new: Claim, old: Claim) -> int | None:
    """Return the first time at which one was said after the last of the other; None if it never was."""
    return next((told_at for told_at in new.told_at if told_at > old.told_at[-1]), None)


def begins_at(known: Known | Standpoint) -> int:
    """Return the time from which a record holds."""
    if isinstance(known, Row):
        return beginning(known.created_at, known.valid_from, resolved=known.valid_resolved)
    return known.begins_at


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
