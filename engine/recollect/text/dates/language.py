"""A language as tables of words and patterns, and the times that they find in a text.

A pattern is a regular expression with placeholders: `{month}`, `{weekday}`, `{season}`, `{unit}`, `{number}`,
`{which}`, `{what}`, `{named}`, `{edge}`, `{day}` and `{year}` stand for a word of that table, by name. The group `time`
is the time itself; without it the whole match is. Tables and patterns have no accents and no capitals: texts are
folded before they are matched. Each form is looked for only where the text has a word of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import NamedTuple, TypeAlias

from recollect.text.dates import periods
from recollect.text.dates.periods import Time
from recollect.text.tokens import tokenize

_Match: TypeAlias = "re.Match[str]"
# The century in which a bare year is one; with a month or a day any four digits may be.
YEARS = range(1900, 2100)
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.(?= ?[^\W\d])|\u00ba|\u00b0|o\b)?"
_YEAR_TERMS = frozenset(map(str, YEARS))
_DECADES = [f"{century}{decade}0" for century in ("", "19", "20") for decade in range(10)]
_DECADE_TERMS = frozenset(tokenize(" ".join(f"{each}s {each}" for each in _DECADES)))


class Found(NamedTuple):
    """A time in a text: where it stands, what form it has, and which time it is."""

    start: int
    stop: int
    kind: str
    time: Time


class Cue(NamedTuple):
    """A word in a sentence that tells its tense: 1 of what will be, -1 of what was, 0 where it leaves that open."""

    start: int
    tense: int


def cues_by(*, past: str, ahead: str, either: str) -> Callable[[str], list[Cue]]:
    """The cues that three patterns find in a sentence as it is written; of one place `either` tells nothing."""
    patterns = [(re.compile(source), tense) for source, tense in ((ahead, 1), (past, -1), (either, 0))]

    def cues(sentence: str) -> list[Cue]:
        found = {match.start(): tense for pattern, tense in patterns for match in pattern.finditer(sentence)}
        return [Cue(start, tense) for start, tense in sorted(found.items())]

    return cues


def numbered(names: str, first: int) -> dict[str, int]:
    """Names in order with their numbers; those between slashes are the same: "jan/januar feb/februar"."""
    return {name: number for number, same in enumerate(names.split(), first) for name in same.split("/")}


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


class Excluded(NamedTuple):
    """`recurring`, `habit` or `unreal`, `yearly` and `moving` of a language."""

    recurring: re.Pattern[str]
    unsaid: re.Pattern[str]
    yearly: re.Pattern[str]
    moving: re.Pattern[str]


class _Form(NamedTuple):
    kind: str
    terms: frozenset[str]
    pattern: re.Pattern[str]
    time_of: Callable[[_Match, date, Language], Time]
    asked: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """The words of a language for times, and the patterns in which they stand.

    - code: ISO 639-1
    - months, weekdays, seasons: by number; a season by its first month
    - units: day, weekend, week, fortnight, month, quarter, year or decade
    - parts: of a day: "last night" and "this evening" are days
    - which: one of `periods.LAST` to `periods.COMING`
    - named: days from today: yesterday is -1
    - weeks: "the week before last" is -2
    - vague: numbers that are more or less
    - edges: "early" 0, "mid" 1, "the end of" 2
    - patterns, asked: by kind; those of `asked` are for questions only, where a time that is none costs little
    - limit: words before a time, as groups `since`, `after`, `before`, `until`, `by`, `start` and `range`
    - onward: what follows a time from which on something holds
    - joint: what stands between the ends of a range
    - function_words: what tells the language from others
    - day_first: 5/7 is 7 May in no text of it; None where it may be
    - cues: the places in a sentence that tell its tense
    - recurring: what stands before a time that is no certain one: "every"; as a group `plain` before a bare name
    - habit, unreal: words of a sentence that tells what is always so, or what is not so
    - yearly: words of a sentence in which a date without a year is of every year
    - nouns_capital: a capital after a number is that of what it counts
    - moving: of a change "from Monday to Thursday", which is no range
    """

    code: str
    months: Mapping[str, int]
    weekdays: Mapping[str, int]
    seasons: Mapping[str, int]
    units: Mapping[str, str]
    parts: Collection[str] = ()
    which: Mapping[str, int]
    named: Mapping[str, int]
    weeks: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, int]
    vague: Collection[str] = ()
    edges: Mapping[str, int]
    patterns: Mapping[str, Sequence[str]]
    asked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    limit: str
    onward: str = r"(?!)"
    joint: str
    function_words: frozenset[str]
    day_first: bool | None = True
    cues: Callable[[str], list[Cue]]
    recurring: str
    habit: str
    yearly: str
    unreal: str
    moving: str
    nouns_capital: bool = False

    @cached_property
    def terms(self) -> frozenset[str]:
        """Index terms of which a text with a time has at least one; "this" and "last" alone tell nothing."""
        named = (self._rarest(table) for table in (self.months, self.weekdays, self.seasons, self.named, self.edges))
        lone = frozenset(tokenize(" ".join([*self.units, *self.parts])))
        return frozenset().union(*named, lone, _YEAR_TERMS, _DECADE_TERMS)

    def _rarest(self, table: Collection[str]) -> frozenset[str]:
        """A term of each entry: of several words the longest."""
        chosen = [max(entry.split(), key=len) for entry in table]
        return frozenset(tokenize(" ".join(chosen)))

    @cached_property
    def forms(self) -> tuple[_Form, ...]:
        """The patterns, compiled: what one finds, those after it do not look at."""
        tables: dict[str, Collection[str]] = {
            "month": self.months, "weekday": self.weekdays, "season": self.seasons, "unit": self.units,
            "number": self.numbers, "which": self.which, "named": self.named, "weeks": self.weeks,
            "edge": self.edges, "part": self.parts,
            "what": [*self.units, *self.parts, *self.weekdays, *self.seasons, *self.months],
        }  # fmt: skip
        named = {name: f"(?P<{name}>{_any_of(table)})" for name, table in tables.items()}
        named["number"] = rf"(?P<number>\d{{1,3}}|{_any_of(self.numbers)})"
        named |= {"year": _YEAR, "day": _DAY}
        fixed = {"year": _YEAR_TERMS, "decade": _DECADE_TERMS}
        compiled = []
        for kind, (gate, time_of) in _KINDS.items():
            terms = fixed.get(gate) or self._rarest(tables[gate])
            for asked, source in ((False, self.patterns), (True, self.asked)):
                for pattern in (
                    (*_EVERYWHERE.get(kind, ()), *source.get(kind, ())) if not asked else source.get(kind, ())
                ):
                    for name, alternatives in named.items():
                        pattern = pattern.replace(f"{{{name}}}", alternatives)
                    compiled.append(_Form(kind, terms, re.compile(pattern), time_of, asked))
        return tuple(compiled)

    @cached_property
    def limits(self) -> re.Pattern[str]:
        """`limit` at the end of what stands before a time."""
        return re.compile(rf"\b(?:{self.limit})$")

    @cached_property
    def joints(self) -> re.Pattern[str]:
        """`joint`, compiled."""
        return re.compile(self.joint)

    @cached_property
    def onwards(self) -> re.Pattern[str]:
        """`onward`, compiled."""
        return re.compile(self.onward)

    @cached_property
    def excluded(self) -> Excluded:
        """The patterns of what is no certain time, compiled."""
        sources = (self.recurring, f"{self.habit}|{self.unreal}", self.yearly, self.moving)
        return Excluded(*map(re.compile, sources))

    def find(self, folded: str, terms: Collection[str], today: date, *, asked: bool) -> list[Found]:
        """The times in a folded text with these index terms, in order: of several that overlap the first form's."""
        return sorted(self._found(folded, terms, today, asked))

    def _found(self, folded: str, terms: Collection[str], today: date, asked: bool) -> Iterator[Found]:
        taken: list[tuple[int, int]] = []
        for form in self.forms:
            if (form.asked and not asked) or form.terms.isdisjoint(terms):
                continue
            for match in form.pattern.finditer(folded):
                start, stop = match.span("time") if "time" in form.pattern.groupindex else match.span()
                if any(start < end and begin < stop for begin, end in taken):
                    continue
                try:
                    time = form.time_of(match, today, self)
                except (ValueError, OverflowError, KeyError):  # 30 February; letters that only match, such as \u017f
                    continue
                taken.append((start, stop))
                yield Found(start, stop, form.kind, time)


