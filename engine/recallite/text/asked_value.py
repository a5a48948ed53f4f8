"""Questions about a value that may have changed, and how well a text answers one. Rules for English.

"How many commits have been merged?" and "what is the API quota now?" ask for one value, of which there may be an older
one in another text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import fsum, log2
from typing import NamedTuple

from recallite.text.index_terms import tokenize
from recallite.text.lazy_patterns import lazily, may_match
from recallite.text.past import as_past, in_past_tense
from recallite.text.stopwords import QUESTION_TERMS, STOP_TERMS
from recallite.text.vocabulary import share_of

_MOST_CHARS, _MOST_SENTENCE_CHARS = 4_000, 600
_NUMBER = lazily(
    r"\b(?:how (?:many|much|often|long|old|big|high|far|fast)|number|count|amount|rate|percentage|percent|time|date"
    r"|deadline|version|price|cost|salary|budget|score|coverage|quota|limit|size|total|average|accuracy|temperature"
    r"|weight|length|duration|record|when)\b",
    re.IGNORECASE,
)
_ASKS = lazily(
    r"\b(?:how (?:many|much|often|long|old|big|high|far|fast)|what(?:['’]?s| is| are| was| were)?|when)\b",
    re.IGNORECASE,
)
_PRESENT = lazily(
    r"\b(?:currently|current|now|nowadays|these days|at the moment|right now|latest|(?:most )?recent(?:ly)?)\b",
    re.IGNORECASE,
)
# What `_NUMBER`, `_ASKS` and `_PRESENT` need.
_NUMBERS = (
    "how ", "number", "count", "amount", "rate", "percent", "time", "date", "deadline", "version", "price", "cost",
    "salary", "budget", "score", "coverage", "quota", "limit", "size", "total", "average", "accuracy", "temperature",
    "weight", "length", "duration", "record", "when",
)  # fmt: skip
_ASKING, _PRESENTLY = ("how ", "what", "when"), ("current", "now", "these days", "at the moment", "latest", "recent")
_WHEN = lazily(r"\bwhen\b", re.IGNORECASE)
_SENTENCES = lazily(r"(?<=[.!?])\s+|\n+")
_VALUE = lazily(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|first|second|third|fourth|fifth|once|twice"
    r"|half|dozen|hundred)\b",
    re.IGNORECASE,
)


class AskedValue(NamedTuple):
    """The thing whose value a question asks for.

    - weights: how rare its words are, by index term, in bits
    - number: whether the value is a number or a time
    """

    weights: dict[str, float]
    number: bool

    def answered_by(self, text: str) -> float:
        """The share of the question's words, rare ones counting more, in the sentence of `text` that has most of them.

        For a number only sentences with one count. Of long texts the beginning is read.
        """
        weights = self.weights
        most = max(
            (
                fsum(weights[term] for term in weights.keys() & set(tokenize(sentence)))
                for sentence in _sentences(text)
                if not self.number or _VALUE.search(sentence)
            ),
            default=0.0,
        )
        return most / fsum(weights.values())


def asked_value(question: str) -> AskedValue | None:
    """Return the thing whose value a question asks for; None for other questions, and for questions about the past."""
    if not may_match(question, _PRESENTLY) and not (may_match(question, _ASKING) and may_match(question, _NUMBERS)):
        return None
    number = _NUMBER.search(question) is not None
    present = _PRESENT.search(question) is not None
    if not present and not (number and _ASKS.search(question)):
        return None
    # "How many did I buy?" asks for the last count, "when did I buy it?" for a moment.
    if (in_past_tense(question) and (not number or _WHEN.search(question))) or as_past(question) is not None:
        return None
    terms = set(tokenize(question)) - STOP_TERMS - QUESTION_TERMS
    return AskedValue({term: -log2(share_of(term)) for term in terms}, number) if terms else None


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCES.split(text[:_MOST_CHARS]):
        yield sentence[:_MOST_SENTENCE_CHARS]
