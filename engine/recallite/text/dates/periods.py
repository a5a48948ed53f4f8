"""Calendar arithmetic for the times that a text names, seen from a day, and the kinds of forms that name them.

A question about a time is about the days from `begin` to before `end`. The meaning of a statement may depend on its
tense ("on Friday"), and is in doubt if speakers differ: "next Friday", said on a Monday, is in four days or in eleven.
Seasons are of the northern hemisphere.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from recallite.text.dates.languages import Language


# Most years from one 29 February to the next: the turn of a century may have none.
_LONGEST_WITHOUT_LEAP_DAY = 8
_WINTER = 12
_SATURDAY = 5
_NEAR_DAYS = 60

# NEXT is in doubt if the coming one is of this week or year; NEAREST, as in "viernes próximo", only for weekends,
# months and seasons; COMING never.
LAST, THIS, NEXT, NEAREST, COMING = -1, 0, 1, 2, 3
RELATIVE = {"last": LAST, "this": THIS, "next": NEXT, "nearest": NEAREST, "coming": COMING}


class Days(NamedTuple):
    """Days from `begin` to before `end`."""

    begin: date
    end: date


class Readings(NamedTuple):
    """The meaning of a time in a statement in the past tense, in the future, and without a tense; None: in doubt."""

    past: Days | None = None
    ahead: Days | None = None
    plain: Days | None = None


class Time(NamedTuple):
    """A time as a question means it, and as a statement does if that differs.

    - recurs: it has no year; a question means any
    - retold: events of then are often told within days after
    - readings: None if a statement means `begin` to `end`, whatever its tense
    """

    begin: date
    end: date
    recurs: bool = False
    retold: bool = False
    readings: Readings | None = None


DOUBT = Readings()


def day(year: int | None, month: int, number: int, today: date) -> Time:
    """Return a day, or without a year the last one of that date."""
    if year is not None:
        return _one_day(date(year, month, number))._replace(retold=True)
    last, coming = _nearest_day(month, number, today, -1), _nearest_day(month, number, today, 1)
    return Time(*_days(last), recurs=True, retold=True, readings=Readings(_days(last), _days(coming)))


def on_weekday(time: Time, number: int, today: date) -> Time:
    """Return a day that was named with its weekday, which may tell the year.

    ValueError if it is another weekday, or if that date of another weekday is so near that it may be meant.
    """
    readings = (Days(time.begin, time.end),) if time.readings is None else time.readings[:2]
    past, *later = (period if period and period.begin.weekday() == number else None for period in readings)
    near = any(
        period and abs(period.begin - today).days <= _NEAR_DAYS and period.begin.weekday() != number
        for period in readings
    )
    if near or not (past or any(later)):
        raise ValueError("the day is another one of the week")
    if time.readings is None:
        return time
    (ahead,) = later
    return time._replace(readings=Readings(past, ahead, None if past and ahead else past or ahead))


def months(year: int | None, month: int, count: int, today: date) -> Time:
    """Return `count` months, or without a year the last ones that have begun."""
    if year is not None:
        return Time(*months_from(year, month, count), retold=True)
    last = months_from(today.year - (month > today.month), month, count)
    if last.end > today:  # of the current month one says "this month"
        return Time(*last, recurs=True, retold=True, readings=DOUBT)
    coming = months_from(last.begin.year + 1, month, count)
    return Time(*last, recurs=True, retold=True, readings=Readings(last, coming))


def season(year: int | None, month: int, today: date) -> Time:
    """Return the season that begins with a month. The winter of a year may be the one at its beginning or its end."""
    time = months(year, month, 3, today)
    return time._replace(readings=DOUBT) if year is not None and month == _WINTER else time


def years(first: int, count: int = 1) -> Time:
    """Return `count` calendar years."""
    return Time(date(first, 1, 1), date(first + count, 1, 1))


def third_of(time: Time, index: int) -> Time:
    """Return the beginning, middle or end (0 to 2) of a time in a statement; a question means all of it."""

    def third(period: Days | None) -> Days | None:
        if period is None:
            return None
        step = (period.end - period.begin) / 3
        begin = period.begin + index * step
        return Days(begin, period.end if index == 2 else begin + step)

    if time.readings is None:
        part = third(Days(time.begin, time.end))
        return time._replace(readings=Readings(part, part, part))
    return time._replace(readings=Readings(*map(third, time.readings)))


def around(today: date, count: int, unit: str, *, vague: bool = False) -> Time:
    """Return the time `count` units from today, as exact as the unit.

    A statement means the calendar's week, month or year, as in TIMEX3: "two weeks ago" is the week before last week. A
    question means the days around, and so does a vague number.
    """
    if unit == "weekend":
        saturday = today - timedelta(today.weekday() - _SATURDAY - 7 * count)
        return Time(saturday, saturday + timedelta(2))
    middle = _shifted(today, count, unit)
    width = _DAYS_IN[unit]
    early = abs(count) * width // 2 if vague else width // 2
    late = max(early, width - width // 2)
    time = Time(middle - timedelta(early), middle + timedelta(late))
    if vague or unit not in ("week", *_CALENDAR):
        return time
    begin, end, *_ = near_unit(unit, count, today)
    return time._replace(readings=Readings(*3 * (Days(begin, end),)))


def near_week(step: int, today: date) -> Time:
    """Return last, this or next week; the week after next with a step of two."""
    monday = today - timedelta(today.weekday()) + timedelta(7 * step)
    return Time(monday, monday + timedelta(7))


def near_weekend(relative: int, today: date) -> Time:
    """Return last, this, next or the coming weekend."""
    this = today - timedelta(today.weekday() - _SATURDAY)
    last, over = Days(this - timedelta(7), this - timedelta(5)), Days(this, this + timedelta(2))
    coming = Days(this + timedelta(7), this + timedelta(9))
    if relative == LAST:
        return Time(*last)
    if relative == THIS:
        readings = None if today >= this else Readings(last, over, over)
        return Time(*over, readings=readings)
    if relative == COMING:
        return Time(*(over if today < this else coming))
    return Time(*coming, readings=None if today >= this else DOUBT)


def near_unit(unit: str, step: int, today: date) -> Time:
    """Return last, this, next or a later week, month, quarter or year; KeyError for other units."""
    if unit == "week":
        return near_week(step, today)
    count = _CALENDAR[unit]
    year, month = divmod(((today.year * 12 + today.month - 1) // count + step) * count, 12)
    return Time(*months_from(year, month + 1, count))


def near_weekday(relative: int, weekday: int, today: date) -> Time:
    """Return last, this, next or the coming Monday."""
    ahead = (weekday - today.weekday()) % 7
    last, coming = today - timedelta((7 - ahead) % 7 or 7), today + timedelta(ahead or 7)
    if relative == LAST:
        return _one_day(last)
    if relative == THIS:
        here = today - timedelta(today.weekday() - weekday)
        if here == today:
            return _one_day(today)
        past = _days(last) if here < today else None
        readings = Readings(past, _days(coming) if here > today else None, _days(coming) if here > today else None)
        return _one_day(coming)._replace(readings=readings)
    # On a Friday "next Friday" is in a week for everyone.
    doubtful = relative == NEXT and ahead > 0 and weekday > today.weekday()
    return _one_day(coming)._replace(readings=DOUBT if doubtful else None)


def near_months(relative: int, month: int, count: int, today: date) -> Time:
    """Return last, this or next May, or with three months a season."""
    if relative == THIS and (month != _WINTER or count == 1):
        return months(today.year, month, count, today)._replace(retold=False)
    last = months_from(today.year - (month > today.month), month, count)
    now = last if last.end > today else None
    over = months_from(last.begin.year - 1, month, count) if now else last
    coming = months_from(last.begin.year + 1, month, count)
    if relative == LAST:
        return Time(*over)
    if relative == THIS:
        return Time(*(now or coming), readings=None if now else Readings(over, coming))
    doubtful = relative != COMING and coming.begin.year == today.year
    return Time(*coming, readings=DOUBT if doubtful else None)


def ranged(first: Time, last: Time) -> Time:
    """Return the time from the first day of one to the last of the other; a year given once counts for both."""
    begin, end = first.begin, last.end
    if first.recurs:
        begin = years_before(begin, begin.year - last.begin.year)
    if begin >= end:
        if first.recurs:
            begin = years_before(begin, 1)
        else:
            begin, end = last.begin, first.end
    # In doubt if one of its ends is; without a year the last or the next one.
    readings: Readings | None = DOUBT
    if last.readings is None and (first.readings is None or first.recurs):
        readings = None if (first.begin < last.end or first.recurs) else DOUBT
    elif first.recurs and last.recurs and last.readings is not None and DOUBT not in (last.readings, first.readings):
        with suppress(ValueError):
            readings = Readings(Days(begin, end), Days(years_before(begin, -1), years_before(end, -1)))
    return Time(begin, end, first.recurs and last.recurs, retold=True, readings=readings)


def years_before(day: date, years: int) -> date:
    """Return the same day in an earlier year; for 29 February the day after the 28th."""
    try:
        return day.replace(year=day.year - years)
    except ValueError:
        return date(day.year - years, 3, 1)


_DAYS_IN = {"day": 1, "week": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365, "decade": 3652}
_CALENDAR = {"month": 1, "quarter": 3, "year": 12}
_MONTHS_IN = {**_CALENDAR, "decade": 120}


def _shifted(today: date, count: int, unit: str) -> date:
    """Return the day `count` units from today; the last day of a month that is too short."""
    if unit not in _MONTHS_IN:
        return today + timedelta(count * _DAYS_IN[unit])
    year, month = divmod(today.year * 12 + today.month - 1 + count * _MONTHS_IN[unit], 12)
    return date(year, month + 1, min(today.day, calendar.monthrange(year, month + 1)[1]))


def _days(begin: date) -> Days:
    return Days(begin, begin + timedelta(1))


def _one_day(begin: date) -> Time:
    return Time(begin, begin + timedelta(1))


def months_from(year: int, month: int, count: int) -> Days:
    """The days of `count` months."""
    beyond = month + count
    return Days(date(year, month, 1), date(year + (beyond > 12), (beyond - 1) % 12 + 1, 1))


def _nearest_day(month: int, number: int, today: date, step: int) -> date:
    """Return the last day of that date, or the next one; today is both."""
    for away in range(_LONGEST_WITHOUT_LEAP_DAY + 1):
        with suppress(ValueError):
            candidate = date(today.year + step * away, month, number)
            if (candidate <= today) if step < 0 else (candidate >= today):
                return candidate
    raise ValueError("no such day in any year")


_Match: TypeAlias = "re.Match[str]"
YEAR = r"(?P<year>(?:19|20)\d\d)"


def _iso(match: _Match, today: date, language: Language) -> Time:
    year, month = int(match["year"]), int(match["month"])
    return months(year, month, 1, today) if match["day"] is None else day(year, month, int(match["day"]), today)


def _numeric(match: _Match, today: date, language: Language) -> Time:
    """Read 17/5/2023. If both readings are days, a question has the month first, and a statement is in doubt."""
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    if match["mark"] == "." or language.day_first or first > 12:
        return day(year, second, first, today)
    time = day(year, first, second, today)
    return time._replace(readings=DOUBT) if second <= 12 and first != second else time


def _date(match: _Match, today: date, language: Language) -> Time:
    time = day(_year_of(match), language.months[match["month"]], int(match["day"]), today)
    weekday = match.groupdict().get("weekday")
    return time if weekday is None else on_weekday(time, language.weekdays[weekday], today)


def _days_of_month(match: _Match, today: date, language: Language) -> Time:
    """Read "3 to 9 May"."""
    month, year = language.months[match["month"]], _year_of(match)
    first = day(year, month, int(match["first"]), today)
    last = day(year, month, int(match["day"]), today)
    if int(match["first"]) >= int(match["day"]):
        raise ValueError("no range of days")
    return ranged(first, last)


def _month(match: _Match, today: date, language: Language) -> Time:
    return months(_year_of(match), language.months[match["month"]], 1, today)


def _season(match: _Match, today: date, language: Language) -> Time:
    return season(_year_of(match), language.seasons[match["season"]], today)


def _year(match: _Match, today: date, language: Language) -> Time:
    return years(int(match["year"]))


def _years(match: _Match, today: date, language: Language) -> Time:
    first, last = int(match["year"]), int(match["last"])
    if first >= last:
        raise ValueError("no range of years")
    return years(first, last - first + 1)


def _decade(match: _Match, today: date, language: Language) -> Time:
    century, decade = match["century"], int(match["decade"])
    return years((int(century) if century else 19) * 100 + decade, 10)


def _edge(match: _Match, today: date, language: Language) -> Time:
    """Read "early May", "the end of 2019"."""
    time = (_month if match.groupdict().get("month") else _year)(match, today, language)
    return third_of(time, language.edges[match["edge"]])


def _month_of_year(match: _Match, today: date, language: Language) -> Time:
    """Read "March last year", "the summer of last year"."""
    step = min(language.relative[match["relative"]], 1)
    groups = match.groupdict()
    if groups.get("season"):
        return season(today.year + step, language.seasons[match["season"]], today)
    return months(today.year + step, language.months[match["month"]], 1, today)


def _weekday_of_week(match: _Match, today: date, language: Language) -> Time:
    """Read "Tuesday of last week"."""
    step = min(language.relative[match["relative"]], 1)
    return _one_day(today - timedelta(today.weekday() - language.weekdays[match["weekday"]] - 7 * step))


def _number(match: _Match, language: Language) -> int:
    return int(match["number"]) if match["number"].isdecimal() else language.numbers[match["number"]]


def _from_now(match: _Match, today: date, language: Language, sign: int = 1) -> Time:
    vague = match["number"] in language.vague_numbers
    return around(today, sign * _number(match, language), language.units[match["unit"]], vague=vague)


def _ahead(match: _Match, today: date, language: Language) -> Time:
    """Read "in two weeks"; of the past it is a duration."""
    time = _from_now(match, today, language)
    ahead = Days(time.begin, time.end) if time.readings is None else time.readings.ahead
    return time._replace(readings=Readings(ahead=ahead))


def _within(match: _Match, today: date, language: Language) -> Time:
    """Read "the last two weeks", "the next month"; today counts."""
    number, unit = _number(match, language) if match.groupdict().get("number") else 1, language.units[match["unit"]]
    if language.relative[match["relative"]] == LAST:
        return Time(_shifted(today, -number, unit), today + timedelta(1))
    return Time(today, _shifted(today, number, unit) + timedelta(1))


def _part(match: _Match, today: date, language: Language) -> Time:
    """Read "last night", "this morning"."""
    return _one_day(today + timedelta(min(language.relative[match["relative"]], 1)))


def _near(match: _Match, today: date, language: Language) -> Time:
    relative, name = language.relative[match["relative"]], match["period"]
    if unit := language.units.get(name):
        return near_weekend(relative, today) if unit == "weekend" else near_unit(unit, min(relative, 1), today)
    if name in language.weekdays:
        return near_weekday(relative, language.weekdays[name], today)
    if name in language.seasons:
        return near_months(relative, language.seasons[name], 3, today)
    return near_months(relative, language.months[name], 1, today)


def _weekday(match: _Match, today: date, language: Language) -> Time:
    """Read "Monday": to a question the last one or today, to a statement the last or the next by its tense."""
    ahead = (language.weekdays[match["weekday"]] - today.weekday()) % 7
    if not ahead:
        return _one_day(today)._replace(readings=DOUBT)
    last, coming = _days(today - timedelta(7 - ahead)), _days(today + timedelta(ahead))
    return Time(*last, readings=Readings(last, coming))


def _weekend(match: _Match, today: date, language: Language) -> Time:
    """Read "the weekend": to a question the last one or this, to a statement the last or the next by its tense."""
    saturday = today - timedelta(today.weekday() - _SATURDAY)
    here, last = Days(saturday, saturday + timedelta(2)), Days(saturday - timedelta(7), saturday - timedelta(5))
    return Time(*here, readings=DOUBT) if today >= saturday else Time(*last, readings=Readings(last, here))


def _year_of(match: _Match) -> int | None:
    year = match.groupdict().get("year")
    return None if year is None else int(year)


# By kind, in order of precedence: the table of a language of which every match has a word, and its reading.
KINDS: dict[str, tuple[str, Callable[[_Match, date, Language], Time]]] = {
    "iso": ("year", _iso),
    "numeric": ("year", _numeric),
    "days": ("month", _days_of_month),
    "date": ("month", _date),
    "edge": ("edge", _edge),
    "month_of_year": ("relative", _month_of_year),
    "month_year": ("month", _month),
    "quarter": ("year", lambda match, today, _: months(int(match["year"]), 3 * int(match["quarter"]) - 2, 3, today)),
    "season_year": ("season", _season),
    "weekday_of_week": ("weekday", _weekday_of_week),
    "ago": ("unit", partial(_from_now, sign=-1)),
    "from_now": ("unit", _from_now),
    "ahead": ("unit", _ahead),
    "within": ("relative", _within),
    "weeks": ("unit", lambda match, today, language: near_week(language.weeks[match["weeks"]], today)),
    "named": ("named", lambda match, today, language: _one_day(today + timedelta(language.named[match["named"]]))),
    "part": ("relative", _part),
    "near": ("relative", _near),
    "weekday": ("weekday", _weekday),
    "weekend": ("unit", _weekend),
    "month": ("month", _month),
    "season": ("season", _season),
    "years": ("year", _years),
    "year": ("year", _year),
    "decade": ("decade", _decade),
}
_ISO = r"(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d)(?:t\d\d:\d\d[\d:.z+-]*)?)?"
EVERYWHERE = {
    "iso": (rf"(?<![\w/.-])(?P<time>{_ISO})(?![\w-])", rf"(?<![\w/.-])(?P<time>{_ISO.replace('-', '/')})(?![\w/])"),
    "numeric": (rf"(?<![\w/.-])(?P<time>(?P<first>\d\d?)(?P<mark>[/.-])(?P<second>\d\d?)(?P=mark){YEAR})(?![\w/-])",),
    "years": (rf"(?<![\w/.-])(?P<time>{YEAR} ?[-\u2013] ?(?P<last>(?:19|20)\d\d))(?![\w/-]|\.\d)",),
}
