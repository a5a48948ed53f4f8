"""Memories over time: how many there are by day, week or month, and how the text of one changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal, Unpack

from msgspec import field

from recallite.memory import Memory
from recallite.model.checks import check_choice, now_us
from recallite.model.filters import Filter, FilterFields
from recallite.model.records import Plain, Record
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
        days = reader.records.count_by_day(bound, now_us())
    counts: Counter[date] = Counter()
    for number, memories in days:
        day = _FIRST_DAY + timedelta(days=number)
        if bucket == "week":
            # The week of the earliest date there is has no Monday in the calendar.
            day -= timedelta(days=min(day.weekday(), (day - date.min).days))
        counts[day.replace(day=1) if bucket == "month" else day] += memories
    return [
        TimelineBucket(start=datetime(start.year, start.month, start.day, tzinfo=UTC), memories=memories)
        for start, memories in counts.items()
    ]


Operation = Literal["equal", "insert", "delete"]
Part = tuple[Operation, str]

# Of both texts together, between what they begin and end with in common. difflib takes quadratic time: 2,000 words of
# prose take 30 ms, and of a text of two words in turn 0.2 s.
_MOST_WORDS = 2_000
_MOST_LINES = 2_000
# With the space before it: spaces by themselves occur so often that 500 words took difflib 20 s.
_WORDS = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


class VersionDiff(Plain, frozen=True, kw_only=True):
    """The difference of a version, current from `to` on, from the one before it, current from `from` on.

    The parts that are "equal" or "insert" make the new text, those that are "equal" or "delete" the old one.
    """

    from_: datetime = field(name="from")
    to: datetime
    parts: list[Part]


def diffs(memory: Memory, id: str) -> list[VersionDiff]:
    """Differences by words between each version of a memory and the one before it."""
    return version_diffs(memory.history(id, chain=False))


def version_diffs(history: Sequence[Record]) -> list[VersionDiff]:
    """Return the differences between the consecutive versions of a history, oldest first."""
    return [
        VersionDiff(from_=old.recorded_from, to=new.recorded_from, parts=text_diff(old.text, new.text))
        for old, new in pairwise(history)
    ]


def text_diff(old: str, new: str) -> list[Part]:
    """Return the parts of two texts, in order: by words; of long texts by lines; of very long ones the whole text."""
    begin = _common(old, new)
    begin, end = _at_words(old, new, begin, _common(old[begin:][::-1], new[begin:][::-1]))
    middle_old, middle_new = old[begin : len(old) - end], new[begin : len(new) - end]
    parts: list[Part] = [("equal", old[:begin])]
    for pattern, most in ((_WORDS, _MOST_WORDS), (_LINES, _MOST_LINES)):
        left, right = pattern.findall(middle_old), pattern.findall(middle_new)
        if len(left) + len(right) <= most:
            for _, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
                gone, come = "".join(left[a:b]), "".join(right[c:d])
                parts += [("equal", come)] if gone == come else [("delete", gone), ("insert", come)]
            break
    else:
        parts += [("delete", middle_old), ("insert", middle_new)]
    parts.append(("equal", old[len(old) - end :]))
    return _joined(parts)


def _common(left: str, right: str) -> int:
    """Return the number of characters that two texts begin with in common."""
    shorter = min(len(left), len(right))
    return next((i for i in range(shorter) if left[i] != right[i]), shorter)


def _at_words(old: str, new: str, begin: int, end: int) -> tuple[int, int]:
    """Return the lengths of the common beginning and end, cut back so that no word is divided."""
    while begin and any(begin < len(text) and _within_word(text, begin) for text in (old, new)):
        begin -= 1
    while end and any(end < len(text) and _within_word(text, len(text) - end) for text in (old, new)):
        end -= 1
    return begin, end


def _within_word(text: str, i: int) -> bool:
    before, after = text[i - 1], text[i]
    return (_is_word(before) and _is_word(after)) or (before.isspace() and after.isspace())


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _joined(parts: list[Part]) -> list[Part]:
    """Return the parts without empty ones, and neighbours of the same kind as one."""
    joined: list[Part] = []
    for operation, text in parts:
        if text and joined and joined[-1][0] == operation:
            joined[-1] = (operation, joined[-1][1] + text)
        elif text:
            joined.append((operation, text))
    return joined
