"""Kinds of values that questions ask for, such as a person or a time, and whether a text has one. Rules for English.

Last, whether a text has another code, number or name in the place of the question's.

A memory on the topic of a question is less likely to answer it if it has no value of the kind asked for: "What is the
user's phone number?" is not answered by "User works at Calder Freight".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from recallite.text.patterns import lazily
from recallite.text.questions import read_question
from recallite.text.topics import NUMBER_WORDS
from recallite.text.words import QUESTION_TERMS, STOP_TERMS, STOP_WORDS, tokenize

SLOTS = {
    "phone": "a phone number", "email": "an email address", "amount": "a number", "duration": "a length of time",
    "time": "a time", "place": "a place", "person": "a person", "reason": "a reason", "name": "a name",
}  # fmt: skip
"""Kinds of values, with the words that an evidence gap has for them."""
_LONGEST = 200  # characters: a longer question asks for several things
_REST = r".{0,200}"
_WHAT = rf"\b(?:what|which)\b{_REST}\b"
_SIZES = "many much tall far big large high fast heavy deep wide old"
_COSTS = "earn earns earning cost costs costing pay pays paying payment"
_MEASURES = "age salary mileage price rent cost budget fee height weight pin number size port"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Kinds of values: words (a question has one of them), and the pattern of the questions.
_ASKED = tuple(
    (slot, _set(words), lazily(pattern, re.IGNORECASE))
    for slot, words, pattern in (
        ("phone", "phone number", rf"\bphone number\b|{_WHAT}phone\??$|\bnumber can\b{_REST}\b(?:call|reach)"),
        ("email", "email mail", rf"{_WHAT}e-?mail(?: address)?\??$"),
        ("duration", "how", r"\bhow long\b(?! ago)|\bhow many (?:years|months|weeks|days|hours|minutes|seconds)\b"),
        (
            "amount",
            f"{_SIZES} {_COSTS} {_MEASURES}",
            rf"\bhow (?:{'|'.join(_SIZES.split())})\b|\bwhat\b{_REST}\b(?:{'|'.join(_COSTS.split())})\b"
            rf"|{_WHAT}(?:{'|'.join(_MEASURES.split())})\b(?! of\b)",
        ),
        (
            "time",
            "when time day date month year weekday long birthday deadline hours birth",
            r"^(?:since |until |till |by |from )?when\b|\b(?:what|which) (?:time|day|date|month|year|weekday)\b"
            rf"|\bhow long ago\b|{_WHAT}(?:birthday|date of birth|deadline|opening hours)\??$",
        ),
        (
            "place",
            "where city town country place street room address region",
            r"^(?:and |from |to )?where\b|\b(?:what|which) (?:city|town|country|place|street|room|address|region)\b",
        ),
        ("person", "who whom whose", r"^(?:and |with |to |for |by )?(?:who|whom|whose)\b"),
        ("reason", "why reason", r"^(?:and )?why\b|\b(?:what|which) (?:is |was )?(?:the )?reason\b"),
        ("name", "name names called", rf"\bwhat\b{_REST}\b(?:names?|called)\b"),
    )
)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun")
_DATE_WORDS = frozenset((*_MONTHS, *_DAYS, *(f"{day}day{s}" for day in _DAYS for s in ("", "s"))))
_UNITS = _set(
    "second seconds minute minutes hour hours day days night nights week weeks month months year years decade decades"
    " century centuries"
)
_TIMES = frozenset(word.lower() for word in _DATE_WORDS if word not in _DAYS) | _set(
    "jan feb mar apr jun jul aug sep sept oct nov dec weekday weekdays weekend weekends today yesterday tomorrow"
    " tonight morning mornings evening evenings afternoon afternoons noon midnight spring summer autumn winter"
    " christmas easter ago since until till soon annually daily weekly monthly nightly clock am pm birthday"
)
_NUMBERS = _set(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands"
    " million millions dozen couple several half third only none no free pair twin twins once twice"
)
_PEOPLE = _set(
    "mother mothers father fathers mom mum dad sister sisters brother brothers wife husband son sons daughter"
    " daughters aunt uncle cousin cousins niece nieces nephew nephews gran grandma grandpa granny grandmother"
    " grandfather grandparents grandson granddaughter grandchild grandchildren grandkids friend friends boss manager"
    " doctor dr mr mrs ms neighbor neighbour neighbors neighbours colleague colleagues team people person man woman"
    " guy guys girl girls boy boys kid kids child children parent parents family he she they professor teacher"
    " boyfriend girlfriend partner client clients customer customers everyone nobody someone nurse dentist lawyer"
    " coach trainer sitter babysitter vet owner landlord landlady designer designers developer developers engineer"
    " engineers tester testers accountant reception department company"
)
_POSITIONS = _set(
    "behind above under beside between inside outside into home here there street room city live lives address located"
)
_PREPOSITIONS = _set("in at on from near via")
# Words before the last and the first year of a time, and between two: "from 2014 to 2018", "between 2014 and 2018".
_UP_TO, _FROM = _set("until till to before by through thru"), _set("since after starting")
_BETWEEN, _ALSO = frozenset(("between",)), frozenset(("and",))
# "From 2014 on": a car from 2019 is of that year alone.
_ONWARDS = _set("on onward onwards")
# A time after a preposition is no place: "in mid October", "at 9:15", "on Fridays".
_NO_PLACE = _TIMES | _UNITS | _set("mid early late middle end beginning next last every average moment time leave sale")
_DURATIONS = _NUMBERS | _UNITS | _set("since until till always")
_REASONS = _set(
    "because since so due reason want wants wanted to for cause caused causes as thanks after afraid too hate hates"
    " need needs"
)
_WORD, _CAPITALIZED, _DIGIT = re.compile(r"\w+"), re.compile(r"\b[A-Z][\w'-]*"), re.compile(r"\d")
_PHONE = lazily(r"\+?\d(?:[ ()/.-]?\d){4,}")
_EMAIL = lazily(r"\S@\S")
_CLOCK = lazily(r"\d(?:[:./h-]\d|st|nd|rd|th|[ap]m\b)|\b(?:1[89]|20)\d\d\b")
_HOUR = lazily(r"\b(?:at|by|before|after) \d", re.IGNORECASE)
_SPOKEN = lazily(r"\b(?:half past|quarter (?:past|to))\b", re.IGNORECASE)
# The day of a date is no amount, and neither is a year or the time of a clock.
_MONTH_DAY = lazily(
    rf"\b(?:{'|'.join(month[:3] for month in _MONTHS)})[a-z]* \d{{1,4}}(?:st|nd|rd|th)?\b", re.IGNORECASE
)
_DATED = lazily(r"\d{1,4}(?:st|nd|rd|th)\b|\d{1,2}[:.]\d\d\b(?! ?(?:%|[a-z]))|\b(?:1[89]|20)\d\d\b", re.IGNORECASE)
_QUESTION = lazily(r"[^.!?]{1,200}\?")


@lru_cache(maxsize=1024)
def slot_of(question: str) -> str | None:
    """The kind of value that a question asks for, a key of `SLOTS`; None for any other."""
    if len(question) > _LONGEST:
        return None
    words = _WORD.findall(question.lower())
    # Nine patterns took 30 microseconds a question: nearly all questions have words of one or two.
    for slot, some, asks in _ASKED:
        if not some.isdisjoint(words) and asks.search(question):
            return slot
    return None


def only_asks(text: str) -> bool:
    """Whether a text is a question and nothing else."""
    return text.endswith("?") and _QUESTION.fullmatch(text) is not None


# Words are looked up in sets: an alternation of sixty words took 50 to 100 microseconds a text.
def _has_amount(text: str) -> bool:
    words = _WORD.findall(text.lower())
    if not _NUMBERS.isdisjoint(words):
        return True
    if _DIGIT.search(text) is None:
        return False
    if not _TIMES.isdisjoint(words):
        text = _MONTH_DAY.sub(" ", text)
    return _DIGIT.search(_DATED.sub(" ", text)) is not None


def _has_time(text: str) -> bool:
    words = _WORD.findall(text.lower())
    if not (_TIMES.isdisjoint(words) and _UNITS.isdisjoint(words)):
        return True
    if _DIGIT.search(text) is None:
        return ("half" in words or "quarter" in words) and _SPOKEN.search(text) is not None
    return bool(_CLOCK.search(text) or _HOUR.search(text) or _SPOKEN.search(text))


def _has_place(text: str) -> bool:
    words = _WORD.findall(text.lower())
    if not _POSITIONS.isdisjoint(words) or "to the" in text or "://" in text:
        return True
    for i, word in enumerate(words[:-1]):
        if word in _PREPOSITIONS:
            after = words[i + 1 : i + 3]
            if (after[-1] if after[0] == "the" else after[0]) not in _NO_PLACE and not after[0][0].isdigit():
                return True
    return text.islower() or _has_names(text)


def _has_names(text: str, *, persons: bool = False) -> bool:
    """Whether a word within a sentence, or two in a row, begin with a capital and are of no date; also "IT", "B12"."""
    first_of_two = -1
    for match in _CAPITALIZED.finditer(text):
        word, start = match[0], match.start()
        if not persons and word.isupper() and word.isalpha() and len(word) > 1:
            return True
        ahead = start - (start > 0 and text[start - 1] in "\"'(")
        inside = ahead > 1 and text[ahead - 1].isspace() and (text[ahead - 2].isalnum() or text[ahead - 2] in "_,;:")
        if inside and not persons and word[-1].isdigit():
            return True
        if word[1:2].islower():
            if word not in _DATE_WORDS and (inside or start == first_of_two):
                return True
            first_of_two = match.end() + 1 if text[match.end() : match.end() + 1] == " " and word.isalpha() else -1
    return False


HAS: dict[str, Callable[[str], bool]] = {
    "phone": lambda text: _PHONE.search(text) is not None,
    "email": lambda text: "@" in text and _EMAIL.search(text) is not None,
    "amount": _has_amount,
    "duration": lambda text: not _DURATIONS.isdisjoint(_WORD.findall(text.lower())) or _DIGIT.search(text) is not None,
    "time": _has_time,
    "place": _has_place,
    "person": lambda text: (
        not _PEOPLE.isdisjoint(_WORD.findall(text.lower())) or text.islower() or _has_names(text, persons=True)
    ),
    "reason": lambda text: not _REASONS.isdisjoint(_WORD.findall(text.lower())),
    "name": lambda text: text.islower() or _has_names(text),
}
"""Whether a text has a value of a kind. In small letters any word may be a name."""


# A text about another one of the same kind is on the topic of a question and does not answer it: "what does E0001 mean"
# is not answered by what E1968 means, nor the price of the Student plan by that of the Team plan. Another one is a code
# of the same shape, another number, and a name beside the same word, or after the same preposition in a text with most
# of the other words. `benchmarks/training/README.md` has what was tried.
_TOKEN = lazily(r"\w(?:[\w.,'-]*\w)?")
_DIGITS = lazily(r"\d+")
_PURE_NUMBER = lazily(r"\d[\d.,]*")
_YEAR, _NO_END = lazily(r"(?:1\d|20)\d\d"), "9999"
_JOINED = lazily(r"(?<=\d)(?: ?[\u2013\u2014] ?| - )|(?<=[12]\d\d\d)/(?=(?:\d\d){1,2}(?![\d/]))")
_LETTER, _COUNTED = lazily(r"[^\W\d_]"), lazily(r"\d+[A-Za-z]{1,3}")
_VERSION, _MEASURE = lazily(r"\d+(?:\.\d{1,3}){2,}"), lazily(r"\d+-[a-z]")
_NAMED_AFTER = _set("on in at for with from to of by under")
# With a half, .018 more of the answers of SQuAD are lost.
_LEAST_SHARED = 0.75
# A longer text has some other number anyway, and a number in a question for yes or no may be what is asked.
_LONGEST_TOLD = 300
_OPEN = _set("who whom whose what which when where why how")


class Named(NamedTuple):
    """The words of a question in small letters, its terms, its codes, its numbers and years that are of no time.

    `names` are the places of its names.
    """

    words: list[str]
    terms: frozenset[str]
    codes: list[str]
    numbers: set[str]
    years: set[str]
    names: list[int]


@lru_cache(maxsize=1024)
def named_in(question: str) -> Named | None:
    """What a question names that a text may have another one of; None if nothing."""
    words = _TOKEN.findall(question)
    lower = list(map(str.lower, words))
    codes = [word for word in words if _DIGITS.search(word) and _is_code(word)]
    numbers, years = _numbers_in([] if _OPEN.isdisjoint(lower) else words)
    # German writes nouns with a capital.
    names = [] if read_question(question).foreign else _names_in(words, 1)
    if not (codes or numbers or years or names):
        return None
    return Named(lower, frozenset(tokenize(question)), codes, numbers, years, names)


@lru_cache(maxsize=1024)
def numbered_names(question: str) -> tuple[tuple[str, ...], ...]:
    """The names with a number in a question, each as its words: "EIP-3368", a version, or ("room", "12b").

    A number alone is none, nor is one after a stop word or a word of a time, a year after a word in small letters, or
    a measure as "24-hour".
    """
    names, before, end = list[tuple[str, ...]](), "", 0
    for match in _TOKEN.finditer(question):
        word, lower = match[0], before.lower()
        if _DIGITS.search(word) is not None:
            if _VERSION.fullmatch(word) or (_is_code(word) and not _MEASURE.match(word)):
                names.append((word,))
            elif _PURE_NUMBER.fullmatch(word) or _COUNTED.fullmatch(word):
                beside = before and question[end : match.start()].strip() in ("", "#") and not _DIGITS.search(before)
                says = lower not in STOP_WORDS and lower not in _TIMES
                if beside and says and (before != lower or not _YEAR.fullmatch(word)):
                    names.append((before, word))
        before, end = word, match.end()
    return tuple(names)


def contradicts(asked: Named, text: str, names: Sequence[str] = ()) -> bool:
    """Whether a text has another code, number or name where the question has one that it lacks; `names` are it too."""
    whole = " ".join((text, *names)).lower()
    told = _TOKEN.findall(text)
    if asked.codes:
        shapes = {_shape(code) for code in asked.codes if code.lower() not in whole}
        if any(_shape(word) in shapes for word in told if _DIGITS.search(word) and word.lower() not in asked.words):
            return True
    if (asked.numbers or asked.years) and len(text) <= _LONGEST_TOLD:
        known = {*_TOKEN.findall(whole)}
        known |= {NUMBER_WORDS[word] for word in NUMBER_WORDS.keys() & known}
        if asked.years - known and _is_of_other_years(asked, asked.years - known, text):
            return True
        if asked.numbers - known and _numbers_in(told)[0].difference(asked.words):
            return True
    others: list[int] | None = None
    for place in asked.names:
        if asked.words[place].partition("'")[0] not in whole:
            others = _names_in(told, 0) if others is None else others
            if _in_place_of(asked, place, told, others, whole):
                return True
    return False


def _is_of_other_years(asked: Named, years: Set[str], text: str) -> bool:
    """Whether one of these years of a question, or the time that it bounds, is outside all that a text has."""
    told = _TOKEN.findall(_JOINED.sub(" to ", text))
    periods = [*_periods(told, [i for i, word in enumerate(told) if _YEAR.fullmatch(word) and word not in asked.words])]
    return bool(periods) and any(
        all(last < begin or end < first for first, last in periods)
        for begin, end in _periods(asked.words, [i for i, word in enumerate(asked.words) if word in years])
    )


def _periods(words: Sequence[str], places: Sequence[int]) -> Iterator[tuple[str, str]]:
    """The first and the last year of each time with years at these places: "until March 2019", "from 2014 to 2018"."""
    lower, left = [*map(str.lower, words)], [*places]
    while left:
        place = left.pop(0)
        begin = end = words[place]
        bounds = _bounds_before(lower, place)
        joints = {word for word in lower[place + 1 : left[0]] if not _leads_on(word)} if left else None
        until = joints and (joints <= _UP_TO or (joints == _ALSO and bounds & _BETWEEN))
        if until and begin <= words[left[0]]:
            end = words[left.pop(0)]
        elif bounds & _UP_TO:
            begin = ""
        else:
            after = {*lower[place + 1 : place + 2]}
            if bounds & _FROM or after & _UP_TO or ("from" in bounds and after & _ONWARDS):
                end = _NO_END
        yield begin, end


def _bounds_before(words: Sequence[str], place: int) -> set[str]:
    """The words before a year that may bound it, past those of a time: "until the end of May 2019"."""
    begin = max(place - 2, 0)
    while begin and _leads_on(words[begin]):
        begin -= 1
    return {*words[begin:place]}


def _leads_on(word: str) -> bool:
    """Whether a word may stand in a time before its year."""
    return word in _NO_PLACE or word in ("the", "of") or word[0].isdecimal()


def _numbers_in(words: Sequence[str]) -> tuple[set[str], set[str]]:
    """The numbers that are of no date and no length of time, and the years of no date."""
    numbers, years = set[str](), set[str]()
    for place, word in enumerate(words):
        if word[0].isdecimal() and _PURE_NUMBER.fullmatch(word):
            year = _YEAR.fullmatch(word)
            beside = {*map(str.lower, words[max(place - (2 if year else 1), 0) : place + 2])}  # "May 23, 2023"
            if beside.isdisjoint(_TIMES) and beside.isdisjoint(_UNITS):
                (years if year else numbers).add(word)
    return numbers, years


def _names_in(words: Sequence[str], begin: int) -> list[int]:
    """The places, from `begin` on, of words with a capital that are of no date and no code."""
    places = []
    for place in range(begin, len(words)):
        word = words[place]
        named = word != word.lower() and word not in _DATE_WORDS and not _DIGITS.search(word)
        if named and word.partition("'")[0].lower() not in STOP_WORDS:
            places.append(place)
    return places


def _in_place_of(asked: Named, place: int, told: Sequence[str], others: Sequence[int], whole: str) -> bool:
    """Whether one of a text's names, at `others`, stands where the question has its own.

    One with the same initial may be the same, abbreviated or in another spelling: "EU", "Celeron" for "Céloron".
    """
    words, name = asked.words, asked.words[place]
    for other in others:
        if told[other][0].lower() == name[0] or told[other].lower() in words:
            continue
        for step in (-1, 1):
            if not (0 <= place + step < len(words) and 0 <= other + step < len(told)):
                continue
            word, beside = words[place + step], told[other + step].lower()
            if word in STOP_WORDS:
                alike = step < 0 and word == beside and word in _NAMED_AFTER and _shares_most(asked, name, whole)
            else:  # most words are told apart by their first letters
                alike = word[:2] == beside[:2] and tokenize(word) == tokenize(beside)
            if alike and asked.terms.isdisjoint(tokenize(told[other])):
                return True
    return False


def _shares_most(asked: Named, name: str, whole: str) -> bool:
    """Whether a text has most words of a question beside a name."""
    about = asked.terms - STOP_TERMS - QUESTION_TERMS - {*tokenize(name)}
    return len(about.intersection(tokenize(whole))) >= _LEAST_SHARED * len(about)


def _is_code(word: str) -> bool:
    """Whether a word has letters and digits; "3rd", "10am" and "1990s" are numbers."""
    return bool(not _COUNTED.fullmatch(word) and _DIGITS.search(word) and _LETTER.search(word))


def _shape(code: str) -> str:
    return _DIGITS.sub("0", code.lower())
