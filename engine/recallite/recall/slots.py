"""Kinds of values that questions ask for, such as a person or a time, and whether a text has one. Rules for English.

Last, whether a text has another code, number or name in the place of the question's.

A memory on the topic of a question is less likely to answer it if it has no value of the kind asked for: "What is the
user's phone number?" is not answered by "User works at Calder Freight".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import product

from msgspec import Struct

from recallite.text.patterns import lazily
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
# is not answered by what E1968 means, nor the price of the Student plan by that of the Team plan. Only what is surely
# of the same kind is known: a code of the same shape; a number beside the same word; a name after the same preposition
# or before the same word, in a text with half of the other words. Of SQuAD 2.0's questions (dev), beside the sentence
# of the answer, 132 of 3,168 without an answer are contradicted so and 25 of 2,910 others; of 369 questions of our own
# none of those with an answer.
_TOKEN = re.compile(r"\w(?:[\w.,'-]*\w)?")
_DIGITS = re.compile(r"\d+")
_PURE_NUMBER = re.compile(r"\d[\d.,]*")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_LETTER, _COUNTED = re.compile(r"[^\W\d_]"), re.compile(r"\d+[A-Za-z]{1,3}")
_VERSION, _MEASURE = re.compile(r"\d+(?:\.\d{1,3}){2,}"), re.compile(r"\d+-[a-z]")
_NAMED_AFTER = _set("on in at for with from to of by under near via")
_LEAST_SHARED = 0.5


class Named(Struct, frozen=True):
    """The words of a question, its terms, and its codes, the places of its numbers and of its runs of names."""

    words: list[str]
    terms: frozenset[str]
    codes: list[str]
    numbers: list[int]
    names: list[tuple[int, int]]


@lru_cache(maxsize=1024)
def named_in(question: str) -> Named | None:
    """What a question names that a text may have another one of; None if nothing."""
    words = _TOKEN.findall(question)
    numbers = [i for i, word in enumerate(words) if _PURE_NUMBER.fullmatch(word) and not _YEAR.fullmatch(word)]
    codes = [word for word in words if _DIGITS.search(word) and _is_code(word)]
    names = [*_names_in(words, 1)]
    return Named(words, frozenset(tokenize(question)), codes, numbers, names) if codes or numbers or names else None


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
    whole, words = " ".join((text, *names)).lower(), asked.words
    codes = asked.codes and [code for code in asked.codes if code.lower() not in whole]
    numbers = asked.numbers and [place for place in asked.numbers if words[place] not in whole]
    lacking = []
    for run in asked.names:
        for word in words[run[0] : run[1] + 1]:
            if word.lower() in whole:
                break
        else:
            lacking.append(run)
    if not (codes or numbers or lacking):
        return False
    told = _TOKEN.findall(text)
    if codes:
        shapes = {_shape(word) for word in told if _is_code(word) and word not in words}
        if not shapes.isdisjoint(map(_shape, codes)):
            return True
    if numbers:
        others = [j for j, word in enumerate(told) if _PURE_NUMBER.fullmatch(word) and word not in words]
        if any(_same_beside(words, i, i, told, j, j) for i, j in product(numbers, others)):
            return True
    if not lacking:
        return False
    known = {*tokenize(whole)}
    return any(_names_another(asked, run, told, known) for run in lacking)


def _is_code(word: str) -> bool:
    """Whether a word has letters and digits; "3rd", "10am" and "1990s" are numbers."""
    return bool(not _COUNTED.fullmatch(word) and _DIGITS.search(word) and _LETTER.search(word))


def _names_another(asked: Named, run: tuple[int, int], told: Sequence[str], known: Set[str]) -> bool:
    """Whether a text that lacks a name of the question has another in its place."""
    (begin, end), words = run, asked.words
    name = {term for word in words[begin : end + 1] for term in tokenize(word)}
    about = asked.terms - STOP_TERMS - QUESTION_TERMS - name
    if not name.isdisjoint(known) or len(about & known) < _LEAST_SHARED * len(about):
        return False
    for first, last in _names_in(told, 0):
        before = begin > 0 < first and words[begin - 1].lower()
        alike = before in _NAMED_AFTER and before == told[first - 1].lower()
        if alike or _same_beside(words, 0, end, told, 0, last):
            other = told[first : last + 1]
            same = _initials(words[begin : end + 1]) & _initials(other)
            if not same and asked.terms.isdisjoint(term for word in other for term in tokenize(word)):
                return True
    return False


def _shape(code: str) -> str:
    return _DIGITS.sub("0", code.lower())


def _same_beside(asked: Sequence[str], i: int, end: int, told: Sequence[str], j: int, last: int) -> bool:
    """Whether the same word that says something is before `i` and `j`, or after `end` and `last`."""
    for place, other in ((i - 1, j - 1), (end + 1, last + 1)):
        if 0 <= place < len(asked) and 0 <= other < len(told):
            word = tokenize(asked[place])
            if word and word == tokenize(told[other]) and STOP_TERMS.isdisjoint(word):
                return True
    return False


def _names_in(tokens: Sequence[str], begin: int) -> Iterator[tuple[int, int]]:
    """The first and last place of each run of tokens with a capital, which are of no date."""
    first = None
    for i, token in enumerate((*tokens, "")):
        plain = token.partition("'")[0].lower()
        named = token != token.lower() and i >= begin and plain not in STOP_WORDS and token not in _DATE_WORDS
        if not named and first is not None:
            yield first, i - 1
            first = None
        elif named and first is None:
            first = i


def _initials(name: Sequence[str]) -> set[str]:
    """A name in letters and, if it is of one word, as the initials of others: "EU" is the European Union."""
    return {"".join(token[0] for token in name).lower(), *([name[0].lower()] if len(name) == 1 else ())}
