"""Dates as people and programs write them beside a text: in a property, a name of a file, the metadata of a page.

A date is read only if it can mean one day: `03/04/2024` has two readings, which other dates of the same source may
decide, and a date that contradicts its weekday has none. Month and weekday names are those of the languages of this
package. Libraries guess: dateutil fills what is missing from today and takes a month first where it can.
"""

from __future__ import annotations

import math
import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from recallite.text.dates.languages import YEARS, fold, languages
from recallite.text.dates.periods import months_from
from recallite.text.patterns import word_set

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Fewer seconds since 1970 are numbers of another kind: these are reached in 1973.
_LEAST_SECONDS = 100_000_000
# What is larger counts finer units: seconds reach this in the year 5138, milliseconds in 1973.
_MOST_SECONDS = 1e11
_MOST_CHARS = 120
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
_NUMBER = re.compile(r"\d+|-?\d{9,}(?:\.\d+)?", re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:[T_ -]?(\d\d)(\d\d)(\d\d)?)?", re.ASCII)
_NUMERIC = re.compile(r"(?<![\d/-])(\d\d?)[/-](\d\d?)[/-]\d{4}(?!\d)", re.ASCII)
_ISO_WEEK = re.compile(r"\d{4}-?W\d\d", re.ASCII)
_ISO_MOMENT = re.compile(r"\d{4}-?\d\d-?\d\d(?:[Tt _]\d\d|-\d\d[\d:])|\d{4}-?W\d\d-?\d[Tt ]\d\d", re.ASCII)
_INITIAL = re.compile(r"(?:^|(?<=[/_]))[a-z]")  # the keys of zones have capitals: America/Argentina/Buenos_Aires
_ORDINAL = re.compile(r"(\d{4})-?(\d{3})", re.ASCII)
_ZONED_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)", re.ASCII)  # as XML Schema writes it
_ZONE_BESIDE = re.compile(r"(?<=[\dZ])\[[A-Za-z_/]+\]$")  # 2024-03-05T14:30+01:00[Europe/Paris]
# Names of files have no colons: 2024-03-05T14-30-00.
_DASHED = re.compile(r"(\d{4}-\d\d-\d\d)[T_ -]{1,3}(\d\d)[-.h_](\d\d)(?:[-._](\d\d))?", re.ASCII)
_WIKILINK = re.compile(r"!?\[\[(?:[^\[\]|#]*/)?([^\[\]|#/]+?)(?:\.md)?(?:[|#][^\[\]]*)?\]\]")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()]*\)")
_PAIRS = {'"': '"', "'": "'", "<": ">", "[": "]", "(": ")", "`": "`"}
_CLOCK = re.compile(
    r"(?<![\d.:/-])(?P<hour>\d{1,2})(?:(?::|h|\.(?=\d\d ?(?:uhr|uur|h\b|[ap]\.?m)))(?P<minute>\d\d)"
    r"(?:[:.](?P<second>\d\d)(?:[.,]\d{1,9})?)?)?"
    r"(?P<mark> ?(?:uhr|uur|h\b|(?P<half>[ap])\.? ?m\b\.?))?(?![\d:])"
    r"(?: ?(?P<zone>[a-z]{1,4}(?![a-z/])|[a-z]+/[a-z_/]+))?(?P<offset> ?[+-]\d\d?(?::?\d\d)?)?(?: ?\([^()]*\))?"
)
_LOGGED = re.compile(r"(?<=/\d{4}):", re.ASCII)  # 05/Mar/2024:14:30:00, as web servers write it
_WHOLE_ID = re.compile(r"(\d{8})(\d{4}(?:\d\d)?)(Z|[+-]\d\d:?\d\d)", re.ASCII)
_TOKEN = re.compile(r"[0-9]+|[^\W\d_]+(?:-[^\W\d_]+)*|[^\s,()]")
_ORDINAL_MARK = re.compile(r"(?<=\d)(?:st|nd|rd|th|er|re|de|e|o|a|\u00ba|\u00aa|\u00b0|\.(?= ?[^\W\d]))(?![^\W\d])")
# Those of RFC 5322, and of central and western Europe; others mean different zones in different countries.
_ZONES = {
    "z": 0, "ut": 0, "utc": 0, "gmt": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8,
    "pdt": -7, "wet": 0, "west": 1, "cet": 1, "cest": 2, "mez": 1, "mesz": 2, "eet": 2, "eest": 3,
}  # fmt: skip
_JOINING = word_set(
    "the of at on de del da di do das le la les el las il alle a as am den der dem vom um ore op om e t utc gmt"
)
# Dashes, and the marks of Chinese, Japanese and Korean behind a year, a month and a day.
_MARKS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\u5e74\u6708\ub144\uc6d4", "-") | dict.fromkeys("\u65e5\uc77c", " ")
)
_DAY_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(\d{4})([-_. ])(\d\d)\2(\d\d)(?![A-Za-z0-9]|[-_.]?\d)", re.ASCII)
_DAY_FIRST_IN_NAME = re.compile(r"(?<![A-Za-z0-9.])(\d\d?)\.(\d\d?)\.(\d{4})(?![A-Za-z0-9])", re.ASCII)
_BEGINS_WITH_DAY = re.compile(r"(\d{4})([-_.])(\d\d)\2(\d\d)(?!\d)", re.ASCII)
_ID = r"(\d{4})(\d\d)(\d\d)(?:[T_-]?(\d\d)(\d\d)(\d\d)?)?"
_ID_IN_NAME = re.compile(rf"^{_ID}(?![A-Za-z0-9])|(?<![A-Za-z0-9]){_ID}$", re.ASCII)
_FOLDERS = re.compile(r"(?:^|/)(\d{4})/(\d\d)/(\d\d)$", re.ASCII)

