"""Frequency of words in conversations and notes: the share of texts that contain each index term.

`vocabulary.txt` is made by `benchmarks.training.vocabulary`. A line is a level and the terms whose share is
2^(-level / 4).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from recallite.text.stopwords import QUESTION_TERMS

PATH = Path(__file__).with_name("vocabulary.txt")


# What words that ask count as: a small store cannot tell that "use" says less than "database".
_QUESTION_SHARE = 0.25


def share_of(term: str) -> float:
    """The share of texts that contain a term; terms that are not known count like the rarest that are."""
    if term in QUESTION_TERMS:
        return _QUESTION_SHARE
    shares, least = _shares()
    return shares.get(term, least)


@cache
def _shares() -> tuple[dict[str, float], float]:
    shares: dict[str, float] = {}
    share = 0.0
    for line in PATH.read_text(encoding="utf-8").splitlines():
        level, *terms = line.split(" ")
        share = 2.0 ** (-int(level) / 4)
        shares |= dict.fromkeys(terms, share)
    return shares, share
