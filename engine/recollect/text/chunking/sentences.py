"""The starts of sentences and words."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["sentence_starts", "word_starts"]

# Possessive runs: a megabyte of dots takes as long as a megabyte of letters.
_ends = re.compile(
    r"(?<![.!?…])[.!?…]++[\"')\]”’»*_`]*+\s++"
    r"|[。！？｡．]++[」』）】”’〉》\"')\]]*+\s*+"
).finditer
_words = re.compile(r"(?<=\s)\S").finditer
_last_word = re.compile(r"(?<![\w.])[\w.]*+\Z").search
_ABBREVIATIONS = frozenset(
    (
        "al", "approx", "art", "bzw", "ca", "cf", "ch", "dr", "e.g", "ed", "eds", "eq", "fig", "figs", "i.e", "jr",
        "mr", "mrs", "ms", "nr", "pp", "prof", "resp", "sec", "sr", "st", "u.a", "usw", "vgl", "viz", "vs", "z.b",
    )
)  # fmt: skip


def sentence_starts(text: str, begin: int, end: int) -> Iterator[int]:
    """The starts of the sentences in `text[begin:end]`, except the first."""
    for match in _ends(text, begin, end):
        place = match.end()
        if place < end and not (text[match.start()] == "." and _goes_on(text, match.start(), place, begin)):
            yield place


def _goes_on(text: str, dot: int, place: int, begin: int) -> bool:
    """Whether a full stop ends an abbreviation, an initial or a list number, or a lower-case letter follows."""
    if text[place].islower():
        return True
    found = _last_word(text, max(begin, dot - 12), dot)
    word = found[0] if found else ""
    return (len(word) == 1 and word.isalpha()) or (word.isdecimal() and len(word) < 4) or word.lower() in _ABBREVIATIONS


def word_starts(text: str, begin: int, end: int) -> Iterator[int]:
    """The starts of the words in `text[begin:end]`, except the first."""
    return (match.start() for match in _words(text, begin, end) if match.start() > begin)