# Words of the names of properties that have the time at which a text was written, and at which it was changed.
_CREATED = word_set("""
  created creation create ctime birthtime written published publish publication pub pubdate posted issued angelegt
  erstellt erstelldatum erstellungsdatum cree creee creation creado creada creacion criado criada criacao creato
  creata creazione aangemaakt gemaakt publiziert veroffentlicht publie publicado publicada pubblicato gepubliceerd
""")
_CHANGED = word_set("""
  modified modification updated update changed change edited edit lastmod mtime geandert aktualisiert modifie
  modifiee actualizado modificado atualizado modificato aggiornato gewijzigd bijgewerkt
""")
_DATED = word_set("date datetime timestamp datum fecha")
_BESIDE = word_set("""
  day time data at on in of the last am um le de del di da el il op dc dcterms article og sailthru parsely citation
  entry dt
""")
_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class DateSpan(NamedTuple):
    """The time that a date names, from `begin` to before `end`; a moment, if it names the time of day, has both."""

    begin: datetime
    end: datetime


class Unread(NamedTuple):
    """A property that names no day for certain, and why."""

    name: str
    value: object
    why: str

    def __str__(self) -> str:
        shown = str(self.value)
        return f"{self.name} is {shown[:60] + '...' if len(shown) > 60 else shown!r}: {self.why}"


def read_written(value: object, day_first: Callable[[], bool | None] = lambda: None) -> DateSpan | None:
    """Return what a date means; None if it is none, or has two readings that `day_first` does not decide."""
    readings = _decided(readings_of(value), day_first)
    return readings[0] if len(readings) == 1 else None


def _decided(readings: tuple[DateSpan, ...], day_first: Callable[[], bool | None]) -> tuple[DateSpan, ...]:
    if len(readings) == 2 and (first := day_first()) is not None:
        return (readings[not first],)
    return readings


