"""A row and a record that it is compared with: when each holds, whose word counts, what both are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from recallite.store.supersession_values import Standpoint, StatementCandidate, beginning, telling
from recallite.store.values import Row
from recallite.text.topics import same_topic
from recallite.text.whose import whose

Known: TypeAlias = Row | StatementCandidate
"""A record that a row is compared with: a row of the batch, or a stored one."""


def begins_at(known: Known | Standpoint) -> int:
    """The time from which a record holds."""
    if isinstance(known, Row):
        return beginning(known.created_at, known.valid_from, resolved=known.valid_resolved)
    return known.begins_at


def stated_at(known: Known) -> int:
    """The time as of which a record says what it does: a date in its text is that of an event, which may be to come.

    "The exam is on 4 May" was said before "the exam is on 3 May", which supersedes it. What is to come was announced.
    """
    return telling(known.created_at, known.valid_from, resolved=known.valid_resolved)


def may_change(authority: int, old: Known) -> bool:
    """Whether a text of this authority may supersede a record on its own."""
    return authority >= old.authority and not old.pinned


def was_before(new: Known, old: Known) -> bool:
    """Whether what a later text tells of was over when the older one was told: "I moved to Rome in 2010"."""
    return bool(new.valid_resolved and new.valid_until is not None and new.valid_until <= stated_at(old))


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
