"""The words of a record in the keyword index: those of its context, text and tags, and which of them name its speaker.

A word has a count of one byte: its occurrences, at most `MOST`, and two flags. `TAG_ONLY` marks a word that only tags
have: it is found like any other, but is no part of the text where texts are compared. `NAME` marks the first and the
last word of a context that is a name, such as "Anna" or "Anna Smith".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from recallite.text.index_terms import tokenize
from recallite.text.lazy_patterns import lazily
from recallite_kernels.words import MOST as MOST
from recallite_kernels.words import NAME as NAME
from recallite_kernels.words import TAG_ONLY as TAG_ONLY

# One to three words of letters. Longer contexts are headings.
_NAME = lazily(r"[^\W\d_][\w.'\u2019-]*(?:[ \t]+[^\W\d_][\w.'\u2019-]*){0,2}")
_TITLES = frozenset(["dr", "mr", "mrs", "ms", "miss", "prof", "professor", "sir"])
# Roles are no names: every conversation has them, and questions use the words for other things.
ROLES = frozenset(
    tokenize(
        "user assistant system human ai bot chatbot agent tool function model developer speaker customer client guest "
        "everyone everybody all me myself you unknown anonymous narrator note notes message chat other"
    )
)
_LEAST_LETTERS = 3


class RecordWords(NamedTuple):
    """Index terms of a record: of its context and text, of its tags, and those of the text that name the context."""

    written: Sequence[str]
    tags: Sequence[str] = ()
    names: Sequence[str] = ()

    def counts(self) -> dict[str, int]:
        """The byte of each word."""
        written, tagged = Counter(self.written), Counter(self.tags)
        counts = {word: min(count + tagged[word], MOST) for word, count in written.items()}
        counts |= {word: min(count, MOST) | TAG_ONLY for word, count in tagged.items() if word not in written}
        return counts | {word: counts[word] | NAME for word in self.names}


def record_words(written: Sequence[str], context: str | None, tags: Iterable[str]) -> RecordWords:
    """The words of a record whose context and text have the terms `written`."""
    names = () if context is None else name_words(context)
    return RecordWords(written, [term for tag in tags for term in name_terms(tag)] if tags else (), names)


def written_words(text: str, context: str | None) -> list[str]:
    """The index terms of a context and a text."""
    return tokenize(text) if context is None else tokenize(context) + tokenize(text)


@lru_cache(maxsize=4096)
def name_words(context: str) -> tuple[str, ...]:
    """The first and the last word of a context, as index terms, if it is a name; titles do not count.

    A name of several words is written with capitals, or in a script without them. Words of one or two Latin letters
    are no names: too many questions have them.
    """
    if len(context) > 60 or _NAME.fullmatch(context.strip()) is None:
        return ()
    words = [word for word in context.split() if word.casefold().strip(".") not in _TITLES]
    if len(words) > 1 and any(word[0].islower() for word in words):
        return ()
    terms = [term for word in words for term in tokenize(word)]
    ends = dict.fromkeys(terms[:1] + terms[-1:])
    return tuple(term for term in ends if term not in ROLES and (len(term) >= _LEAST_LETTERS or not term.isascii()))


@lru_cache(maxsize=4096)
def name_terms(name: str) -> tuple[str, ...]:
    """The index terms of a tag or a title."""
    return tuple(tokenize(name))
