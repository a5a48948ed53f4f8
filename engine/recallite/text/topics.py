"""Differences between two similar texts, and whether they share a topic, so that the newer may replace the older.

Vectors hardly distinguish "Invoice 443 was paid" from "Invoice 444 was paid" (cosine 0.98). A memory kept twice costs
little, a lost one costs its text: where in doubt, the topics differ. What differs is a negation, a number or a value,
which cheap rules find in English, without a model. Other languages are compared word by word: any word that differs
counts as a difference in content.
"""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from recallite.text.patterns import lazily, read_tables, word_set
from recallite.text.words import STOP_WORDS, normalized, tokenize

_TABLES = read_tables(__file__)
_TOKEN = lazily(r"(?:(?<![\w)\]])[-−])?\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[^\w\s]", re.UNICODE)
_NEGATIONS = word_set(_TABLES["negations"])
_NUMBER_WORDS = word_set(_TABLES["number_words"])
# Words that change the strength or the tone of a statement, not its meaning.
_FILLERS = word_set("really very quite actually also just please currently simply indeed well so too")
# Stop words that carry meaning here.
_MEANINGFUL = word_set(_TABLES["meaningful"])
_PLAIN = (STOP_WORDS - _MEANINGFUL) | _FILLERS
_SILENT = _PLAIN | _NEGATIONS
_STATES = word_set("is are was were am be been has have had will 's 're")
_DEFINITE = word_set("the our my your his her its their")
_LONGEST = 400
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_TABLES["number_words"].split()[:21])}
"""The English words of the numbers from zero to twenty, and their digits."""
# Units next to a number, each with its other names.
_UNITS = {name: unit.split()[0] for unit in _TABLES["unit_names"].split(";") for name in unit.split()}
_WORD = lazily(r"[^\W_]+(?:['’][^\W\d_]+)?", re.UNICODE)
_SENTENCE_END = lazily(r"[.!?:;\n][^\w]*$")
_MARKS = "\"'`.,:;!?()[]{}<>*"
# Words that exclude each other: if both texts have a word of a row, it must be the same.
_EXCLUSIVE = {
    word: (row, i)
    for row, sides in enumerate(
        (
            "left|right", "north|south|east|west", "northern|southern|eastern|western", "front|back|rear",
            "upper|lower", "upstairs|downstairs", "everybody everyone all|nobody noone none|somebody someone",
            "mother mom mum|father dad|brother|sister|son|daughter|uncle|aunt|cousin|wife|husband|grandma|grandpa",
            "with|without", "before|after",
        )
    )
    for i, side in enumerate(sides.split("|"))
    for word in side.split()
}  # fmt: skip


class Topic(Struct, frozen=True):
    """The features of a text that tell its topic.

    - tokens: in lower case; content: the stems of its content words, in order; stems: of all its words
    - numbers: digits, number words and date words, with the word before each in `leads`; units: the ones beside
      numbers; negations: the number of negating words
    - words: its words without punctuation
    - names: capitalised words within a sentence; openers: capitalised words at its beginning
    """

    tokens: tuple[str, ...]
    content: tuple[str, ...]
    stems: frozenset[str]
    numbers: tuple[str, ...]
    leads: tuple[str, ...]
    units: tuple[str, ...]
    negations: int
    words: tuple[str, ...]
    names: tuple[str, ...]
    openers: frozenset[str]
    identifiers: frozenset[str]
    exclusive: frozenset[tuple[int, int]]


def same_topic(one: str, other: str) -> bool:
    """Whether two similar texts share a topic: they agree in numbers, dates, times, units, versions, negations, names
    and identifiers, and differ in the predicate, not in the subject.

    Texts that differ only in punctuation do. Names are capitalised words, which German nouns are too; languages other
    than English are compared by names, numbers and the position of the difference.
    """
    left, right = topic_of(one), topic_of(other)
    if left.words == right.words and (left.numbers, left.units) == (right.numbers, right.units):
        return True
    # "5 mg" and "5 g" disagree, "9:30" and "9:30 am" do not.
    units, other_units = Counter(left.units), Counter(right.units)
    if left.negations != right.negations or not (units <= other_units or other_units <= units):
        return False
    # In another order, each number has to follow the same word: "at 9:30 in room 4", "in room 4 at 9:30".
    led = [Counter(zip(topic.leads, topic.numbers, strict=True)) for topic in (left, right)]
    if left.numbers != right.numbers and led[0] != led[1]:
        return False
    shared_rows = {row for row, _ in left.exclusive} & {row for row, _ in right.exclusive}
    if left.identifiers != right.identifiers or any(row in shared_rows for row, _ in left.exclusive ^ right.exclusive):
        return False
    if not (right.stems.issuperset(left.names) and left.stems.issuperset(right.names)):
        return False
    if not (left.openers <= right.stems or right.openers <= left.stems):
        return False
    # "Alice paid Bob", "Bob paid Alice".
    names = {*left.names, *left.openers} & {*right.names, *right.openers}
    if len(names) > 1 and Counter(left.content) == Counter(right.content):
        orders = [[word for word in topic.content if word in names] for topic in (left, right)]
        if orders[0] != orders[1]:
            return False
    return not other_subject(left, right)


