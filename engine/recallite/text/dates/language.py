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

from recallite.text.dates.forms import EVERYWHERE, KINDS, YEAR
from recallite.text.dates.periods import Time
from recallite.text.index_terms import tokenize
from recallite.text.lazy_patterns import lazily

_Match: TypeAlias = "re.Match[str]"
# The century in which a bare year is one; with a month or a day any four digits may be.
YEARS = range(1900, 2100)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.(?= ?[^\W\d])|\u00ba|\u00b0|o\b)?"
_MOST_KEPT = 4096
_DIGIT = re.compile(r"\d")
# Kinds of forms that have the number of a day or a year.
_NUMBERED = frozenset(("days", "date", "month_year"))
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


class TenseCues:
    """The cues that three patterns find in a sentence as it is written; of one place `either` tells nothing."""

    def __init__(self, *, past: str, ahead: str, either: str) -> None:
        self._sources = (ahead, 1), (past, -1), (either, 0)

    @cached_property
    def patterns(self) -> tuple[tuple[re.Pattern[str], int], ...]:
        """The patterns with their tenses; compiled only for the languages that are written."""
        return tuple((lazily(source), tense) for source, tense in self._sources)

    def __call__(self, sentence: str) -> list[Cue]:
        """The cues in a sentence, in order."""
        found = {match.start(): tense for pattern, tense in self.patterns for match in pattern.finditer(sentence)}
        return [Cue(start, tense) for start, tense in sorted(found.items())]


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
    literals: Sequence[str]


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
    - literals: by kind, what every text that its patterns match has one of, so that most texts need no pattern
    - limit: words before a time, as groups `since`, `start`, `after`, `before`, `until`, `through`, `by`, `range` and
      `joint`
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
    literals: Mapping[str, Sequence[str]] = field(default_factory=dict)
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

    @cached_property
    def gates(self) -> frozenset[str]:
        """`terms`, and the other index terms that a form asks for."""
        return self.terms | self._rarest(self.which)

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
        named |= {"year": YEAR, "day": _DAY}
        fixed = {"year": _YEAR_TERMS, "decade": _DECADE_TERMS}
        compiled = []
        for kind, (gate, time_of) in KINDS.items():
            terms = fixed.get(gate) or self._rarest(tables[gate])
            for asked, source in ((False, self.patterns), (True, self.asked)):
                for pattern in (
                    (*EVERYWHERE.get(kind, ()), *source.get(kind, ())) if not asked else source.get(kind, ())
                ):
                    for name, alternatives in named.items():
                        pattern = pattern.replace(f"{{{name}}}", alternatives)
                    compiled.append(_Form(kind, terms, lazily(pattern), time_of, asked, self.literals.get(kind, ())))
        return tuple(compiled)

    @cached_property
    def limits(self) -> re.Pattern[str]:
        """`limit` at the end of what stands before a time."""
        return lazily(rf"\b(?:{self.limit})$")

    @cached_property
    def joints(self) -> re.Pattern[str]:
        """`joint`, compiled."""
        return lazily(self.joint)

    @cached_property
    def onwards(self) -> re.Pattern[str]:
        """`onward`, compiled."""
        return lazily(self.onward)

    @cached_property
    def excluded(self) -> Excluded:
        """The patterns of what is no certain time, compiled."""
        sources = (self.recurring, f"{self.habit}|{self.unreal}", self.yearly, self.moving)
        return Excluded(*map(re.compile, sources))

    def forms_of(self, terms: frozenset[str]) -> tuple[_Form, ...]:
        """The forms that may be in a text with these of the `gates`."""
        found = self._forms_of.get(terms)
        if found is None:
            if len(self._forms_of) >= _MOST_KEPT:
                self._forms_of.clear()
            found = self._forms_of[terms] = tuple(form for form in self.forms if not form.terms.isdisjoint(terms))
        return found

    @cached_property
    def _forms_of(self) -> dict[frozenset[str], tuple[_Form, ...]]:
        return {}

    def find(self, folded: str, terms: Collection[str], today: date, *, asked: bool) -> list[Found]:
        """The times in a folded text with these index terms, in order: of several that overlap the first form's."""
        return sorted(self._found(folded, terms, today, asked))

    def _found(self, folded: str, terms: Collection[str], today: date, asked: bool) -> Iterator[Found]:
        taken: list[tuple[int, int]] = []
        numbered = _DIGIT.search(folded) is not None
        for form in self.forms_of(frozenset(terms)):
            if (form.asked and not asked) or (form.kind in _NUMBERED and not numbered):
                continue
            if form.literals and not any(map(folded.__contains__, form.literals)):
                continue
            for match in form.pattern.finditer(folded):
                start, stop = match.span("time") if "time" in form.pattern.groupindex else match.span()
                if any(start < end and begin < stop for begin, end in taken):
                    continue
                try:
                    time = form.time_of(match, today, self)
                except (ValueError, OverflowError, KeyError):  # 30 February; letters that only match, such as \u017f
                    taken.append((start, stop))  # its month alone is not meant
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
