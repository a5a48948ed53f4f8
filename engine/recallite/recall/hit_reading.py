"""Hits read beside their question: what the cut of `relevant` knows of them more than plain recall does.

A model that reads question and text together (`recallite.embedding.answer_reader`) gives a logit for the first hits,
and the confidence is made anew of both. The weights were fitted by `benchmarks.training.reader`, with the vectors
of the default embedder; with others nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from recallite.embedding.windows import header
from recallite.text.lazy_patterns import lazily

if TYPE_CHECKING:
    from recallite.store.values import Found

FILE = Path(__file__).with_suffix(".json")
"""The weights, and how they were made."""
READ = 5
"""Hits that are read; of ten, LoCoMo and the stores of `left_out` gain no more."""
SURE = 0.18
"""The least confidence of an answer that was read: the folds of training lose least by it (benchmarks/training)."""
LEAST = 1e-4
"""The least confidence whose odds are counted."""
# The model was trained on questions and few keywords: remarks and names it does not know.
_ASKS = lazily(
    r"\?\s*$|^(?:wh(?:o|om|ose|at|ich|en|ere|y)|how|do|does|did|is|are|am|was|were|has|have|had|can|could|will|would"
    r"|should)\b",
    re.IGNORECASE,
)


class Weights(msgspec.Struct):
    """The embedder that the weights were fitted with, and those of the confidence's logit and of the reader's."""

    embedder: str
    confidence: float
    answers: float
    bias: float


def read(
    question: str, keys: Sequence[int], confidence: Sequence[float], records: Mapping[int, Found], embedder: str | None
) -> list[float]:
    """The confidences of hits, those of the first made anew by reading their texts."""
    completed, weights = [*confidence], load_weights()
    if embedder != weights.embedder or not _ASKS.search(question):
        return completed
    from recallite.embedding.answer_reader import load_reader

    if (reader := load_reader()) is None:
        return completed
    ranks = [rank for rank, key in enumerate(keys[:READ]) if key in records]
    texts = [embedded_text(records[keys[rank]]) for rank in ranks]
    for rank, logit in zip(ranks, reader.answers(question, texts), strict=True):
        if logit is not None:
            completed[rank] = _both(confidence[rank], logit, weights)
    return completed


def embedded_text(record: Found) -> str:
    """A text with its context, as it is embedded."""
    return f"{header(record.context)}{record.text}"


def _both(confidence: float, logit: float, weights: Weights) -> float:
    sure = min(max(confidence, LEAST), 1 - LEAST)
    return 1 / (1 + exp(-(weights.confidence * log(sure / (1 - sure)) + weights.answers * logit + weights.bias)))


@cache
def load_weights() -> Weights:
    """The weights that ship."""
    return msgspec.json.decode(FILE.read_bytes(), type=Weights)
