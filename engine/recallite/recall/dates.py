"""The times that a question names, as spans that raise the records of them: "in May", "last week", "since 2019".

What a time is, `text/dates/` says, for questions and for what is written alike. A question without a year means any
year, and what happened then may have been told soon after. Days are in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import NamedTuple

from recallite.text.dates.languages import Language, Mention, fold, languages_of, terms_of_times, time_terms
from recallite.text.dates.periods import Time, ranged, years_before

_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()

# A day or month without a year is of any year: up to this number of years back, and of the next.
_YEARS_BACK = 10
# What happened on a day, or in a month, is often told within a week.
_TOLD_WITHIN_DAYS = 7
_LONGEST_TOLD_DAYS = 31
_LONGEST_TEXT = 2_000
_LIMIT_CHARS = 24


class Span(NamedTuple):
    """Microseconds since 1970 UTC, `end` excluded; what is told within `fade` after it counts less and less."""

    begin: int
    end: int
    fade: int


def spans_of(text: str, terms: Sequence[str], clock_us: int) -> tuple[Span, ...]:
    """The times that a text with these index terms names, seen from a moment in microseconds; often none."""
    named = terms_of_times(text, terms) if len(text) <= _LONGEST_TEXT else None
    if named is None:
        return ()
    folded = fold(text)
    languages = languages_of(folded, named) if len(folded) == len(text) else ()
    try:
        today = date.fromordinal(_EPOCH + clock_us // _DAY_US)
        for language in languages:
            times = language.find(folded, named, today, question=True)
            if spans := [span for time in _joined(folded, times, language) for span in _spans(time)]:
                return tuple(dict.fromkeys(spans))
    except (ValueError, OverflowError):  # far from our years
        pass
    return ()


def names_time(term: str) -> bool:
    """Whether an index term is a word of a time, or a number."""
    return term in time_terms() or term.isdigit()


def _joined(folded: str, times_found: list[Mention], language: Language) -> list[Time]:
    """Each time; "from X to Y" and "between X and Y" are one, and "since X" or "before Y" is open at one end."""
    times, skip = [], False
    for one, other in pairwise([*times_found, None]):
        assert one is not None
        if skip:
            skip = False
            continue
        limit = language.context.limit.search(folded, max(0, one.start - _LIMIT_CHARS), one.start)
        word = None if limit is None else limit.lastgroup
        if other is not None and word == "range" and language.context.joint.fullmatch(folded, one.stop, other.start):
            times.append(ranged(one.time, other.time))
            skip = True
        elif word in ("since", "after") and not one.time.recurs:
            begin = one.time.end if word == "after" else one.time.begin
            times.append(Time(begin, date.max))
        elif word in ("before", "until") and not one.time.recurs:
            times.append(Time(date.min, one.time.begin if word == "before" else one.time.end))
        else:
            times.append(one.time)
    return times


def _spans(time: Time) -> Iterator[Span]:
    length = (time.end - time.begin).days
    fade = _TOLD_WITHIN_DAYS * _DAY_US if time.retold and length <= _LONGEST_TOLD_DAYS else 0
    for back in range(-1, _YEARS_BACK + 1) if time.recurs else (0,):
        try:
            begin = time.begin.replace(year=time.begin.year - back)
            end = begin + timedelta(1) if length == 1 else years_before(time.end, back)
        except ValueError:  # 29 February
            continue
        yield Span((begin.toordinal() - _EPOCH) * _DAY_US, (end.toordinal() - _EPOCH) * _DAY_US, fade)
