"""Confidence: does it tell questions that a store can answer from those it cannot, and is it the chance it says?

The answerable questions of each LoCoMo conversation (categories 1 to 4), the speakers' names replaced by "someone", are
asked of their own conversation's store and of each of the others'. The figures are those of `calibration`, over the
first ten hits.

Category 5 is apart: its questions name the wrong speaker, so the turn that they are about is there and does not answer
them. The figure is the ROC AUC of the best hit's confidence, questions of the categories 1 to 4 against them, both with
names, in their own store.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from benchmarks.quality import calibration
from benchmarks.quality.calibration import THRESHOLD, Asked
from benchmarks.quality.locomo import Conversation, read
from benchmarks.quality.metrics import roc_auc
from benchmarks.quality.result import OpenMemory, Progress
from recallite import Memory

__all__ = ["evaluate", "masked"]

LIMIT = 10
MASK = "someone"
_WRONG_SPEAKER = 5


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The figures of the default profile, the bins of the diagram, and category 5 apart."""
    conversations = list(read(data))
    questions: list[Asked] = []
    named: list[float] = []
    wrong: list[float] = []
    began = perf_counter()
    for done, stored in enumerate(conversations, 1):
        with open_memory() as memory:
            ids = memory.remember_many(stored.turns)
            memory.store.catch_up()
            for other in conversations:
                questions += _ask(memory, other, ids if other is stored else None)
            for category, best in _named(memory, stored):
                (wrong if category == _WRONG_SPEAKER else named).append(best)
        on_progress(done, len(conversations))
    answerable = sum(question.answerable for question in questions)
    return {
        "questions": answerable,
        "asked_elsewhere": len(questions) - answerable,
        "stores": len(conversations),
        "threshold": THRESHOLD,
        "figures": {"default": calibration.summary(questions)},
        "reliability": calibration.reliability(questions),
        "wrong_speaker": {
            "questions": len(wrong),
            "ROC AUC": round(roc_auc(named, wrong), 4),
            "passed": round(fmean(best >= THRESHOLD for best in wrong), 4),
        },
        "seconds": {"all": round(perf_counter() - began, 2)},
    }


def _ask(memory: Memory, conversation: Conversation, ids: list[str] | None) -> list[Asked]:
    """The questions of categories 1 to 4, names masked; `ids` are the turns' in their own store, None elsewhere."""
    questions = [question for question in conversation.questions if question.category != _WRONG_SPEAKER]
    texts = [masked(question.text, conversation.speakers) for question in questions]
    gold = [set() if ids is None else {ids[place] for place in question.gold} for question in questions]
    answers = memory.recall_many(texts, limit=LIMIT)
    return [calibration.asked(hits, right, LIMIT) for hits, right in zip(answers, gold, strict=True)]


def _named(memory: Memory, conversation: Conversation) -> list[tuple[int, float]]:
    """Return the category and highest confidence of each question as it stands."""
    answers = memory.recall_many([question.text for question in conversation.questions], limit=LIMIT)
    best = [max((hit.confidence for hit in hits), default=0.0) for hits in answers]
    return [(question.category, score) for question, score in zip(conversation.questions, best, strict=True)]


def masked(question: str, names: tuple[str, ...]) -> str:
    """The question with each name replaced, whole words only."""
    return re.sub(rf"\b(?:{'|'.join(map(re.escape, names))})\b", MASK, question, flags=re.IGNORECASE)
