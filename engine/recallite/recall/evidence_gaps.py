"""Evidence gaps: what the hits of a query do not cover, in words that fit into a prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recallite.recall.dates import names_time
from recallite.recall.slots import SLOTS
from recallite.text.words import QUESTION_TERMS, tokenize

if TYPE_CHECKING:
    from recallite.recall.request import Request


# Gaps go into prompts: limits on the words named and on their length.
_MOST_NAMED, _LONGEST_NAMED = 20, 60
# More than a mean of equal numbers differs from them.
_ROUNDING = 1e-6


class Missing(NamedTuple):
    """The words of a question: each word's IDF, and whether any record has it (1) and a hit too (2).

    `confidence` and `score` are the best of a hit, `dated` says that a hit is of a time that the question names,
    `candidates` that there were some, `closing` is the confidence from which there is no gap, and `records` their
    number.
    """

    words: Sequence[str]
    idf: Sequence[float]
    state: Sequence[int]
    confidence: float
    score: float
    dated: bool
    any_hit: bool
    candidates: bool
    closing: float
    records: float


def find_gaps(text: str, missing: Missing, lacking: str | None, request: Request) -> tuple[str, ...]:
    """The gaps of the hits of a question whose best confidence is below the profile's.

    `lacking` is a kind of value that is asked for and that no hit has. No word of a time is named if a hit is of the
    time that the question names.
    """
    profile, time_range = request.profile, request.time_range
    closed = math.inf if profile.formula.gap_score is None else profile.formula.gap_score
    if missing.any_hit and missing.score >= closed:
        return ()
    if not missing.any_hit:
        minima = (("score", profile.min_score), ("confidence", profile.min_confidence))
        minimum = " and ".join(f"the minimum {name} of {least:g}" for name, least in minima if least > 0)
        few = minimum and missing.candidates
        nothing = f"no match reaches {minimum}" if few else "nothing in this scope matches the query"
        if profile.gap_confidence <= 0:
            return ()
        unheard = _named(text, [word for word, state in zip(missing.words, missing.state, strict=True) if state == 0])
        return (*(unheard if few else ()), nothing if time_range is None else f"no hit is {time_range}")
    dated, known = missing.dated, [idf for idf, state in zip(missing.idf, missing.state, strict=True) if state]
    # Words at least as rare as the query's average word are named, and none that only asks.
    weight = sum(known) / max(len(known), 1) - _ROUNDING
    every = [*zip(missing.words, missing.idf, missing.state, strict=True)]
    terms = (
        *(word for word, _, state in every if state == 0),
        *(word for word, idf, state in every if state == 1 and idf >= weight),
    )
    gaps = _named(text, [term for term in terms if not (dated and names_time(term))])
    if lacking is not None:
        gaps.append(f"no hit has {SLOTS[lacking]}")
    return (*gaps, f"the best hit's confidence is {missing.confidence:.2f}")


def _named(text: str, terms: Sequence[str]) -> list[str]:
    """A gap for each word of a question that is missing, as it is written there; none for those that only ask."""
    written = _as_written(text)
    # "Wi-Fi" has three terms.
    named = list(dict.fromkeys(written.get(term, term) for term in terms if term not in QUESTION_TERMS))
    gaps = [
        f"no hit mentions {word if len(word) <= _LONGEST_NAMED else word[:_LONGEST_NAMED] + '...'!r}"
        for word in named[:_MOST_NAMED]
    ]
    if len(named) > _MOST_NAMED:
        gaps.append(f"nor {len(named) - _MOST_NAMED:,} other words of the query")
    return gaps


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
