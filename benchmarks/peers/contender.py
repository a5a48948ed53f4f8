"""The interface of a contender, and the choices that are the same for all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.dataset import Dataset
from recallite.text.index_terms import tokenize
from recallite.text.stopwords import STOP_TERMS

__all__ = [
    "CONNECTIVITY",
    "DEPTH",
    "EFFORTS",
    "EF_CONSTRUCTION",
    "TOP",
    "Contender",
    "Mode",
    "Vector",
    "content_words",
    "reciprocal_rank_fusion",
]

Vector = NDArray[np.float32]

TOP = 10
# Candidates of each signal that a hybrid fuses, and the constant of its reciprocal rank fusion.
DEPTH, _RRF_K = 100, 60
# Of every HNSW graph, as hnswlib's README has them; usearch's defaults are 16 and 128, faiss' examples 32 and 40.
CONNECTIVITY, EF_CONSTRUCTION = 16, 200
EFFORTS = (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096)


@dataclass(frozen=True)
class Mode:
    """One way to ask an opened contender. What `ask` returns, `places` turns into places of records, untimed.

    - ask(text, vector); many(texts, vectors), where the contender has a call for it
    - filtered(text, vector, below): only records whose part is below; None where it cannot filter
    - effort(ef): how widely a graph is searched, one of `efforts`; None where there is no such setting
    - exact: the answer must equal the float64 one
    """

    ask: Callable[[str, Vector], Any]
    many: Callable[[Sequence[str], Vector], Any] | None = None
    filtered: Callable[[str, Vector, int], Any] | None = None
    effort: Callable[[int], None] | None = None
    efforts: Sequence[int] = EFFORTS
    places: Callable[[Any], list[int]] = list
    exact: bool = False


class Contender(Protocol):
    """A library with a store of its own in a folder."""

    def build(self, data: Dataset, folder: Path) -> None:
        """Store all records of the data and close."""

    def open(self, folder: Path) -> dict[str, Mode]:
        """The modes, "hybrid", "vector" or "text", of what was built; the first gives the first answer."""

    def warm(self) -> None:
        """Do what the library advises before it is timed."""


def content_words(text: str) -> list[str]:
    """The words of a query without Recallite's stop words, or all of them if nothing is left."""
    words = re.findall(r"\w+", text.lower())
    return [word for word in words if not STOP_TERMS.issuperset(tokenize(word))] or words


def reciprocal_rank_fusion(*rankings: Iterable[int]) -> list[int]:
    """The ten best of rankings fused with k = 60 (Cormack, Clarke and Buettcher, 2009); ties by place."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            scores[place] = scores.get(place, 0.0) + 1 / (_RRF_K + rank)
    return sorted(scores, key=lambda place: (-scores[place], place))[:TOP]
