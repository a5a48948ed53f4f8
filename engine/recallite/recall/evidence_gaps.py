"""Evidence gaps: what the hits of a query do not cover, in words that fit into a prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recallite.recall.dates import names_time
from recallite.text.index_terms import tokenize
from recallite.text.stopwords import QUESTION_TERMS

if TYPE_CHECKING:
    from recallite.recall.request import Request


# Gaps go into prompts: limits on the words named and on their length.
_MOST_NAMED, _LONGEST_NAMED = 20, 60
# More than a mean of equal numbers differs from them.
_ROUNDING = 1e-6


class Missing(NamedTuple):
    """The words of a question: each word's IDF, and whether any record has it (1) and a hit too (2).

    `confidence` is the best of a hit, and `dated` says that a hit is of a time that the question names.
    """

    words: Sequence[str]
    idf: Sequence[float]
    state: Sequence[int]
    confidence: float
    dated: bool
    any_hit: bool


def find_gaps(text: str, missing: Missing, best_score: float, request: Request, candidates: bool) -> tuple[str, ...]:
    """The gaps of the hits of a question: empty unless the best confidence is below the profile's.

    `candidates` says that there were some. No word of a time is named if a hit is of the time that the question names.
    """
    profile, time_range = request.profile, request.time_range
    closed = math.inf if profile.formula.gap_score is None else profile.formula.gap_score
    if missing.any_hit and best_score >= closed:
        return ()
    if not missing.any_hit:
        minima = (("score", profile.min_score), ("confidence", profile.min_confidence))
        minimum = " and ".join(f"the minimum {name} of {least:g}" for name, least in minima if least > 0)
        nothing = f"no match reaches {minimum}" if minimum and candidates else "nothing in this scope matches the query"
        return (nothing if time_range is None else f"no hit is {time_range}",) if profile.gap_confidence > 0 else ()
    dated, known = missing.dated, [idf for idf, state in zip(missing.idf, missing.state, strict=True) if state]
    # Words at least as rare as the query's average word are named, and none that only asks.
    weight = sum(known) / max(len(known), 1) - _ROUNDING
    written = _as_written(text)
    every = [*zip(missing.words, missing.idf, missing.state, strict=True)]
    terms = (
        *(word for word, _, state in every if state == 0),
        *(word for word, idf, state in every if state == 1 and idf >= weight),
    )
    terms = tuple(term for term in terms if term not in QUESTION_TERMS and not (dated and names_time(term)))
    named = list(dict.fromkeys(written.get(term, term) for term in terms))  # "Wi-Fi" has three terms
    gaps = [
        f"no hit mentions {word if len(word) <= _LONGEST_NAMED else word[:_LONGEST_NAMED] + '...'!r}"
        for word in named[:_MOST_NAMED]
    ]
    if len(named) > _MOST_NAMED:
        gaps.append(f"nor {len(named) - _MOST_NAMED:,} other words of the query")
    return (*gaps, f"the best hit's confidence is {missing.confidence:.2f}")


def join_gaps(texts: Sequence[str], gaps: Sequence[tuple[str, ...]], any_hit: bool) -> tuple[str, ...]:
    """The gaps of a decomposed question: those of its sub-questions, each named."""
    named = (
        f"{gap}, for {text!r}" if any_hit else gap
        for text, text_gaps in zip(texts[1:], gaps[1:], strict=True)
        for gap in text_gaps
    )
    return tuple(dict.fromkeys(named))


def _as_written(text: str) -> dict[str, str]:
    """Each index term of a text with the word it came from."""
    return {term: chunk.strip(".,;:!?\"'()[]") for chunk in text.split() for term in tokenize(chunk)}
