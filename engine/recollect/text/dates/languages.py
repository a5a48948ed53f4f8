"""The languages in which times are found, and which of them a text is in."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from recollect.text.dates.dutch import DUTCH
from recollect.text.dates.english import ENGLISH
from recollect.text.dates.french import FRENCH
from recollect.text.dates.german import GERMAN
from recollect.text.dates.italian import ITALIAN
from recollect.text.dates.language import Language
from recollect.text.dates.portuguese import PORTUGUESE
from recollect.text.dates.spanish import SPANISH

LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, DUTCH)
# Enough to tell a language by.
_MOST_CHARS = 1_000
_WORDS = re.compile(r"[^\W\d_]+")


# Index terms take 7.5.2023 for a version.
_DOTTED = re.compile(r"\.((?:19|20)\d\d)(?!\w)")


def terms_of_times(text: str, terms: Collection[str]) -> Collection[str] | None:
    """The index terms of a text that may name a time, with the year of 7.5.2023; None where none can be in it."""
    dotted = _DOTTED.search(text)
    if dotted is not None:
        return {*terms, dotted[1]}
    return None if time_terms().isdisjoint(terms) else set(terms)  # every form asks for its own in it


@cache
def time_terms() -> frozenset[str]:
    """Index terms of which every text with a time has one, in any language."""
    return frozenset().union(*(language.terms for language in LANGUAGES))


def languages_of(folded: str, terms: Collection[str]) -> list[Language]:
    """The languages that a text with words of a time may be in: those with most function words in it.

    English needs none: "Yesterday: dentist". It may be in none that has times, and in several that are alike.
    """
    having = [language for language in LANGUAGES if not language.terms.isdisjoint(terms)]
    if having == [ENGLISH]:
        return having
    words = set(_WORDS.findall(folded[:_MOST_CHARS]))
    counts = {language.code: len(words & language.function_words) for language in LANGUAGES}
    best = max(counts[language.code] for language in having)
    if ENGLISH in having and best == counts["en"]:
        return [ENGLISH]
    if best < max(counts.values()) - 1 or counts["en"] > best or (not best and len(having) > 1):
        return []
    return [language for language in having if counts[language.code] == best]