def readings_of(value: object) -> tuple[DateSpan, ...]:
    """Return what a date can mean: nothing, one time, or two, the first with the day before the month.

    A value is a text, a date, a number of seconds, ms, us or ns since 1970, or a list of one of these. A time without a
    zone is in UTC.
    """
    while isinstance(value, list) and len(value) == 1:
        (value,) = value
    try:
        if isinstance(value, datetime):
            return (_moment(value),)
        if isinstance(value, date):
            return (_day(value),)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return tuple(_number(str(int(value)) if value == int(value) else repr(value)))
        return tuple(dict.fromkeys(_text(value))) if isinstance(value, str) else ()
    except (ValueError, OverflowError):
        return ()


def day_first_of(values: Iterable[object]) -> bool | None:
    """Return whether these dates, of one source, have the day before the month; None if they do not tell, or differ."""
    orders = set[bool]()
    for value in values:
        while isinstance(value, list) and len(value) == 1:
            (value,) = value
        numbers = _NUMERIC.search(value[:_MOST_CHARS]) if isinstance(value, str) else None
        # Two equal numbers do not tell.
        readings = readings_of(value) if numbers is not None and numbers[1] != numbers[2] else ()
        if numbers is not None and len(readings) == 1:
            orders.add(readings[0].begin.day == int(numbers[1]))
    return orders.pop() if len(orders) == 1 else None


def stated_time(
    properties: Mapping[str, Any], now: datetime, day_first: Callable[[], bool | None] = lambda: None
) -> tuple[DateSpan | None, DateSpan | None, list[Unread]]:
    """Return when properties say that a text was written, and changed, and the properties without a readable day.

    `day_first` is asked if a date has two readings.
    """
    times: dict[bool, DateSpan] = {}
    unread: dict[bool, list[Unread]] = {False: [], True: []}
    for changed, name in _names(properties):
        value = properties[name]
        if changed in times or value is None or isinstance(value, bool) or value in ("", []):
            continue
        readings = _decided(readings_of(value), day_first)
        if len(readings) == 1 and readings[0].begin <= now + _DAY:
            times[changed] = readings[0]
        else:
            why = "no day can be read from it; write it as 2024-03-05"
            if len(readings) == 2:
                day, month = (reading.begin.date() for reading in readings)
                why = f"it may be {day} or {month}; write it as {day}"
            elif readings:
                why = f"{readings[0].begin.date()} is to come"
            unread[changed].append(Unread(name, value, why))
    faults = [] if False in times else unread[False] or ([] if True in times else unread[True])
    return times.get(False), times.get(True), faults


def own_time(
    properties: Mapping[str, Any], path: str, day_first: Callable[[], bool | None] = lambda: None
) -> tuple[datetime | None, list[Unread]]:
    """Return when a file was written by its properties, else its name, else by when they say that it was changed.

    Local times without a zone may be up to a day ahead of UTC: they are taken as now.
    """
    now = datetime.now(UTC)
    written, changed, unread = stated_time(properties, now, day_first)
    named = None if written is not None else time_in_name(path)
    if named is not None and named > now + _DAY:
        named = None
    moment = written.begin if written is not None else named or (changed and changed.begin)
    return None if moment is None else min(moment, now), unread


def line_of(front_matter: str, name: str) -> int | None:
    """Return the line of a property, from 1."""
    lines = enumerate(front_matter.split("\n"), 1)
    return next((number for number, line in lines if line.lstrip("\"' ").startswith(name)), None)


def time_named(name: str) -> str | None:
    """Return "created" for a name of when a text was written (dcterms.created), "modified" for one of its change."""
    rank = _rank(name)
    return None if rank is None else "modified" if rank == 2 else "created"


