"""The languages in which times are found: their tenses, their tables of words and patterns, and which a text is in.

The tables of a language are in the TOML file of its name beside this module:

- months, weekdays: in order; names of the same one are separated by slashes
- seasons, units, relative, named, weeks, numbers, edges: the words of each value, separated by commas. A season is
  that of the northern hemisphere, `relative` one of `periods.RELATIVE`; `named` counts days from today, `weeks` weeks
- forms: by the kinds of `periods.KINDS`, a pattern or several; those of `question_forms` are for questions only,
  in which a wrong time costs little
- literals: by kind, strings: every text that the kind matches has one, so that most texts need no pattern
- context: patterns of the words around a time; see `Context`
- tense, or verbs: the verbs that tell the tense of a sentence, for `PatternCues` or `VerbCues`
- day_first: whether 5/7 is always 7 May; capital_nouns: whether nouns are written with a capital

A pattern is a regular expression with placeholders: `{month}`, `{weekday}`, `{season}`, `{unit}`, `{number}`,
`{relative}`, `{period}`, `{named}`, `{weeks}`, `{edge}`, `{part}`, `{day}` and `{year}` stand for a word of that table,
as a group of that name; others for a pattern of `fragments`. The group `time` is the time itself; without it the whole
match is. Words and patterns of times have no accents and no capitals: texts are folded before they are matched.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from recallite.text.dates.periods import EVERYWHERE, KINDS, RELATIVE, YEAR, Time
from recallite.text.patterns import lazily, word_set
from recallite.text.words import tokenize

# The tense of a sentence as far as its verbs tell. `PatternCues` looks for patterns of verbs, `VerbCues` reads an
# English sentence word by word.
PAST, OPEN, FUTURE = -1, 0, 1
_WORD = lazily(r"let's\b|[a-z]+n't\b|'(?:ll|re|ve|m|s|d)\b|[a-z]+")
# A participle belongs to an auxiliary up to this many words before it.
_REACH = 4
_FUTURE_PREDICATES = ("due", "scheduled", "planned", "booked", "on", "in", "set")


class Cue(NamedTuple):
    """A word in a sentence that tells its tense: PAST, FUTURE, or OPEN if it may be either."""

    start: int
    tense: int


class PatternCues:
    """The cues that three patterns find in a sentence as it is written; of one place the last pattern counts."""

    def __init__(self, *, past: str, ahead: str, open: str) -> None:
        self._patterns = (lazily(ahead), FUTURE), (lazily(past), PAST), (lazily(open), OPEN)

    def __call__(self, sentence: str) -> list[Cue]:
        """The cues in a sentence, in order."""
        tenses = {match.start(): tense for pattern, tense in self._patterns for match in pattern.finditer(sentence)}
        return [Cue(start, tense) for start, tense in sorted(tenses.items())]


class VerbCues(Struct, frozen=True, kw_only=True, dict=True):
    """The cues that lists of English verbs find.

    - scheduled: future after a plural subject, "we leave on Monday"
    - imperative: future at the beginning of a sentence
    - planning: past verbs after which a time may be when the plan is due, if a word of `before_plan` follows
    - not_past: words that end in "ed" and are no verbs in the past
    - adverbs: words between an auxiliary and its participle
    """

    future: frozenset[str]
    open: frozenset[str]
    present: frozenset[str]
    past: frozenset[str]
    planning: frozenset[str]
    before_plan: frozenset[str]
    not_past: frozenset[str]
    imperative: frozenset[str]
    scheduled: frozenset[str]
    subjects: frozenset[str]
    adverbs: frozenset[str]
    participles: frozenset[str]
    have: frozenset[str]
    past_auxiliaries: frozenset[str]

    @cached_property
    def _informative(self) -> frozenset[str]:
        lists = self.have, self.future, self.open, self.present, self.scheduled, self.imperative, self.past, ("see",)
        return frozenset().union(*lists)

    def __call__(self, sentence: str) -> list[Cue]:
        """The cues in a sentence, in order."""
        matches = [*_WORD.finditer(sentence.lower().replace("\u2019", "'"))]
        words = [match[0] for match in matches]
        cues: list[Cue] = []
        governed = 0
        for i, word in enumerate(words):
            if word not in self._informative and not word.endswith("ed"):
                continue
            reading = self._read(words, i, governed=i < governed)
            if reading is not None:
                tense, reach = reading
                governed = i + reach
                cues.append(Cue(matches[i].start(), tense))
        return cues

    def _read(self, words: list[str], i: int, *, governed: bool) -> tuple[int, int] | None:
        """Return the tense that a word tells, and how many words it governs; None if it tells nothing."""
        word = words[i]
        following = next((word for word in words[i + 1 : i + 4] if word not in self.adverbs), "")
        if word in self.have:
            if following == "to":
                return FUTURE, _REACH
            return (PAST, _REACH) if self._is_past(following) or following in self.participles else None
        if word in self.future:
            return FUTURE, _REACH
        if word in self.open:
            return OPEN, _REACH
        if word in self.present:
            if governed:
                return None
            if following.endswith("ing") or following in _FUTURE_PREDICATES:  # "is leaving", "is due", "is on Friday"
                return FUTURE, _REACH
            # "Is closed" may be of any time.
            return PAST if word == "'s" and self._is_past(following) else OPEN, _REACH
        if word in self.scheduled and i and words[i - 1] in self.subjects:
            return FUTURE, _REACH
        if (not i and word in self.imperative) or (word == "see" and following == "you"):
            return FUTURE, 1
        if governed or not self._is_past(word):
            return None
        later = words[i + 1 : i + 6]
        if word in self.past_auxiliaries:
            planned = following in self.planning or (following == "going" and "to" in later)
            return OPEN if planned else PAST, _REACH
        return OPEN if word in self.planning and not self.before_plan.isdisjoint(later) else PAST, 1

    def _is_past(self, word: str) -> bool:
        if word in self.past:
            return True
        return len(word) > 3 and word.endswith("ed") and word not in self.not_past and word[-3] != "e"


_Match: TypeAlias = "re.Match[str]"
# The century in which a bare year is one; with a month or a day any four digits may be.
YEARS = range(1900, 2100)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.(?= ?[^\W\d])|\u00ba|\u00b0|o\b)?"
_DIGIT = lazily(r"\d")
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


class Language(Struct, frozen=True, kw_only=True, eq=False, dict=True):
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
        """Index terms: every text with a time has one of them; "this" and "last" alone tell nothing."""
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
        """The forms in order of precedence: what one form matches, a later one cannot match again."""
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

    def find(self, folded: str, terms: Collection[str], today: date, *, question: bool) -> list[Mention]:
        """The times in a folded text with these index terms, in order: of several that overlap the first form's."""
        mentions: list[Mention] = []
        taken: list[tuple[int, int]] = []
        numbered = _DIGIT.search(folded) is not None
        for form in forms_of(self, frozenset(terms)):
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
                mentions.append(Mention(start, stop, form.kind, time))
        return sorted(mentions)


