"""The kinds of forms, and the time that a match of each names."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, TypeAlias

from recallite.text.dates import periods
from recallite.text.dates.periods import Time

if TYPE_CHECKING:
    from recallite.text.dates.language import Language

_Match: TypeAlias = "re.Match[str]"
YEAR = r"(?P<year>(?:19|20)\d\d)"


def _iso(match: _Match, today: date, language: Language) -> Time:
    year, month = int(match["year"]), int(match["month"])
    return (
        periods.months(year, month, 1, today)
        if match["day"] is None
        else periods.day(year, month, int(match["day"]), today)
    )


def _numeric(match: _Match, today: date, language: Language) -> Time:
    """Read 17/5/2023. If both readings are days, a question has the month first, and a statement is in doubt."""
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    if match["mark"] == "." or language.day_first or first > 12:
        return periods.day(year, second, first, today)
    time = periods.day(year, first, second, today)
    return time._replace(readings=periods.DOUBT) if second <= 12 and first != second else time


def _date(match: _Match, today: date, language: Language) -> Time:
    time = periods.day(_year_of(match), language.months[match["month"]], int(match["day"]), today)
    weekday = match.groupdict().get("weekday")
    return time if weekday is None else periods.on_weekday(time, language.weekdays[weekday], today)


def _days(match: _Match, today: date, language: Language) -> Time:
    """Read "3 to 9 May"."""
    month, year = language.months[match["month"]], _year_of(match)
    first = periods.day(year, month, int(match["first"]), today)
    last = periods.day(year, month, int(match["day"]), today)
    if int(match["first"]) >= int(match["day"]):
        raise ValueError("no range of days")
    return periods.ranged(first, last)


def _month(match: _Match, today: date, language: Language) -> Time:
    return periods.months(_year_of(match), language.months[match["month"]], 1, today)


def _season(match: _Match, today: date, language: Language) -> Time:
    return periods.season(_year_of(match), language.seasons[match["season"]], today)


def _quarter(match: _Match, today: date, language: Language) -> Time:
    return periods.months(int(match["year"]), 3 * int(match["quarter"]) - 2, 3, today)


def _year(match: _Match, today: date, language: Language) -> Time:
    return periods.years(int(match["year"]))


def _years(match: _Match, today: date, language: Language) -> Time:
    first, last = int(match["year"]), int(match["last"])
    if first >= last:
        raise ValueError("no range of years")
    return periods.years(first, last - first + 1)


def _decade(match: _Match, today: date, language: Language) -> Time:
    century, decade = match["century"], int(match["decade"])
    return periods.years((int(century) if century else 19) * 100 + decade, 10)


def _edge(match: _Match, today: date, language: Language) -> Time:
    """Read "early May", "the end of 2019"."""
    time = (_month if match.groupdict().get("month") else _year)(match, today, language)
    return periods.third_of(time, language.edges[match["edge"]])


def _month_of_year(match: _Match, today: date, language: Language) -> Time:
    """Read "March last year", "the summer of last year"."""
    step = min(language.relative[match["relative"]], 1)
    groups = match.groupdict()
    if groups.get("season"):
        return periods.season(today.year + step, language.seasons[match["season"]], today)
    return periods.months(today.year + step, language.months[match["month"]], 1, today)


def _weekday_of_week(match: _Match, today: date, language: Language) -> Time:
    step = min(language.relative[match["relative"]], 1)
    return periods.weekday_of_week(language.weekdays[match["weekday"]], step, today)


def _number(match: _Match, language: Language) -> tuple[int, bool]:
    words = match["number"]
    return int(words) if words.isdecimal() else language.numbers[words], words in language.vague_numbers


def _ago(match: _Match, today: date, language: Language) -> Time:
    number, vague = _number(match, language)
    return periods.around(today, -number, language.units[match["unit"]], vague=vague)


def _from_now(match: _Match, today: date, language: Language) -> Time:
    number, vague = _number(match, language)
    return periods.around(today, number, language.units[match["unit"]], vague=vague)


def _ahead(match: _Match, today: date, language: Language) -> Time:
    """Read "in two weeks"; of the past it is a duration."""
    time = _from_now(match, today, language)
    ahead = periods.Period(time.begin, time.end) if time.readings is None else time.readings.ahead
    return time._replace(readings=periods.Readings(ahead=ahead))


def _within(match: _Match, today: date, language: Language) -> Time:
    number = _number(match, language)[0] if match.groupdict().get("number") else 1
    sign = 1 if language.relative[match["relative"]] == periods.LAST else -1
    return periods.within(today, sign * number, language.units[match["unit"]])


def _named(match: _Match, today: date, language: Language) -> Time:
    return periods.from_today(today, language.named[match["named"]])


def _weeks(match: _Match, today: date, language: Language) -> Time:
    return periods.near_week(language.weeks[match["weeks"]], today)


def _part(match: _Match, today: date, language: Language) -> Time:
    """Read "last night", "this morning"."""
    return periods.from_today(today, min(language.relative[match["relative"]], 1))


def _near(match: _Match, today: date, language: Language) -> Time:
    relative, name = language.relative[match["relative"]], match["period"]
    if unit := language.units.get(name):
        weekend = unit == "weekend"
        return periods.near_weekend(relative, today) if weekend else periods.near_unit(unit, min(relative, 1), today)
    if name in language.weekdays:
        return periods.near_weekday(relative, language.weekdays[name], today)
    if name in language.seasons:
        return periods.near_months(relative, language.seasons[name], 3, today)
    return periods.near_months(relative, language.months[name], 1, today)


def _weekday(match: _Match, today: date, language: Language) -> Time:
    return periods.weekday(language.weekdays[match["weekday"]], today)


def _weekend(match: _Match, today: date, language: Language) -> Time:
    return periods.weekend(today)


def _year_of(match: _Match) -> int | None:
    year = match.groupdict().get("year")
    return None if year is None else int(year)


# By kind, in order of precedence: the table of a language of which every match has a word, and its reading.
KINDS: dict[str, tuple[str, Callable[[_Match, date, Language], Time]]] = {
    "iso": ("year", _iso),
    "numeric": ("year", _numeric),
    "days": ("month", _days),
    "date": ("month", _date),
    "edge": ("edge", _edge),
    "month_of_year": ("relative", _month_of_year),
    "month_year": ("month", _month),
    "quarter": ("year", _quarter),
    "season_year": ("season", _season),
    "weekday_of_week": ("weekday", _weekday_of_week),
    "ago": ("unit", _ago),
    "from_now": ("unit", _from_now),
    "ahead": ("unit", _ahead),
    "within": ("relative", _within),
    "weeks": ("unit", _weeks),
    "named": ("named", _named),
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
