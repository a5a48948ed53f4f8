"""Whether two similar texts share a topic, so that the newer may replace the older.

Vectors hardly distinguish "Invoice 443 was paid" from "Invoice 444 was paid" (cosine 0.98). A memory kept twice costs
little, a lost one costs its text: where in doubt, the topics differ.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from msgspec import Struct

from recallite.text.contrast import Statement, is_plain, other_subject, read_statement
from recallite.text.index_terms import tokenize
from recallite.text.lazy_patterns import lazily

_WORD = lazily(r"[^\W_]+(?:['’][^\W\d_]+)?", re.UNICODE)
_SENTENCE_END = lazily(r"[.!?:;\n][^\w]*$")
_MARKS = "\"'`.,:;!?()[]{}<>*"
# Words that exclude each other: if both texts have a word of a row, it must be the same.
_EXCLUSIVE = {
    word: (row, place)
    for row, sides in enumerate(
        (
            "left|right", "north|south|east|west", "northern|southern|eastern|western", "front|back|rear",
            "upper|lower", "upstairs|downstairs", "everybody everyone all|nobody noone none|somebody someone",
            "mother mom mum|father dad|brother|sister|son|daughter|uncle|aunt|cousin|wife|husband|grandma|grandpa",
            "with|without", "before|after",
        )
    )
    for place, side in enumerate(sides.split("|"))
    for word in side.split()
}  # fmt: skip


class _Topic(Struct, frozen=True):
    """The features of a text that tell its topic.

    - words: its words without punctuation
    - names: capitalised words within a sentence; openers: those at its beginning
    - stems: of all its words
    """

    statement: Statement
    words: tuple[str, ...]
    names: tuple[str, ...]
    openers: frozenset[str]
    stems: frozenset[str]
    identifiers: frozenset[str]
    exclusive: frozenset[tuple[int, int]]


def same_topic(one: str, other: str) -> bool:
    """Whether two similar texts share a topic: they agree in numbers, dates, times, units, versions, negations, names
    and identifiers, and differ in the predicate, not in the subject.

    Texts that differ only in punctuation do. Names are capitalised words, which German nouns are too; languages other
    than English are compared by names, numbers and the position of the difference.
    """
    left, right = _topic(one), _topic(other)
    one_said, other_said = left.statement, right.statement
    if left.words == right.words and (one_said.numbers, one_said.units) == (other_said.numbers, other_said.units):
        return True
    units, other_units = Counter(one_said.units), Counter(other_said.units)
    # "5 mg" and "5 g" disagree, "9:30" and "9:30 am" do not.
    if one_said.negations != other_said.negations or not (units <= other_units or other_units <= units):
        return False
    # In another order, each number has to follow the same word: "at 9:30 in room 4", "in room 4 at 9:30".
    if one_said.numbers != other_said.numbers and _led_numbers(one_said) != _led_numbers(other_said):
        return False
    if left.identifiers != right.identifiers or _exclude(left.exclusive, right.exclusive):
        return False
    if not (right.stems.issuperset(left.names) and left.stems.issuperset(right.names)):
        return False
    if not (left.openers <= right.stems or right.openers <= left.stems):
        return False
    return not (_swapped(left, right) or other_subject(one_said, other_said))


@lru_cache(maxsize=1024)
def _topic(text: str) -> _Topic:
    statement = read_statement(text)
    names: list[str] = []
    openers: set[str] = set()
    words: list[str] = []
    for match in _WORD.finditer(text):
        word = match.group()
        words.append(word.casefold().replace("’", "'"))
        if not word[0].isupper() or is_plain(words[-1]):
            continue
        stems = tokenize(words[-1].removesuffix("'s"))
        head = text[max(0, match.start() - 8) : match.start()]
        if _SENTENCE_END.search(head) or (match.start() < 8 and not any(map(str.isalnum, head))):
            openers.update(stems)
        else:
            names.extend(stems)
    return _Topic(
        statement=statement,
        words=tuple(words),
        names=tuple(names),
        openers=frozenset(openers),
        stems=frozenset(tokenize(text)),
        identifiers=frozenset(word for word in (token.strip(_MARKS) for token in text.split()) if _identifies(word)),
        exclusive=frozenset(_EXCLUSIVE[word] for word in words if word in _EXCLUSIVE),
    )


def _identifies(word: str) -> bool:
    """Whether a word is an address, a path or an identifier: "a@b.org", "src/app.py", "user_id", "getUser"."""
    if any(mark in word for mark in "_@/\\"):
        return True
    return any(
        (before.islower() and mark.isupper()) or (mark == "." and before.isalpha() and after.isalpha())
        for before, mark, after in zip(word, word[1:], (*word[2:], ""), strict=False)
    )


def _led_numbers(statement: Statement) -> Counter[tuple[str, str]]:
    return Counter(zip(statement.leads, statement.numbers, strict=True))


def _exclude(one: frozenset[tuple[int, int]], other: frozenset[tuple[int, int]]) -> bool:
    shared = {row for row, _ in one} & {row for row, _ in other}
    return any(row in shared for row, _ in one ^ other)


def _swapped(one: _Topic, other: _Topic) -> bool:
    """Whether the same words have the names in another order: "Alice paid Bob", "Bob paid Alice"."""
    names = {*one.names, *one.openers} & {*other.names, *other.openers}
    if len(names) < 2 or Counter(one.statement.content) != Counter(other.statement.content):
        return False
    order = [word for word in one.statement.content if word in names]
    return order != [word for word in other.statement.content if word in names]