@lru_cache(maxsize=1 << 15)
def forms_of(language: Language, terms: frozenset[str]) -> tuple[_Form, ...]:
    """The forms of a language that may be in a text with these of its `gates`."""
    return tuple(form for form in language.forms if not form.terms.isdisjoint(terms))


def fold(text: str) -> str:
    """Return the text in lower case without accents, each character in its place."""
    if text.isascii():
        return text.lower()
    plain = [unicodedata.normalize("NFD", character.lower())[:1] for character in text]
    return "".join(["'" if character in "\u2019\u02bc" else character for character in plain])


def filled(pattern: str, values: Mapping[str, str]) -> str:
    """Return the pattern with the values of its placeholders `{name}`."""
    for name, value in values.items():
        pattern = pattern.replace(f"{{{name}}}", value)
    return pattern


def _any_of(table: Collection[str]) -> str:
    return "|".join(sorted(table, key=len, reverse=True)) or "(?!)"


_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
_EDGES = {"early": 0, "mid": 1, "late": 2}
_COMMA = lazily(r",\s+")


def read_language(name: str) -> Language:
    """Return the language of a file of this package: "english"."""
    import tomllib

    table = tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))
    fragments = {name: _pattern(fragment, {}) for name, fragment in table.get("fragments", {}).items()}

    def patterns(key: str) -> dict[str, str]:
        return {name: _pattern(pattern, fragments) for name, pattern in table[key].items()}

    def forms(key: str) -> dict[str, tuple[str, ...]]:
        return {
            kind: tuple(_pattern(pattern, fragments) for pattern in ([form] if isinstance(form, str) else form))
            for kind, form in table.get(key, {}).items()
        }

    cues: Callable[[str], list[Cue]]
    if "verbs" in table:
        cues = VerbCues(**{key: frozenset(words.split()) for key, words in table["verbs"].items()})
    else:
        cues = PatternCues(**patterns("tense"))
    return Language(
        code=table["code"],
        months=_in_order(table["months"], 1),
        weekdays=_in_order(table["weekdays"], 0),
        seasons=_values(table["seasons"], _SEASONS.__getitem__),
        units=_values(table["units"], str),
        parts_of_day=_entries(table["parts_of_day"]),
        relative=_values(table["relative"], RELATIVE.__getitem__),
        named=_values(table["named"], int),
        weeks=_values(table.get("weeks", {}), int),
        numbers=_values(table["numbers"], int),
        vague_numbers=_entries(table["vague_numbers"]),
        edges=_values(table["edges"], _EDGES.__getitem__),
        stated_forms=forms("forms"),
        question_forms=forms("question_forms"),
        literals=table.get("literals", {}),
        context=Context(**{name: lazily(pattern) for name, pattern in patterns("context").items()}),
        function_words=frozenset(table["function_words"].split()),
        cues=cues,
        day_first=table.get("day_first", True),
        capital_nouns=table.get("capital_nouns", False),
    )