def fold(text: str) -> str:
    """The text in lower case without accents, each character in its place."""
    return text.lower() if text.isascii() else "".join(map(_folded, text))


def _folded(character: str) -> str:
    plain = unicodedata.normalize("NFD", character.lower())[:1]
    return "'" if plain in "\u2019\u02bc" else plain


def _any_of(table: Collection[str]) -> str:
    return "|".join(sorted(table, key=len, reverse=True)) or "(?!)"


def _iso(match: _Match, today: date, language: Language) -> Time:
    year, month = int(match["year"]), int(match["month"])
    return (
        periods.months(year, month, 1, today)
        if match["day"] is None
        else periods.day(year, month, int(match["day"]), today)
    )


def _numeric(match: _Match, today: date, language: Language) -> Time:
    """17/5/2023. Where both readings are days, a question has the month first, and a statement is in doubt."""
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    if match["mark"] == "." or language.day_first or first > 12:
        return periods.day(year, second, first, today)
    time = periods.day(year, first, second, today)
    return time._replace(readings=periods.DOUBT) if second <= 12 and first != second else time


def _date(match: _Match, today: date, language: Language) -> Time:
    return periods.day(_year_of(match), language.months[match["month"]], int(match["day"]), today)


def _days(match: _Match, today: date, language: Language) -> Time:
    """3 to 9 May."""
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
    """Early May, the end of 2019."""
    time = (_month if match.groupdict().get("month") else _year)(match, today, language)
    return periods.third_of(time, language.edges[match["edge"]])


