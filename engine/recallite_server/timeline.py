"""Counts of memories by day, week or month."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Literal, Unpack

from recallite.memory import Memory
from recallite.model.checks import check_choice, now_us
from recallite.model.filters import Filter, FilterFields
from recallite.model.records import Plain
from recallite.plugin import engine_of

Bucket = Literal["day", "week", "month"]
_FIRST_DAY = date(1970, 1, 1)


class TimelineBucket(Plain, frozen=True, kw_only=True):
    """A day, week or month: its first moment in UTC, and the number of memories that tell of it."""

    start: datetime
    memories: int


def timeline(
    memory: Memory, bucket: Bucket = "day", *, filter: Filter | None = None, **fields: Unpack[FilterFields]
) -> list[TimelineBucket]:
    """Return the days, weeks or months that memories tell of, in order; those without any are left out.

    A memory tells of its valid time, else of when it was created, in UTC. Weeks begin on Monday. Only memories that a
    filter (a `Filter`, or its fields) matches are counted.
    """
    check_choice(bucket, "bucket", ("day", "week", "month"))
    engine = engine_of(memory)
    bound = engine.within(filter, fields)
    with engine.read() as reader:
        days = reader.overview.count_by_day(bound, now_us())
    counts: Counter[date] = Counter()
    for day, memories in days:
        counts[_start_of(_FIRST_DAY + timedelta(days=day), bucket)] += memories
    return [
        TimelineBucket(start=datetime(start.year, start.month, start.day, tzinfo=UTC), memories=memories)
        for start, memories in counts.items()
    ]


def _start_of(day: date, bucket: Bucket) -> date:
    if bucket == "week":
        # The week of the earliest date there is has no Monday in the calendar.
        return day - timedelta(days=min(day.weekday(), (day - date.min).days))
    return day.replace(day=1) if bucket == "month" else day