@lru_cache(maxsize=1024)
def topic_of(text: str) -> Topic:
    """The features of a text."""
    folded = normalized("NFKC", text).casefold().replace("’", "'")
    tokens = tuple(token for word in _TOKEN.findall(folded) for token in _parted(word))
    content, numbers, negations, units, leads = [], [], 0, [], []
    for before, token, after in zip(("", *tokens), tokens, (*tokens[1:], ""), strict=False):
        if token in _NEGATIONS:
            negations += 1
        elif _is_number(token):
            if token[-1].isdigit():
                numbers.append(token.replace("−", "-").lstrip("0") or "0")
            else:  # in digits, a day in the singular
                numbers.append(NUMBER_WORDS.get(token) or (token[:-1] if token.endswith("days") else token))
            leads.append(before)
            units += [_UNITS[beside] for beside in (after, before if before in "$€£¥" else "") if beside in _UNITS]
        elif token == "?":
            content.append(token)
        elif token not in _PLAIN and token[0].isalpha():
            content.extend(tokenize(token))
    names: list[str] = []
    openers: set[str] = set()
    words: list[str] = []
    for match in _WORD.finditer(text):
        word = match.group()
        words.append(word.casefold().replace("’", "'"))
        bare = words[-1].partition("'")[0]
        if not word[0].isupper() or bare in STOP_WORDS | _FILLERS | _NEGATIONS or _is_number(bare):
            continue
        stems = tokenize(words[-1].removesuffix("'s"))
        head = text[max(0, match.start() - 8) : match.start()]
        if _SENTENCE_END.search(head) or (match.start() < 8 and not any(map(str.isalnum, head))):
            openers.update(stems)
        else:
            names.extend(stems)
    identifiers = frozenset(word for word in (token.strip(_MARKS) for token in text.split()) if _identifies(word))
    return Topic(
        tokens, tuple(content), frozenset(tokenize(text)), tuple(numbers), tuple(leads), tuple(units), negations,
        tuple(words), tuple(names), frozenset(openers), identifiers,
        frozenset(_EXCLUSIVE[word] for word in words if word in _EXCLUSIVE),
    )  # fmt: skip


def _parted(word: str) -> tuple[str, ...]:
    if word.endswith("n't"):
        return ({"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3]) or "do", "not")
    if "'" in word[1:]:
        head, _, tail = word.partition("'")
        return (head,) if tail == "s" else (head, f"'{tail}")
    return (word,)


def _identifies(word: str) -> bool:
    """Whether a word is an address, a path or an identifier: "a@b.org", "src/app.py", "user_id", "getUser"."""
    if any(mark in word for mark in "_@/\\"):
        return True
    return any(
        (before.islower() and mark.isupper()) or (mark == "." and before.isalpha() and after.isalpha())
        for before, mark, after in zip(word, word[1:], (*word[2:], ""), strict=False)
    )


def other_subject(one: Topic, other: Topic) -> bool:
    """Whether two texts say the same about different things: "The left tyre is flat", "The right tyre is flat"."""
    if max(len(one.tokens), len(other.tokens)) > _LONGEST:
        return False
    # The only difference, of at most three tokens each.
    left, right = ([token for token in some.tokens if token[-1].isalnum()] for some in (one, other))
    edits = [edit for edit in SequenceMatcher(None, left, right, autojunk=False).get_opcodes() if edit[0] != "equal"]
    if len(edits) == 2 and edits[0][0] == edits[1][0] == "replace":
        # Two numbers of one date, or a number and its unit, are adjacent or one word apart.
        if edits[1][1] - edits[0][2] > 1:
            return False
        edits = [("replace", edits[0][1], edits[1][2], edits[0][3], edits[1][4])]
    if len(edits) != 1 or edits[0][0] != "replace":
        return False
    _, start, stop, begin, end = edits[0]
    if max(stop - start, end - begin) > 3 or len(left) - (stop - start) < 2:
        return False
    if not all(any(token not in _SILENT for token in some) for some in (left[start:stop], right[begin:end])):
        return False
    before, after = left[:start], left[stop:]
    if all(token in _DEFINITE or token in ("a", "an") for token in before):
        # "Bob is tall", "Alice is tall"; but "is the" and "is our" hold of one thing only.
        return not any(state in _STATES and what in ("the", "our") for state, what in pairwise(after[:3]))
    # "Room 3 is blue", "Room 4 is blue".
    return bool(after) and after[0] in _STATES and not any(token in _STATES for token in before)


def _is_number(token: str) -> bool:
    return token[-1].isdigit() or token in _NUMBER_WORDS or (token.endswith("days") and token[:-1] in _NUMBER_WORDS)