def values_in(properties: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values of the properties that have the times of a text."""
    return (properties[name] for _, name in _names(properties))


def time_in_name(path: str) -> datetime | None:
    """Return the first moment (UTC) of the day, or minute, that the name of a file without its ending names.

    The day is all of the name, its beginning, its end, or the only one in it; as `2024/03/05` the folders name it.
    """
    name = path.rpartition("/")[2]
    whole = readings_of(name) if not name.isdecimal() else ()
    if len(whole) == 1 and whole[0].end - whole[0].begin <= _DAY:
        return whole[0].begin
    if folders := _FOLDERS.search(path):
        return _named_day(*folders.groups())
    if identifier := _ID_IN_NAME.search(name):
        parts = [part for part in identifier.groups() if part is not None]
        if (moment := _compact(parts)) is not None:
            return moment.begin
    if (begins := _BEGINS_WITH_DAY.match(name)) and (day := _named_day(begins[1], begins[3], begins[4])):
        return day
    days = [_named_day(match[1], match[3], match[4]) for match in _DAY_IN_NAME.finditer(name)]
    days += [_named_day(match[3], match[2], match[1]) for match in _DAY_FIRST_IN_NAME.finditer(name)]
    distinct = {day for day in days if day is not None}
    return distinct.pop() if len(distinct) == 1 else None


def _names(properties: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """The names of times, with whether each is of a change; names of the writing come first."""
    ranked = [(rank, name) for name in properties if (rank := _rank(name)) is not None]
    return [(rank == 2, name) for rank, name in sorted(ranked, key=lambda pair: pair[0])]


def _rank(name: str) -> int | None:
    """0 for a name of the time of writing, 1 for a plain "date", 2 for the time of a change; None for other names."""
    if len(name) > 40:
        return None
    words = set(_WORD.findall(fold(_CAMEL.sub(" ", name)).replace("_", " ")))
    if not words or words - _CREATED - _CHANGED - _DATED - _BESIDE:
        return None
    if words & _CREATED:
        return 0
    if words & _CHANGED:
        return 2
    return 1 if words & _DATED else None


def _text(text: str) -> Iterator[DateSpan]:
    """Yield the readings of a text, which may be a link, or stand between quotes or brackets."""
    text = unicodedata.normalize("NFKC", text[: _MOST_CHARS + 1]).translate(_MARKS).strip()
    if link := _WIKILINK.fullmatch(text) or _LINK.fullmatch(text):
        text = link[1].strip()
    while len(text) > 1 and _PAIRS.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    if not text or len(text) > _MOST_CHARS:
        return
    if _NUMBER.fullmatch(text):
        yield from _number(text)
        return
    if (exact := _iso(text)) is not None:
        yield exact
        return
    # A name of a day contradicts, or decides between, what numbers mean; so all languages are asked.
    folded = fold(_LOGGED.sub(" ", text))
    clock, zone, rest = _clock(folded)
    rest = _ORDINAL_MARK.sub(" ", rest)
    seen: dict[tuple[DateSpan, ...], None] = {}
    for months, weekdays in _names_of_languages() if any(map(str.isalpha, rest)) else (({}, {}),):
        days: list[DateSpan] = []
        for begin, end in _days(rest, months, weekdays):
            if clock is None:
                days.append(DateSpan(_midnight(begin), _midnight(end)))
            elif end - begin != _DAY:
                raise ValueError("a time of day of no day")
            else:
                days.append(_moment(datetime.combine(begin, time(), zone) + clock))
        if days:
            seen[tuple(days)] = None
    if len(seen) == 1:
        yield from next(iter(seen))


def _number(digits: str) -> Iterator[DateSpan]:
    """Read digits: 20240305, 202403051430, 2024, or units since 1970; nanoseconds have up to 20 digits."""
    if (compact := _COMPACT.fullmatch(digits)) and (day := _compact([part for part in compact.groups() if part])):
        yield day
    elif len(digits) == 7 and (ordinal := _ordinal(digits)) is not None:
        yield ordinal
    elif len(digits) == 4 and int(digits) in YEARS:
        begin, end = months_from(int(digits), 1, 12)
        yield DateSpan(_midnight(begin), _midnight(end))
    else:
        seconds = float(digits)
        for _ in ("ms", "us", "ns"):
            seconds = seconds / 1000 if abs(seconds) >= _MOST_SECONDS else seconds
        if _LEAST_SECONDS <= abs(seconds) < _MOST_SECONDS:
            yield _moment(_EPOCH + timedelta(seconds=seconds))


def _compact(parts: list[str]) -> DateSpan | None:
    """A day, or a minute or second of it, of a century near ours."""
    numbers = [int(part) for part in parts]
    try:
        if numbers[0] in YEARS:
            return _day(date(*numbers)) if len(numbers) == 3 else _moment(datetime(*numbers, tzinfo=UTC))  # type: ignore[misc,arg-type]
    except (TypeError, ValueError):
        pass
    return None


def _ordinal(text: str) -> DateSpan | None:
    """The day of a year: 2024-065."""
    match = _ORDINAL.fullmatch(text)
    if match is None or int(match[1]) not in YEARS:
        return None
    day = date(int(match[1]), 1, 1) + timedelta(days=int(match[2]) - 1)
    return _day(day) if int(match[2]) and day.year == int(match[1]) else None


def _iso(text: str) -> DateSpan | None:
    """Read ISO 8601, weeks and days of the year included, and times of day without colons as in names of files."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        pass
    else:
        return DateSpan(_midnight(day), _midnight(day) + _WEEK) if _ISO_WEEK.fullmatch(text) else _day(day)
    if (ordinal := _ordinal(text)) is not None:
        return ordinal
    if zoned := _ZONED_DAY.fullmatch(text):
        begin = datetime.fromisoformat(f"{zoned[1]}T00:00{zoned[2]}").astimezone(UTC)
        return DateSpan(begin, begin + _DAY)
    text = _ZONE_BESIDE.sub("", text)
    text = _WHOLE_ID.sub(r"\1T\2\3", text)
    if dashed := _DASHED.fullmatch(text):
        text = f"{dashed[1]}T{dashed[2]}:{dashed[3]}:{dashed[4] or '00'}"
    if _ISO_MOMENT.match(text) is None:
        return None
    try:
        return _moment(datetime.fromisoformat(text.replace(" Z", "Z").replace(" +", "+")))
    except ValueError:
        return None


def _clock(folded: str) -> tuple[timedelta | None, tzinfo, str]:
    """The time of day that a text names, its zone, and the rest. ValueError for a time that there is not."""
    for match in _CLOCK.finditer(folded):
        if match["minute"] is None and match["mark"] is None:
            continue
        hour, minute, second = int(match["hour"]), int(match["minute"] or 0), int(match["second"] or 0)
        if match["half"]:
            if not 1 <= hour <= 12:
                raise ValueError("no such hour")
            hour = hour % 12 + 12 * (match["half"] == "p")
        if minute > 59 or second > 60 or (hour, minute, second) > (24, 0, 0):
            raise ValueError("no such time of day")
        zone, stop = _zone(match), match.end()
        if zone is None:  # a word of the date: "14:30 mon 5 march"
            zone, stop = UTC, match.end("mark") if match["mark"] else match.start("zone")
        clock = timedelta(hours=hour, minutes=minute, seconds=min(second, 59))
        return clock, zone, f"{folded[: match.start()]} {folded[stop:]}"
    return None, UTC, folded


def _zone(match: re.Match[str]) -> tzinfo | None:
    name, offset = match["zone"], match["offset"]
    if name is not None and "/" in name:
        key = _INITIAL.sub(lambda letter: letter[0].upper(), name)
        try:
            return ZoneInfo(key)
        except (OSError, KeyError, ValueError):
            raise ValueError(f"no zone {key}") from None
    if name is not None and name not in _ZONES:
        return None
    if offset is not None:
        sign, digits = offset.strip()[0], offset.strip()[1:].replace(":", "")
        hours, minutes = (digits, "0") if len(digits) <= 2 else (digits[:-2], digits[-2:])
        if int(hours) > 14 or int(minutes) > 59:
            raise ValueError("no such zone")
        return timezone((-1 if sign == "-" else 1) * timedelta(hours=int(hours), minutes=int(minutes)))
    return timezone(timedelta(hours=_ZONES[name])) if name is not None else UTC


@cache
def _names_of_languages() -> tuple[tuple[Mapping[str, int], Mapping[str, int]], ...]:
    """The months and weekdays of each language, by their names and what these begin with if it is clear."""
    return tuple((_beginnings(names.months, 3), _beginnings(names.weekdays, 2)) for names in languages())


def _beginnings(table: Mapping[str, int], least: int) -> dict[str, int]:
    meant: dict[str, set[int]] = {}
    for name, number in table.items():
        for length in range(least, len(name) + 1):
            meant.setdefault(name[:length], set()).add(number)
    return {**{name: min(numbers) for name, numbers in meant.items() if len(numbers) == 1}, **table}


def _days(text: str, months: Mapping[str, int], weekdays: Mapping[str, int]) -> Iterator[tuple[date, date]]:
    """Yield the days or months, from begin to before end, that words and numbers of one language can mean."""
    numbers, words, marks = [], [], set()
    for token in _TOKEN.findall(text):
        if token.isdecimal():
            numbers.append(token)
        elif token[0].isalpha():
            words.append(token)
        elif token in "./-_@'":
            marks.add(token)
        else:
            return
    month, weekday = None, None
    for word in sorted(words, key=lambda word: word in weekdays):
        if word in months and month is None:
            month = months[word]
        elif word in weekdays and weekday is None:
            weekday = weekdays[word]
        elif word not in _JOINING:
            return
    dotted = "." in marks and not marks & {"/", "-", "_"}
    for begin, end in _orders(numbers, month, dotted=dotted):
        if weekday is None or (end == begin + _DAY and begin.weekday() == weekday):
            yield begin, end


def _orders(numbers: list[str], month: int | None, *, dotted: bool) -> Iterator[tuple[date, date]]:
    """Yield what numbers can mean; where two orders are possible, that with the day first comes first."""
    sizes = [len(number) for number in numbers]
    values = [int(number) for number in numbers if len(number) <= 4]
    if len(values) != len(numbers) or 3 in sizes:
        return
    orders: list[tuple[int, int, int]] = []
    if month is not None and len(values) == 2:
        if sizes[0] == 4:
            orders = [(values[0], month, values[1])]
        else:
            orders = [(values[1] if sizes[1] == 4 else _year(numbers[1]), month, values[0])]
    elif len(values) == 3 and month is None:
        first, second, third = values
        if sizes[0] == 4:
            orders = [(first, second, third)]
        elif sizes[2] == 4 or (dotted and sizes[2] == 2):
            year = third if sizes[2] == 4 else _year(numbers[2])
            orders = [(year, second, first), *([] if dotted else [(year, first, second)])]
        elif sizes == [2, 2, 2]:
            last = _year(numbers[2])
            short = [(last, second, first), (last, first, second), (_year(numbers[0]), second, third)]
            orders = [order for order in dict.fromkeys(short) if _is_day(*order)]
            orders = orders if len(orders) == 1 else []
    elif len(values) == (1 if month else 2) and 4 in sizes:
        year, number = max(values), month or min(values)
        if year in YEARS and 1 <= number <= 12:
            yield months_from(year, number, 1)
        return
    for order in dict.fromkeys(orders):
        if _is_day(*order):
            yield date(*order), date(*order) + _DAY


def _is_day(year: int, month: int, day: int) -> bool:
    return 1 <= year < 9999 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]


def _year(digits: str) -> int:
    """A year by its last two digits, as POSIX reads it."""
    return int(digits) + (0 if len(digits) == 4 else 2000 if int(digits) < 69 else 1900)


def _moment(moment: datetime) -> DateSpan:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    _ = moment.astimezone(UTC)  # OverflowError outside the years 1 to 9999
    return DateSpan(moment, moment)


def _day(day: date) -> DateSpan:
    begin = _midnight(day)
    return DateSpan(begin, begin + _DAY if day < date.max else datetime.max.replace(tzinfo=UTC))


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _named_day(year: str, month: str, day: str) -> datetime | None:
    numbers = int(year), int(month), int(day)
    return _midnight(date(*numbers)) if numbers[0] in YEARS and _is_day(*numbers) else None
