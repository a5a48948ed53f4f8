"""Confidence: how likely a record answers the query, in [0, 1] and comparable across queries."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.text.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recollect.index.query_batch import QueryBatch
    from recollect.recall.query import Words

__all__ = ["Evidence", "confidence_of", "evidence_gaps", "weigh_evidence", "weigh_for_each"]

# Evidence at which a hit is as likely right as not, and how fast that changes.
_EVEN = 0.62
_STEEPNESS = 10.0
_COVERAGE = 0.7
# Gaps go into prompts: so many words are named, and so much of each.
_MOST_NAMED, _LONGEST_NAMED = 20, 60


class Evidence(NamedTuple):
    """What some rows of each query show: each row's confidence, and by known word whether any of them carries it.

    confidence float64 (rows,), met bool (words,).
    """

    confidence: NDArray[np.float64]
    met: NDArray[np.bool_]


def weigh_evidence(
    questions: QueryBatch,
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    cosines: NDArray[np.float64],
    unknown_words: Sequence[int],
) -> Evidence:
    """The evidence of rows[offsets[i]:offsets[i + 1]] for query i, which has unknown_words[i] words no record carries.

    Confidence comes from the cosine and the share of the query's IDF mass that the record carries; words the store
    never saw count in the whole. Told apart by the best hit's value, the questions of a LoCoMo conversation asked of
    its own store and of another's (names masked) have ROC AUC 0.92; by cosine alone 0.88. At 0.5, 82 % of the first
    and 13 % of the second pass.
    """
    carried, met = questions.coverage(offsets, rows)
    idf, unseen = questions.idf, questions.unseen_idf
    masses = [
        float(idf[start:stop].sum(dtype=np.float64)) + unknown * unseen
        for (start, stop), unknown in zip(pairwise(questions.word_offsets.tolist()), unknown_words, strict=True)
    ]
    mass = np.repeat(np.array(masses), np.diff(offsets))
    evidence = np.maximum(cosines, 0.0) + _COVERAGE * np.divide(carried, mass, out=np.zeros(len(rows)), where=mass > 0)
    return Evidence(1.0 / (1.0 + np.exp(-_STEEPNESS * (evidence - _EVEN))), met)


def confidence_of(cosine: float, coverage: float = 0.0) -> float:
    """The confidence of a cosine and a share of the query's IDF mass, from 0 to 1."""
    return 1.0 / (1.0 + math.exp(-_STEEPNESS * (max(cosine, 0.0) + _COVERAGE * coverage - _EVEN)))


def weigh_for_each(
    questions: QueryBatch, rows: NDArray[np.int64], cosines: NDArray[np.float64], unknown_words: Sequence[int]
) -> Evidence:
    """The evidence of the same rows for every query: `cosines` and the confidence are float64 (queries, rows)."""
    count = len(questions)
    offsets = np.arange(count + 1, dtype=np.int64) * len(rows)
    evidence = weigh_evidence(questions, offsets, np.tile(rows, count), cosines.ravel(), unknown_words)
    return Evidence(evidence.confidence.reshape(count, len(rows)), evidence.met)


def evidence_gaps(
    text: str,
    confidence: NDArray[np.float64],
    words: Words,
    idf: NDArray[np.float32],
    met: NDArray[np.bool_],
    threshold: float,
    time_range: str | None,
) -> tuple[str, ...]:
    """What the hits of one query do not cover: empty unless the best confidence is below `threshold`.

    `time_range` says in words which times were asked for; None where any will do.
    """
    if not len(confidence):
        nothing = "nothing in this scope matches the query"
        return (nothing if time_range is None else f"no hit is {time_range}",) if threshold > 0 else ()
    best = float(confidence.max())
    if best >= threshold:
        return ()
    # A word carries weight when it is at least as rare as the query's average word.
    weight = idf.mean() if len(idf) else 0.0
    written = _as_written(text)
    missing = [*words.unknown, *(words.known[place] for place in np.flatnonzero(~met & (idf >= weight)).tolist())]
    named = [written.get(word, word) for word in missing[:_MOST_NAMED]]
    gaps = [
        f"no hit mentions {word if len(word) <= _LONGEST_NAMED else word[:_LONGEST_NAMED] + '...'!r}" for word in named
    ]
    if len(missing) > _MOST_NAMED:
        gaps.append(f"nor {len(missing) - _MOST_NAMED:,} other words of the query")
    return (*gaps, f"the best hit's confidence is {best:.2f}")


def _as_written(text: str) -> dict[str, str]:
    """Each index term of a text with the word it came from."""
    return {term: chunk.strip(".,;:!?\"'()[]") for chunk in text.split() for term in tokenize(chunk)}
