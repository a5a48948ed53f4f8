"""The languages in which times are found, and which of them a text is in."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, lru_cache

from recallite.text.dates.language import Language
from recallite.text.dates.language_file import read_language
from recallite.text.lazy_patterns import lazily

_NAMES = ("english", "german", "french", "spanish", "portuguese", "italian", "dutch")
# Enough to tell a language by.
_MOST_CHARS = 1_000
_WORDS = lazily(r"[^\W\d_]+")
_DOTTED = lazily(r"\.((?:19|20)\d\d)(?!\w)")
DOTTED_CENTURIES = (".19", ".20")
"""Strings, one of which is in every text that has a time but none of `time_terms`: index terms take 7.5.2023 for a
version."""


@cache
def languages() -> tuple[Language, ...]:
    """All languages, English first; their files are read once, in 5 ms."""
    return tuple(map(read_language, _NAMES))


@cache
def time_terms() -> frozenset[str]:
    """Index terms of which every text with a time has one, in any language."""
    return frozenset().union(*(language.terms for language in languages()))


@cache
def _gates() -> frozenset[str]:
    """Index terms that select a form, of all languages: no other term of a text has to be looked at."""
    return frozenset().union(*(language.gates for language in languages()))


@cache
def _function_words() -> frozenset[str]:
    """Function words of all languages; those of a text are few, and only they are counted for each language."""
    return frozenset().union(*(language.function_words for language in languages()))


def terms_of_times(text: str, terms: Collection[str]) -> Collection[str] | None:
    """Return the index terms of a text that tell of a time, with the year of 7.5.2023; None if it names no time."""
    gates = _gates().intersection(terms)
    if any(map(text.__contains__, DOTTED_CENTURIES)) and (dotted := _DOTTED.search(text)) is not None:
        return {*gates, dotted[1]}
    return None if gates.isdisjoint(time_terms()) else gates


@lru_cache(maxsize=4096)
def literals_of(terms: frozenset[str]) -> tuple[str, ...] | None:
    """Return strings of which every text with these terms of times and a time has one; None if they are not known."""
    english, *others = languages()
    literals: dict[str, None] = {}
    for language in (english, *(other for other in others if not other.terms.isdisjoint(terms))):
        for form in language.forms_of(terms):
            if form.for_questions:
                continue
            if not form.literals:
                return None
            literals.update(dict.fromkeys(form.literals))
    return tuple(literals)


def languages_of(folded: str, terms: Collection[str]) -> list[Language]:
    """Return the languages that a text with words of a time may be in: those with most function words in it.

    English needs none: "Yesterday: dentist". It may be in none that has times, and in several that are alike.
    """
    english = languages()[0]
    candidates = [language for language in languages() if not language.terms.isdisjoint(terms)]
    if candidates == [english]:
        return candidates
    words = _function_words().intersection(_WORDS.findall(folded[:_MOST_CHARS]))
    counts = {language: len(language.function_words & words) for language in languages()}
    best = max(counts[language] for language in candidates)
    if english in candidates and best == counts[english]:
        return [english]
    if counts[english] > best or (not best and len(candidates) > 1):
        return []
    if any(counts[language] > best + 1 for language in languages() if language not in candidates):
        return []
    return [language for language in candidates if counts[language] == best]
