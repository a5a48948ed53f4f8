"""A text as the rules see it."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from recollect.text.statements import lexicon as lx
from recollect.text.statements.clause import Clause
from recollect.text.statements.clauses import clauses_of
from recollect.text.statements.words import COMMA, MARK, STOP, Word, read_words
from recollect.text.tokens import stem_of

LONGEST = 400
_MOST_SENTENCES = 4
_SPEAKER = re.compile(r"\W*([^\W\d_][\w.'-]*)(?: [\w.'-]+){0,2}\s*(?:[:(,\[\-]|$)")
_PERSONS = frozenset(("user", "me", "human", "i", "myself", "customer", "person"))
_SAME_PREPOSITIONS = frozenset(["in", "on", "at", "of", "for", "by", "with", "as"])


class Statement(Struct, frozen=True):
    """A text with its context, parsed.

    - `speaker`: the stem of the name of who says it, "i" where the context names nobody
    - `canon`: what two texts that say the same have in common
    - `whole`: whether every part was read as a clause
    """

    text: str
    speaker: str
    words: tuple[Word, ...]
    canon: tuple[str, ...]
    clauses: tuple[Clause, ...]
    whole: bool
    question: bool


@lru_cache(maxsize=4096)
def statement_of(text: str, context: str | None = None) -> Statement:
    """The statement that a text makes under its context, such as the name of who says it."""
    speaker = _speaker(context)
    if len(text) > LONGEST:
        return Statement(text, speaker, (), (), (), False, False)
    words = read_words(text)
    if sum(word.kind == STOP for word in words) > _MOST_SENTENCES + 1:
        return Statement(text, speaker, tuple(words), (), (), False, False)
    clauses, whole = clauses_of(words, speaker)
    question = any(word.text == "?" for word in words)
    return Statement(text, speaker, tuple(words), _canon(words, speaker), tuple(clauses), whole, question)


def _speaker(context: str | None) -> str:
    if context is None:
        return "i"
    match = _SPEAKER.match(context[:100])
    if match is None or match[1].lower() in _PERSONS:
        return "i"
    return stem_of(match[1].lower())


def _canon(words: list[Word], speaker: str) -> tuple[str, ...]:
    found = []
    for word in words:
        text = word.text
        if word.kind in (STOP, COMMA, MARK):
            if text in ("?", ":"):
                found.append(text)
        elif word.value:
            found.append(word.value + word.unit)
        elif text in ("i", "my"):
            found.append(speaker)
        elif (
            text in lx.FILLERS
            or text in lx.ARTICLES
            or text in lx.BE
            or text in _SAME_PREPOSITIONS
            or text in lx.NOW
            or text in lx.CORRECTIONS
            or text in ("got", "do", "does")
        ):
            pass
        elif text in lx.IRREGULAR and text not in ("has",):
            found.append(word.stem + "*")
        else:
            found.append(word.stem + ("*" if text.endswith("ed") else ""))
    return tuple(found)
