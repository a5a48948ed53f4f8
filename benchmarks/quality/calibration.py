"""Measures of confidence: whether it separates questions, and whether it is the chance it says.

A hit is right if it is evidence of its question. Of questions asked of a store, some without an answer there:

- ROC AUC of the best hit's confidence, answerable against unanswerable. "Best" is the highest confidence among the
  hits, as `evidence_gaps` reads it; "first hit" is that of the first.
- Expected calibration error (Guo et al., 2017, "On calibration of modern neural networks"): hits fall into ten bins of
  equal width by confidence, and the distances between a bin's mean confidence and its share of right hits are averaged
  by count; over the first hit of every question, and over all hits.
- At `THRESHOLD`, the value of `min_confidence` that the documentation names: how many of the right first hits pass
  ("right first hits kept"), how many of the questions with a right hit keep one ("answers kept"), and how many
  unanswerable questions keep any hit ("unanswerable passed").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from benchmarks.quality.metrics import roc_auc
from recallite.model.records import Hits
from recallite.model.settings import Profile

__all__ = ["THRESHOLD", "Asked", "asked", "bins", "expected_calibration_error", "reliability", "summary"]

THRESHOLD = Profile().gap_confidence
_BINS = 10


class Asked(NamedTuple):
    """A question: whether its store can answer it; of each hit, best score first, the confidence and if it is right."""

    answerable: bool
    confidence: tuple[float, ...]
    right: tuple[bool, ...]


def asked(hits: Hits, gold: Collection[str], limit: int) -> Asked:
    """The first hits of a question by score; it is answerable if `gold` names any."""
    shown = sorted(hits, key=lambda hit: -hit.score)[:limit]
    return Asked(bool(gold), tuple(hit.confidence for hit in shown), tuple(hit.id in gold for hit in shown))


def summary(questions: Sequence[Asked]) -> dict[str, float]:
    """All figures, where there are questions of both kinds."""
    answerable = [question for question in questions if question.answerable]
    others = [question for question in questions if not question.answerable]
    answered = [question for question in answerable if any(question.right)]
    firsts = [confidence for confidence, right in _first_hits(answerable) if right]
    return {
        "ROC AUC": round(
            roc_auc([_highest(question) for question in answerable], [_highest(question) for question in others]), 4
        ),
        "ROC AUC, first hit": round(
            roc_auc([_first(question) for question in answerable], [_first(question) for question in others]), 4
        ),
        "calibration error, first hit": round(expected_calibration_error(_first_hits(questions)), 4),
        "calibration error, all hits": round(expected_calibration_error(_all_hits(questions)), 4),
        "right first hits kept": _share([confidence >= THRESHOLD for confidence in firsts]),
        "answers kept": _share([_keeps(question) for question in answered]),
        "unanswerable passed": _share([_highest(question) >= THRESHOLD for question in others]),
    }


def reliability(questions: Sequence[Asked]) -> dict[str, list[dict[str, float]]]:
    """The bins of the first hits and of all hits, for a diagram."""
    return {"first hit": bins(_first_hits(questions)), "all hits": bins(_all_hits(questions))}


def bins(hits: Iterable[tuple[float, bool]]) -> list[dict[str, float]]:
    """Count the (confidence, is right) pairs of each filled bin, with their mean confidence and share of right ones."""
    members: list[list[tuple[float, bool]]] = [[] for _ in range(_BINS)]
    for confidence, right in hits:
        members[min(int(confidence * _BINS), _BINS - 1)].append((confidence, right))
    return [
        {
            "count": len(member),
            "confidence": round(fmean(confidence for confidence, _ in member), 4),
            "right": round(fmean(right for _, right in member), 4),
        }
        for member in members
        if member
    ]


def expected_calibration_error(hits: Iterable[tuple[float, bool]]) -> float:
    """The mean distance of confidence from the share of right hits, bin by bin, weighted by count."""
    histogram = bins(hits)
    distances = [bar["count"] * abs(bar["confidence"] - bar["right"]) for bar in histogram]
    return sum(distances) / sum(bar["count"] for bar in histogram)


def _first_hits(questions: Sequence[Asked]) -> list[tuple[float, bool]]:
    return [(question.confidence[0], question.right[0]) for question in questions if question.confidence]


def _all_hits(questions: Sequence[Asked]) -> list[tuple[float, bool]]:
    return [hit for question in questions for hit in zip(question.confidence, question.right, strict=True)]


def _share(which: Sequence[bool]) -> float:
    return round(fmean(which), 4) if which else 0.0


def _highest(question: Asked) -> float:
    return max(question.confidence, default=0.0)


def _first(question: Asked) -> float:
    return question.confidence[0] if question.confidence else 0.0


def _keeps(question: Asked) -> bool:
    hits = zip(question.confidence, question.right, strict=True)
    return any(right and confidence >= THRESHOLD for confidence, right in hits)