def _month_of_year(match: _Match, today: date, language: Language) -> Time:
    """March last year, the summer of last year."""
    step = min(language.which[match["which"]], 1)
    groups = match.groupdict()
    if groups.get("season"):
        return periods.season(today.year + step, language.seasons[match["season"]], today)
    return periods.months(today.year + step, language.months[match["month"]], 1, today)


def _weekday_of_week(match: _Match, today: date, language: Language) -> Time:
    return periods.weekday_of_week(language.weekdays[match["weekday"]], min(language.which[match["which"]], 1), today)


def _number(match: _Match, language: Language) -> tuple[int, bool]:
    words = match["number"]
    return int(words) if words.isdecimal() else language.numbers[words], words in language.vague


def _ago(match: _Match, today: date, language: Language) -> Time:
    number, vague = _number(match, language)
    return periods.around(today, -number, language.units[match["unit"]], vague=vague)


def _from_now(match: _Match, today: date, language: Language) -> Time:
    number, vague = _number(match, language)
    return periods.around(today, number, language.units[match["unit"]], vague=vague)


def _ahead(match: _Match, today: date, language: Language) -> Time:
    """In two weeks: of what is past, it is how long that took."""
    time = _from_now(match, today, language)
    return time._replace(readings=periods.Readings(ahead=periods.Period(time.begin, time.end)))


def _within(match: _Match, today: date, language: Language) -> Time:
    number = _number(match, language)[0] if match.groupdict().get("number") else 1
    sign = 1 if language.which[match["which"]] == periods.LAST else -1
    return periods.within(today, sign * number, language.units[match["unit"]])


def _named(match: _Match, today: date, language: Language) -> Time:
    return periods.from_today(today, language.named[match["named"]])


def _weeks(match: _Match, today: date, language: Language) -> Time:
    return periods.near_week(language.weeks[match["weeks"]], today)


def _part(match: _Match, today: date, language: Language) -> Time:
    """Last night, this morning."""
    return periods.from_today(today, min(language.which[match["which"]], 1))


def _near(match: _Match, today: date, language: Language) -> Time:
    which, what = language.which[match["which"]], match["what"]
    step = min(which, 1)
    if unit := language.units.get(what):
        if unit == "weekend":
            return periods.near_weekend(which, today)
        near = {
            "week": periods.near_week, "month": periods.near_month, "quarter": periods.near_quarter,
            "year": periods.near_year,
        }  # fmt: skip
        return near[unit](step, today)
    if what in language.weekdays:
        return periods.near_weekday(which, language.weekdays[what], today)
    if what in language.seasons:
        return periods.near_months(which, language.seasons[what], 3, today)
    return periods.near_months(which, language.months[what], 1, today)


def _weekday(match: _Match, today: date, language: Language) -> Time:
    return periods.weekday(language.weekdays[match["weekday"]], today)


def _weekend(match: _Match, today: date, language: Language) -> Time:
    return periods.weekend(today)


def _year_of(match: _Match) -> int | None:
    year = match.groupdict().get("year")
    return None if year is None else int(year)


# The kinds of forms, in the order in which they are looked for: the table with a word of each, and its meaning.
_KINDS: dict[str, tuple[str, Callable[[_Match, date, Language], Time]]] = {
    "iso": ("year", _iso),
    "numeric": ("year", _numeric),
    "days": ("month", _days),
    "date": ("month", _date),
    "edge": ("edge", _edge),
    "month_of_year": ("which", _month_of_year),
    "month_year": ("month", _month),
    "quarter": ("year", _quarter),
    "season_year": ("season", _season),
    "weekday_of_week": ("weekday", _weekday_of_week),
    "ago": ("unit", _ago),
    "from_now": ("unit", _from_now),
    "ahead": ("unit", _ahead),
    "within": ("which", _within),
    "weeks": ("unit", _weeks),
    "named": ("named", _named),
    "part": ("which", _part),
    "near": ("which", _near),
    "weekday": ("weekday", _weekday),
    "weekend": ("unit", _weekend),
    "month": ("month", _month),
    "season": ("season", _season),
    "years": ("year", _years),
    "year": ("year", _year),
    "decade": ("decade", _decade),
}
_ISO = r"(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d)(?:t\d\d:\d\d[\d:.z+-]*)?)?"
_EVERYWHERE = {
    "iso": (rf"(?<![\w/.-])(?P<time>{_ISO})(?![\w-])", rf"(?<![\w/.-])(?P<time>{_ISO.replace('-', '/')})(?![\w/])"),
    "numeric": (rf"(?<![\w/.-])(?P<time>(?P<first>\d\d?)(?P<mark>[/.-])(?P<second>\d\d?)(?P=mark){_YEAR})(?![\w/-])",),
    "years": (rf"(?<![\w/.-])(?P<time>{_YEAR} ?[-\u2013] ?(?P<last>(?:19|20)\d\d))(?![\w/-]|\.\d)",),
}
