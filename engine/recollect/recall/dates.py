"""The times that a question names, in English: "in May", "last week", "on 7 May 2023", "between June and August".

Rules of our own: dateparser takes 0.3 s to import (scrapinghub/dateparser#1051) and reads moments, where a question
means spans. Each form is looked for only where the question has a word of it: most questions cost a microsecond. Days
are in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from recollect.text.tokens import tokenize

_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()

# A day or month without a year is of any year: of so many years back, and of the next.
_YEARS_BACK = 10
# What happened on a day, or in a month, is often told within a week.
_TOLD_WITHIN_DAYS = 7
_LONGEST_TOLD_DAYS = 31
_LONGEST_TEXT = 2_000
# Years from one 29 February to the next: 8 where the turn of a century has none.
_LONGEST_WITHOUT_LEAP_DAY = 8

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {
    "a": 1, "an": 1, "couple of": 2, "few": 3, "several": 4, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip
_DAYS_IN = {"day": 1, "night": 1, "weekend": 7, "week": 7, "fortnight": 14, "month": 30, "year": 365}


class Span(NamedTuple):
    """Microseconds since 1970 UTC, `end` excluded; what is told within `fade` after it counts less and less."""

    begin: int
    end: int
    fade: int


class _Days(NamedTuple):
    """Days from `begin` to before `end`: of every year if it recurs; `told` if they may be told of later."""

    begin: date
    end: date
    recurs: bool = False
    told: bool = True


class _Found(NamedTuple):
    start: int
    stop: int
    days: _Days


_Match: TypeAlias = "re.Match[str]"


def spans_of(text: str, terms: Sequence[str], clock_us: int) -> tuple[Span, ...]:
    """The times that a text with these index terms names, seen from a moment in microseconds; often none."""
    if _ANY.isdisjoint(terms) or len(text) > _LONGEST_TEXT:
        return ()
    try:
        found = sorted(_found(text, terms, date.fromordinal(_EPOCH + clock_us // _DAY_US)))
        spans = [span for days in _joined(text, found) for span in _spans(days)]
    except (ValueError, OverflowError):  # far from our years
        return ()
    return tuple(dict.fromkeys(spans))


def names_time(term: str) -> bool:
    """Whether an index term is a word of a time, or a number."""
    return term in _ANY or term.isdigit()


def _found(text: str, terms: Sequence[str], today: date) -> Iterator[_Found]:
    """What each form finds, unless an earlier form has found it as a part of something longer."""
    taken: list[tuple[int, int]] = []
    for words, form, days_of in _FORMS:
        for match in () if words.isdisjoint(terms) else form.finditer(text):
            start, stop = match.span("time")
            if any(start < end and begin < stop for begin, end in taken):
                continue
            try:
                days = days_of(match, today)
            except (ValueError, OverflowError, KeyError):  # 30 February; letters that only match, such as \u017f
                continue
            taken.append((start, stop))
            yield _Found(start, stop, days)


def _joined(text: str, found: list[_Found]) -> list[_Days]:
    """Each time; "from X to Y" and "between X and Y" are one, and "since X" or "before Y" is open at one end."""
    spans, skip = [], False
    for one, other in pairwise([*found, None]):
        assert one is not None
        if skip:
            skip = False
            continue
        limit = _LIMIT.search(text, max(0, one.start - 24), one.start)
        word = "" if limit is None else limit[1].lower()
        if other is not None and word in ("from", "between") and _JOINT.fullmatch(text, one.stop, other.start):
            spans.append(_range(one.days, other.days))
            skip = True
        elif word in ("since", "after") and not one.days.recurs:
            begin = one.days.begin if word == "since" else one.days.end
            spans.append(_Days(begin, date.max, told=False))
        elif word in ("before", "until", "till") and not one.days.recurs:
            spans.append(_Days(date.min, one.days.begin if word == "before" else one.days.end, told=False))
        else:
            spans.append(one.days)
    return spans


def _range(first: _Days, last: _Days) -> _Days:
    """From the first day of one to the last of the other; a year given once is that of both."""
    begin, end = first.begin, last.end
    if first.recurs:
        begin = _years_before(begin, begin.year - last.begin.year)
    if begin >= end:
        if first.recurs:
            begin = _years_before(begin, 1)
        else:
            begin, end = last.begin, first.end
    return _Days(begin, end, first.recurs and last.recurs)


def _spans(days: _Days) -> Iterator[Span]:
    length = (days.end - days.begin).days
    fade = _TOLD_WITHIN_DAYS * _DAY_US if days.told and length <= _LONGEST_TOLD_DAYS else 0
    for back in range(-1, _YEARS_BACK + 1) if days.recurs else (0,):
        try:
            begin = days.begin.replace(year=days.begin.year - back)
            end = begin + timedelta(1) if length == 1 else _years_before(days.end, back)
        except ValueError:  # 29 February
            continue
        yield Span((begin.toordinal() - _EPOCH) * _DAY_US, (end.toordinal() - _EPOCH) * _DAY_US, fade)


def _years_before(day: date, years: int) -> date:
    """The same day so many years before; for 29 February the day after the 28th."""
    try:
        return day.replace(year=day.year - years)
    except ValueError:
        return date(day.year - years, 3, 1)


def _month_number(name: str) -> int:
    return _MONTHS.index(name[:3].lower()) + 1


def _number(words: str) -> int:
    words = words.lower().removeprefix("a ") if " " in words else words.lower()
    return int(words) if words.isdigit() else _NUMBERS[words]


def _day(year: int | None, month: int, day: int, today: date) -> _Days:
    """A day, or without a year the last one of that date."""
    if year is not None:
        begin = date(year, month, day)
        return _Days(begin, begin + timedelta(1))
    for back in range(_LONGEST_WITHOUT_LEAP_DAY + 1):
        with suppress(ValueError):
            begin = date(today.year - back, month, day)
            if begin <= today:
                return _Days(begin, begin + timedelta(1), recurs=True)
    raise ValueError("no such day in any year")


def _months(year: int | None, month: int, count: int, today: date) -> _Days:
    """So many months, or without a year the last ones that have begun."""
    recurs = year is None
    if year is None:
        year = today.year - (month > today.month)
    beyond = month + count
    return _Days(date(year, month, 1), date(year + (beyond > 12), (beyond - 1) % 12 + 1, 1), recurs)


def _year(match: _Match, today: date) -> _Days:
    year = int(match["year"])
    return _Days(date(year, 1, 1), date(year + 1, 1, 1), told=False)


def _iso(match: _Match, today: date) -> _Days:
    year, month = int(match["year"]), int(match["month"])
    return _months(year, month, 1, today) if match["day"] is None else _day(year, month, int(match["day"]), today)


def _slashes(match: _Match, today: date) -> _Days:
    """Month first, unless it cannot be."""
    month, day = int(match["first"]), int(match["second"])
    if month > 12:
        month, day = day, month
    return _day(int(match["year"]), month, day, today)


def _date(match: _Match, today: date) -> _Days:
    year = None if match["year"] is None else int(match["year"])
    return _day(year, _month_number(match["month"]), int(match["day"]), today)


def _month(match: _Match, today: date) -> _Days:
    year = match.groupdict().get("year")
    return _months(None if year is None else int(year), _month_number(match["month"]), 1, today)


def _quarter(match: _Match, today: date) -> _Days:
    return _months(int(match["year"]), 3 * int(match["quarter"]) - 2, 3, today)


def _season(match: _Match, today: date) -> _Days:
    year = match.groupdict().get("year")
    return _months(None if year is None else int(year), _SEASONS[match["season"].lower()], 3, today)


def _ago(match: _Match, today: date) -> _Days:
    """As exact as the unit: two weeks ago is a week, two months ago a month."""
    unit, number = _DAYS_IN[match["unit"].lower()], _number(match["number"])
    vague = match["number"].lower().endswith(("few", "several", "couple of"))
    middle, early = today - timedelta(number * unit), number * unit // 2 if vague else unit // 2
    return _Days(middle - timedelta(early), middle + timedelta(max(early, unit - unit // 2)), told=False)


def _within(match: _Match, today: date) -> _Days:
    """The last three weeks."""
    days = _number(match["number"]) * _DAYS_IN[match["unit"].lower()]
    return _Days(today - timedelta(days), today + timedelta(1), told=False)


def _near(match: _Match, today: date) -> _Days:
    """Last, this or next week, month, year, Monday or May."""
    step = {"this": 0, "next": 1}.get(match["which"].lower(), -1)
    what = match["what"].lower()
    monday = today - timedelta(today.weekday())
    if what in ("week", "weekend"):
        begin = monday + timedelta(7 * step + (5 if what == "weekend" else 0))
        return _Days(begin, monday + timedelta(7 * step + 7), told=False)
    if what == "month":
        at = today.year * 12 + today.month - 1 + step
        return _months(at // 12, at % 12 + 1, 1, today)._replace(told=False)
    if what == "year":
        return _Days(date(today.year + step, 1, 1), date(today.year + step + 1, 1, 1), told=False)
    if what in _WEEKDAYS:
        return _weekday(what, today, -1 if step < 0 else 1)
    if what in ("night", "morning", "afternoon", "evening"):
        begin = today + timedelta(step)
        return _Days(begin, begin + timedelta(1), told=False)
    count = 3 if what in _SEASONS else 1
    days = _months(None, _SEASONS.get(what) or _month_number(what), count, today)
    over = days.end <= today
    return _months(days.begin.year + (over and step >= 0) - (not over and step < 0), days.begin.month, count, today)


def _named_day(match: _Match, today: date) -> _Days:
    name = match["time"].lower()
    back = {"yesterday": 1, "tomorrow": -1}.get(name, 0 if name.startswith("to") else 2)
    begin = today - timedelta(back)
    return _Days(begin, begin + timedelta(1), told=False)


def _weekday(name: str, today: date, direction: int) -> _Days:
    """The last or the next day of that name."""
    ahead = (_WEEKDAYS.index(name) - today.weekday()) % 7
    if direction > 0:
        begin = today + timedelta(ahead or 7)
    else:
        begin = today - timedelta((7 - ahead) % 7 or 7)
    return _Days(begin, begin + timedelta(1), told=False)


def _on_weekday(match: _Match, today: date) -> _Days:
    """The last day of that name, or today."""
    name = match["time"].lower()
    if _WEEKDAYS[today.weekday()] == name:
        return _Days(today, today + timedelta(1), told=False)
    return _weekday(name, today, -1)


_MONTH = (
    "(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_SEASON = f"(?P<season>{'|'.join(_SEASONS)})"
_WEEKDAY = "|".join(_WEEKDAYS)
_UNIT = f"(?P<unit>{'|'.join(_DAYS_IN)})s?"
_NUMBER = rf"(?P<number>\d{{1,3}}|(?:a )?(?:{'|'.join(sorted(_NUMBERS, key=len, reverse=True))}))"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_PARTS = "weekend|week|month|year|night|morning|afternoon|evening"
# May, march, April, fall and years are other words, names and numbers too: alone they need one of these before them.
_BEFORE = (
    r"\b(?:in|of|since|during|until|till|by|before|after|from|to|through|throughout|between|and|around|over|for|early"
    r"|mid|late|the|year|my|our)[ -](?:the |year |early |mid[ -]|late )?"
)
_LIMIT = re.compile(r"\b(since|after|before|until|till|from|between) (?:the )?(?:year )?$", re.IGNORECASE)
_JOINT = re.compile(r" ?(?:and|to|until|till|through|-|\u2013) ?(?:the |year )?", re.IGNORECASE)

_MONTH_WORDS = "january february march april may june july august september october november december sept " + " ".join(
    _MONTHS
)
_YEAR_WORDS = " ".join(map(str, range(1900, 2100)))


class _Form(NamedTuple):
    """The index terms of which a text with this form has at least one, its pattern, and what a match means."""

    words: frozenset[str]
    pattern: re.Pattern[str]
    days_of: Callable[[_Match, date], _Days]


def _terms(words: str) -> frozenset[str]:
    return frozenset(tokenize(words))


# What one form finds, those after it do not look at.
_FORMS = (
    _Form(
        _terms(_YEAR_WORDS),
        re.compile(r"(?<![\w/.-])(?P<time>(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d))?)(?![\w-])", re.IGNORECASE),
        _iso,
    ),
    _Form(
        _terms(_YEAR_WORDS),
        re.compile(rf"(?<![\w/.-])(?P<time>(?P<first>\d\d?)/(?P<second>\d\d?)/{_YEAR})(?![\w/])", re.IGNORECASE),
        _slashes,
    ),
    _Form(
        _terms(_MONTH_WORDS),
        re.compile(rf"\b(?P<time>{_DAY} (?:of )?{_MONTH}\b(?:\.?,? (?:of )?{_YEAR}\b)?)", re.IGNORECASE),
        _date,
    ),
    _Form(
        _terms(_MONTH_WORDS),
        re.compile(rf"\b(?P<time>{_MONTH}\b\.? (?:the )?{_DAY}\b(?![:.]\d)(?:,? {_YEAR}\b)?)", re.IGNORECASE),
        _date,
    ),
    _Form(_terms(_MONTH_WORDS), re.compile(rf"\b(?P<time>{_MONTH}\b\.?,? (?:of )?{_YEAR}\b)", re.IGNORECASE), _month),
    _Form(
        _terms(_YEAR_WORDS), re.compile(rf"\b(?P<time>q(?P<quarter>[1-4]) (?:of )?{_YEAR}\b)", re.IGNORECASE), _quarter
    ),
    _Form(_terms(_YEAR_WORDS), re.compile(rf"\b(?P<time>{_SEASON} (?:of )?{_YEAR}\b)", re.IGNORECASE), _season),
    _Form(_terms("ago"), re.compile(rf"\b(?P<time>{_NUMBER} {_UNIT} ago\b)", re.IGNORECASE), _ago),
    _Form(
        _terms("last past previous"),
        re.compile(rf"\b(?P<time>(?:last|past|previous) {_NUMBER} {_UNIT}\b)", re.IGNORECASE),
        _within,
    ),
    _Form(
        _terms("yesterday today tonight tomorrow"),
        re.compile(r"\b(?P<time>(?:the )?day before yesterday|yesterday|today|tonight|tomorrow)\b", re.IGNORECASE),
        _named_day,
    ),
    _Form(
        _terms("last past previous this next"),
        re.compile(
            rf"\b(?P<time>(?P<which>last|past|previous|this|next) (?P<what>{_PARTS}|{_WEEKDAY}|{'|'.join(_SEASONS)}"
            rf"|{_MONTH.replace('?P<month>', '?:')})\b)",
            re.IGNORECASE,
        ),
        _near,
    ),
    _Form(_terms(" ".join(_WEEKDAYS)), re.compile(rf"\b(?P<time>{_WEEKDAY})\b", re.IGNORECASE), _on_weekday),
    _Form(_terms(_MONTH_WORDS), re.compile(rf"{_BEFORE}(?P<time>{_MONTH})\b", re.IGNORECASE), _month),
    _Form(_terms(" ".join(_SEASONS)), re.compile(rf"{_BEFORE}(?P<time>{_SEASON})\b(?! of)", re.IGNORECASE), _season),
    _Form(_terms(_YEAR_WORDS), re.compile(rf"{_BEFORE}(?P<time>{_YEAR})(?![\w-])", re.IGNORECASE), _year),
)
# "this" and "last" alone tell nothing, and are in many questions.
_ANY = frozenset().union(*(form.words for form in _FORMS)) - set(tokenize("last past previous this next"))
_ANY |= set(tokenize(" ".join(_DAYS_IN) + " " + _PARTS.replace("|", " ")))
