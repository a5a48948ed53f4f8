"""A language as tables of words and patterns, and the times that they find in a text.

The tables of a language are in the TOML file of its name beside this module:

- months, weekdays: in order; names of the same one are separated by slashes
- seasons, units, relative, named, weeks, numbers, edges: the words of each value, separated by commas. A season is
  that of the northern hemisphere, `relative` one of `periods.RELATIVE`; `named` counts days from today, `weeks` weeks
- forms: by the kinds of `forms.KINDS`, a pattern or several; those of `question_forms` are for questions only,
  in which a wrong time costs little
- literals: by kind, strings of which every text that the kind matches has one, so that most texts need no pattern
- context: patterns of the words around a time; see `Context`
- tense, or verbs: the verbs that tell the tense of a sentence; see `tense`
- day_first: whether 5/7 is always 7 May; capital_nouns: whether nouns are written with a capital

A pattern is a regular expression with placeholders: `{month}`, `{weekday}`, `{season}`, `{unit}`, `{number}`,
`{relative}`, `{period}`, `{named}`, `{weeks}`, `{edge}`, `{part}`, `{day}` and `{year}` stand for a word of that table,
as a group of that name; others for a pattern of `fragments`. The group `time` is the time itself; without it the whole
match is. Words and patterns of times have no accents and no capitals: texts are folded before they are matched.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple, TypeAlias

from recallite.text.dates.forms import EVERYWHERE, KINDS, YEAR
from recallite.text.dates.periods import Time
from recallite.text.dates.tense import Cue
from recallite.text.index_terms import tokenize
from recallite.text.lazy_patterns import lazily

_Match: TypeAlias = "re.Match[str]"
# The century in which a bare year is one; with a month or a day any four digits may be.
YEARS = range(1900, 2100)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.(?= ?[^\W\d])|\u00ba|\u00b0|o\b)?"
_CACHED_TERM_SETS = 4096
_DIGIT = re.compile(r"\d")
# Kinds of forms that have the number of a day or a year.
_NUMBERED = frozenset(("days", "date", "month_year"))
_YEAR_TERMS = frozenset(map(str, YEARS))
_DECADES = [f"{century}{decade}0" for century in ("", "19", "20") for decade in range(10)]
_DECADE_TERMS = frozenset(tokenize(" ".join(f"{decade}s {decade}" for decade in _DECADES)))


class Mention(NamedTuple):
    """A time in a text: its place, the kind of its form, and the time."""

    start: int
    stop: int
    kind: str
    time: Time


class Context(NamedTuple):
    """Patterns of the words around a time.

    - limit: words before a time, as groups `since`, `start`, `after`, `before`, `until`, `through`, `by`, `range` and
      `joint`
    - onward: words after the begin of what is still so
    - joint: words between the ends of a range
    - recurring: words before a time that recurs: "every"; as a group `plain` words before a bare name
    - unsaid: words of a sentence about what is always so, or not so
    - yearly: words of a sentence in which a date without a year is of every year
    - moving: verbs of a change "from Monday to Thursday", which is no range
    """

    limit: re.Pattern[str]
    joint: re.Pattern[str]
    recurring: re.Pattern[str]
    unsaid: re.Pattern[str]
    yearly: re.Pattern[str]
    moving: re.Pattern[str]
    onward: re.Pattern[str] = lazily(r"(?!)")


class _Form(NamedTuple):
    kind: str
    terms: frozenset[str]
    pattern: re.Pattern[str]
    time_of: Callable[[_Match, date, Language], Time]
    for_questions: bool
    literals: Sequence[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """The words of a language for times, and the patterns in which they stand, as this module describes them."""

    code: str
    months: Mapping[str, int]
    weekdays: Mapping[str, int]
    seasons: Mapping[str, int]
    units: Mapping[str, str]
    parts_of_day: Collection[str]
    relative: Mapping[str, int]
    named: Mapping[str, int]
    weeks: Mapping[str, int]
    numbers: Mapping[str, int]
    vague_numbers: Collection[str]
    edges: Mapping[str, int]
    stated_forms: Mapping[str, Sequence[str]]
    question_forms: Mapping[str, Sequence[str]]
    literals: Mapping[str, Sequence[str]]
    context: Context
    function_words: frozenset[str]
    cues: Callable[[str], list[Cue]]
    day_first: bool = True
    capital_nouns: bool = False

    @cached_property
    def terms(self) -> frozenset[str]:
        """Index terms of which a text with a time has at least one; "this" and "last" alone tell nothing."""
        tables = (self._rarest(table) for table in (self.months, self.weekdays, self.seasons, self.named, self.edges))
        lone = frozenset(tokenize(" ".join([*self.units, *self.parts_of_day])))
        return frozenset().union(*tables, lone, _YEAR_TERMS, _DECADE_TERMS)

    @cached_property
    def gates(self) -> frozenset[str]:
        """`terms`, and the other index terms by which a form is selected."""
        return self.terms | self._rarest(self.relative)

    def _rarest(self, table: Collection[str]) -> frozenset[str]:
        """A term of each entry: of several words the longest."""
        return frozenset(tokenize(" ".join(max(entry.split(), key=len) for entry in table)))

    @cached_property
    def forms(self) -> tuple[_Form, ...]:
        """The forms in order of precedence: a place that one matches is closed to those after it."""
        tables: dict[str, Collection[str]] = {
            "month": self.months, "weekday": self.weekdays, "season": self.seasons, "unit": self.units,
            "number": self.numbers, "relative": self.relative, "named": self.named, "weeks": self.weeks,
            "edge": self.edges, "part": self.parts_of_day,
            "period": [*self.units, *self.parts_of_day, *self.weekdays, *self.seasons, *self.months],
        }  # fmt: skip
        groups = {name: f"(?P<{name}>{_any_of(table)})" for name, table in tables.items()}
        groups["number"] = rf"(?P<number>\d{{1,3}}|{_any_of(self.numbers)})"
        groups |= {"year": YEAR, "day": _DAY}
        fixed = {"year": _YEAR_TERMS, "decade": _DECADE_TERMS}
        forms = []
        for kind, (table, time_of) in KINDS.items():
            terms = fixed.get(table) or self._rarest(tables[table])
            stated = *EVERYWHERE.get(kind, ()), *self.stated_forms.get(kind, ())
            for for_questions, patterns in ((False, stated), (True, self.question_forms.get(kind, ()))):
                for pattern in patterns:
                    compiled = lazily(filled(pattern, groups))
                    forms.append(_Form(kind, terms, compiled, time_of, for_questions, self.literals.get(kind, ())))
        return tuple(forms)

    def forms_of(self, terms: frozenset[str]) -> tuple[_Form, ...]:
        """The forms that may be in a text with these of the `gates`."""
        forms = self._forms_of.get(terms)
        if forms is None:
            if len(self._forms_of) >= _CACHED_TERM_SETS:
                self._forms_of.clear()
            forms = self._forms_of[terms] = tuple(form for form in self.forms if not form.terms.isdisjoint(terms))
        return forms

    @cached_property
    def _forms_of(self) -> dict[frozenset[str], tuple[_Form, ...]]:
        return {}

    def find(self, folded: str, terms: Collection[str], today: date, *, question: bool) -> list[Mention]:
        """The times in a folded text with these index terms, in order: of several that overlap the first form's."""
        return sorted(self._mentions(folded, terms, today, question))

    def _mentions(self, folded: str, terms: Collection[str], today: date, question: bool) -> Iterator[Mention]:
        taken: list[tuple[int, int]] = []
        numbered = _DIGIT.search(folded) is not None
        for form in self.forms_of(frozenset(terms)):
            if (form.for_questions and not question) or (form.kind in _NUMBERED and not numbered):
                continue
            if form.literals and not any(map(folded.__contains__, form.literals)):
                continue
            for match in form.pattern.finditer(folded):
                start, stop = match.span("time") if "time" in form.pattern.groupindex else match.span()
                if any(start < end and begin < stop for begin, end in taken):
                    continue
                taken.append((start, stop))
                try:
                    time = form.time_of(match, today, self)
                except (ValueError, OverflowError, KeyError):  # 30 February; letters that only match, such as \u017f
                    continue  # the place stays taken: the month alone is not meant
                yield Mention(start, stop, form.kind, time)


def fold(text: str) -> str:
    """Return the text in lower case without accents, each character in its place."""
    return text.lower() if text.isascii() else "".join(map(_folded, text))


def filled(pattern: str, values: Mapping[str, str]) -> str:
    """Return the pattern with the values of its placeholders `{name}`."""
    for name, value in values.items():
        pattern = pattern.replace(f"{{{name}}}", value)
    return pattern


def _folded(character: str) -> str:
    plain = unicodedata.normalize("NFD", character.lower())[:1]
    return "'" if plain in "\u2019\u02bc" else plain


def _any_of(table: Collection[str]) -> str:
    return "|".join(sorted(table, key=len, reverse=True)) or "(?!)"
