"""Confidence: how likely a record answers the query, in [0, 1] and comparable across queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.text.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recollect.index.protocol import Question

__all__ = ["confidences", "evidence_gaps"]

# Evidence at which a hit is as likely right as not, and how fast that changes.
_EVEN = 0.62
_STEEPNESS = 10.0


def confidences(
    question: Question, rows: NDArray[np.int64], cosine: NDArray[np.float32], unknown_words: int
) -> NDArray[np.float64]:
    """From the cosine and the share of the query's IDF mass that each row carries: float64 (rows,)."""
    share = _idf_share(question, rows, unknown_words)
    return np.asarray(1.0 / (1.0 + np.exp(-(8.0 * cosine.astype(np.float64) + 4.0 * share - 6.0))), dtype=np.float64)


def evidence_gaps(
    text: str,
    question: Question,
    rows: NDArray[np.int64],
    words: Sequence[str],
    unknown: Sequence[str],
    confidence: NDArray[np.float64],
    threshold: float,
) -> tuple[str, ...]:
    """What the hits do not cover: empty unless the best confidence is below `threshold`."""
    best = float(confidence.max()) if len(confidence) else 0.0
    if best >= threshold:
        return ()
    if not len(rows):
        return ("nothing in this scope matches the query",)
    written = _as_written(text)
    carried = np.atleast_1d(question.carried(rows).any(axis=0)).tolist()
    idf = question.idf
    # A word carries weight when it is at least as rare as the query's average word.
    weighty = (idf >= (idf.mean() if len(idf) else 0.0)).tolist()
    missing = [
        *unknown,
        *(word for word, held, rare in zip(words, carried, weighty, strict=True) if rare and not held),
    ]
    gaps = [f"no hit mentions {written.get(word, word)!r}" for word in missing]
    return (*gaps, f"the best hit's confidence is {best:.2f}")


def _idf_share(question: Question, rows: NDArray[np.int64], unknown_words: int) -> NDArray[np.float64]:
    """The share of the query's IDF mass that each row carries; words the store never saw count in the whole."""
    idf = question.idf.astype(np.float64)
    whole = float(idf.sum()) + unknown_words * question.unseen_idf
    if not len(idf) or whole <= 0:
        return np.zeros(len(rows), dtype=np.float64)
    return np.asarray(question.carried(rows) @ idf / whole, dtype=np.float64)


def _as_written(text: str) -> dict[str, str]:
    """Each index term of a text with the word it came from."""
    return {term: chunk.strip(".,;:!?\"'()[]") for chunk in text.split() for term in tokenize(chunk)}
