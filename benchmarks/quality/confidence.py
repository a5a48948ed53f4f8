"""Confidence: does it tell questions that a store can answer from those it cannot?

The answerable questions of each LoCoMo conversation (categories 1 to 4), the speakers' names replaced by "someone", are
asked of their own conversation's store and of each of the others'. The score of a question is the confidence of its
best hit; the figure is the area under the ROC curve, 0.5 for chance. Two readings of "best" are given: the highest
confidence among the ten hits, as `evidence_gaps` reads it, and the confidence of the first hit.
"""

from __future__ import annotations

import re
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.quality.locomo import Conversation, read
from benchmarks.quality.metrics import roc_auc
from benchmarks.quality.result import OpenMemory, Progress

__all__ = ["evaluate", "masked"]

LIMIT = 10
MASK = "someone"


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """ROC AUC of the best hit's confidence with the default profile."""
    conversations = list(read(data))
    own: list[tuple[float, float]] = []
    others: list[tuple[float, float]] = []
    began = perf_counter()
    for done, stored in enumerate(conversations, 1):
        with open_memory() as memory:
            memory.remember_many(stored.turns)
            for asked in conversations:
                answers = memory.recall_many(_questions(asked), limit=LIMIT)
                scores = own if asked is stored else others
                scores += [
                    (max((hit.confidence for hit in hits), default=0.0), hits[0].confidence if hits else 0.0)
                    for hits in answers
                ]
        on_progress(done, len(conversations))
    highest, first = (roc_auc([one[i] for one in own], [one[i] for one in others]) for i in (0, 1))
    return {
        "questions": len(own),
        "asked_elsewhere": len(others),
        "stores": len(conversations),
        "figures": {"default": {"ROC AUC": round(highest, 4), "ROC AUC, first hit": round(first, 4)}},
        "at_even": {
            "answerable_kept": round(sum(score[0] >= 0.5 for score in own) / len(own), 4),
            "unanswerable_passed": round(sum(score[0] >= 0.5 for score in others) / len(others), 4),
        },
        "seconds": {"all": round(perf_counter() - began, 2)},
    }


def _questions(conversation: Conversation) -> list[str]:
    return [masked(each.text, conversation.speakers) for each in conversation.questions if each.category != 5]


def masked(question: str, names: tuple[str, ...]) -> str:
    """The question with each name replaced, whole words only."""
    return re.sub(rf"\b(?:{'|'.join(map(re.escape, names))})\b", MASK, question, flags=re.IGNORECASE)
