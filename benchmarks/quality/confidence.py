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
            memory.catch_up()
            for other in conversations:
                questions += _ask(memory, other, ids if other is stored else None)
            for category, best in _named(memory, stored):
                (wrong if category == _WRONG_SPEAKER else named).append(best)
        on_progress(done, len(conversations))
    own = sum(each.answerable for each in questions)
    return {
        "questions": own,
        "asked_elsewhere": len(questions) - own,
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
    chosen = [each for each in conversation.questions if each.category != _WRONG_SPEAKER]
    texts = [masked(each.text, conversation.speakers) for each in chosen]
    gold = [set() if ids is None else {ids[place] for place in each.gold} for each in chosen]
    answers = memory.recall_many(texts, limit=LIMIT)
    return [calibration.asked(hits, right, LIMIT) for hits, right in zip(answers, gold, strict=True)]


def _named(memory: Memory, conversation: Conversation) -> list[tuple[int, float]]:
    """Of each question as it stands, its category and the highest confidence."""
    answers = memory.recall_many([each.text for each in conversation.questions], limit=LIMIT)
    best = [max((hit.confidence for hit in hits), default=0.0) for hits in answers]
    return [(each.category, score) for each, score in zip(conversation.questions, best, strict=True)]


def masked(question: str, names: tuple[str, ...]) -> str:
    """The question with each name replaced, whole words only."""
    return re.sub(rf"\b(?:{'|'.join(map(re.escape, names))})\b", MASK, question, flags=re.IGNORECASE)