def _pattern(text: str, fragments: Mapping[str, str]) -> str:
    """Return a pattern of one line, or of several that are indented, with its fragments."""
    return filled("".join(map(str.lstrip, text.split("\n"))) if "\n" in text else text, fragments)


def _entries(text: str) -> tuple[str, ...]:
    return tuple(_COMMA.split(text.strip()))


def _values(table: Mapping[str, str], value_of: Callable[[str], Any]) -> dict[str, Any]:
    """Return the value of each word of a table that lists the words of each value."""
    return {word: value_of(value) for value, words in table.items() for word in _entries(words)}


def _in_order(names: str, first: int) -> dict[str, int]:
    """Return the numbers of names: "january/jan february/feb" from 1."""
    return {name: number for number, synonyms in enumerate(names.split(), first) for name in synonyms.split("/")}


_NAMES = ("english", "german", "french", "spanish", "portuguese", "italian", "dutch")
# Enough to tell a language by.
_MOST_CHARS = 1_000
_WORDS = lazily(r"[^\W\d_]+")
_DOTTED = lazily(r"\.((?:19|20)\d\d)(?!\w)")
DOTTED_CENTURIES = (".19", ".20")
"""Strings, one of which is in every text that has a time but none of `time_terms`: index terms take 7.5.2023 for a
version."""

TIME_TERMS = Path(__file__).with_name("time_terms.txt")
"""The list of `time_terms`."""


@cache
def languages() -> tuple[Language, ...]:
    """All languages, English first; their files are read once, in 5 ms."""
    return tuple(map(read_language, _NAMES))


@cache
def time_terms() -> frozenset[str]:
    """Index terms: every text with a time, in any language, has one of them.

    They are those of `languages`, which most questions do not need: they are listed, to be read in a twentieth of the
    time. `python -m tests.unit.core.text.dates.test_stated` writes the list anew.
    """
    return word_set(TIME_TERMS.read_text("utf-8"))


@cache
def _all(name: Literal["gates", "function_words"]) -> frozenset[str]:
    """The `gates` or the function words of all languages: no other word of a text has to be looked at."""
    return frozenset().union(*(getattr(language, name) for language in languages()))


def terms_of_times(text: str, terms: Collection[str]) -> Collection[str] | None:
    """Return the index terms of a text that tell of a time, with the year of 7.5.2023; None if it names no time."""
    if any(map(text.__contains__, DOTTED_CENTURIES)) and (dotted := _DOTTED.search(text)) is not None:
        return {*_all("gates").intersection(terms), dotted[1]}
    return None if time_terms().isdisjoint(terms) else _all("gates").intersection(terms)


@lru_cache(maxsize=4096)
def literals_of(terms: frozenset[str]) -> tuple[str, ...] | None:
    """Return strings: every text that has a time with these terms has one; None if they are not known."""
    english, *others = languages()
    literals: dict[str, None] = {}
    for language in (english, *(other for other in others if not other.terms.isdisjoint(terms))):
        for form in forms_of(language, terms):
            if form.for_questions:
                continue
            if not form.literals:
                return None
            literals.update(dict.fromkeys(form.literals))
    return tuple(literals)


def languages_of(folded: str, terms: Collection[str]) -> list[Language]:
    """Return the languages that a text with words of a time may be in, by the most function words.

    English needs none: "Yesterday: dentist". It may be in none that has times, and in several that are alike.
    """
    english = languages()[0]
    candidates = [language for language in languages() if not language.terms.isdisjoint(terms)]
    if candidates == [english]:
        return candidates
    words = _all("function_words").intersection(_WORDS.findall(folded[:_MOST_CHARS]))
    counts = {language: len(language.function_words & words) for language in languages()}
    best = max(counts[language] for language in candidates)
    if english in candidates and best == counts[english]:
        return [english]
    if counts[english] > best or (not best and len(candidates) > 1):
        return []
    if max(counts.values()) > best + 1:  # of one that is no candidate
        return []
    return [language for language in candidates if counts[language] == best]
