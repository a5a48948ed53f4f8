"""The languages in which times are found, and which of them a text is in."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, lru_cache

from recallite.text.dates.dutch import DUTCH
from recallite.text.dates.english import ENGLISH
from recallite.text.dates.french import FRENCH
from recallite.text.dates.german import GERMAN
from recallite.text.dates.italian import ITALIAN
from recallite.text.dates.language import Language
from recallite.text.dates.portuguese import PORTUGUESE
from recallite.text.dates.spanish import SPANISH
from recallite.text.lazy_patterns import lazily

LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, DUTCH)
# Enough to tell a language by.
_MOST_CHARS = 1_000
_WORDS = lazily(r"[^\W\d_]+")


# Index terms take 7.5.2023 for a version.
DOTTED_CENTURIES = (".19", ".20")
"""Strings, one of which is in every text that has a time but none of `time_terms`."""
_DOTTED = lazily(r"\.((?:19|20)\d\d)(?!\w)")


def terms_of_times(text: str, terms: Collection[str]) -> Collection[str] | None:
    """Those index terms of a text that tell of a time, with the year of 7.5.2023; None where no time can be in it."""
    found = _gates().intersection(terms)
    if any(map(text.__contains__, DOTTED_CENTURIES)) and (dotted := _DOTTED.search(text)) is not None:
        return {*found, dotted[1]}
    return None if found.isdisjoint(time_terms()) else found


@lru_cache(maxsize=4096)
def literals_of(terms: frozenset[str]) -> tuple[str, ...] | None:
    """Return strings of which every text with these terms of times and a time has one; None if they are not known."""
    having = [language for language in LANGUAGES if not language.terms.isdisjoint(terms)]
    found: dict[str, None] = {}
    for language in {*having, ENGLISH}:
        for form in language.forms_of(terms):
            if form.asked:
                continue
            if not form.literals:
                return None
            found.update(dict.fromkeys(form.literals))
    return tuple(found)


@cache
def time_terms() -> frozenset[str]:
    """Index terms of which every text with a time has one, in any language."""
    return frozenset().union(*(language.terms for language in LANGUAGES))


@cache
def _gates() -> frozenset[str]:
    """All index terms that any form asks for: no other term of a text has to be looked at."""
    return frozenset().union(*(language.gates for language in LANGUAGES))


@cache
def _function_words() -> frozenset[str]:
    """Those of all languages: a text has few, which are compared with those of each."""
    return frozenset().union(*(language.function_words for language in LANGUAGES))


def languages_of(folded: str, terms: Collection[str]) -> list[Language]:
    """The languages that a text with words of a time may be in: those with most function words in it.

    English needs none: "Yesterday: dentist". It may be in none that has times, and in several that are alike.
    """
    having = [language for language in LANGUAGES if not language.terms.isdisjoint(terms)]
    if having == [ENGLISH]:
        return having
    words = _function_words().intersection(_WORDS.findall(folded[:_MOST_CHARS]))
    counts = {language.code: len(language.function_words & words) for language in {*having, ENGLISH}}
    best = max(counts[language.code] for language in having)
    if ENGLISH in having and best == counts["en"]:
        return [ENGLISH]
    if counts["en"] > best or (not best and len(having) > 1):
        return []
    if any(len(language.function_words & words) > best + 1 for language in LANGUAGES if language.code not in counts):
        return []
    return [language for language in having if counts[language.code] == best]
