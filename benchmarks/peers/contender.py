"""The interface of a contender, and the choices that are the same for all. Imports nothing of Recallite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.dataset import Dataset

__all__ = [
    "CONNECTIVITY", "DEPTH", "EFFORTS", "EF_CONSTRUCTION", "RRF_K", "THREADS", "TOP",
    "Contender", "Vector", "best", "reciprocal_rank_fusion",
]  # fmt: skip

Vector = NDArray[np.float32]

TOP = 10
# Candidates of each signal that a hybrid fuses, and the constant of its reciprocal rank fusion.
DEPTH, RRF_K = 100, 60
# Of every HNSW graph: what hnswlib's README has, between the defaults of usearch and the examples of faiss.
CONNECTIVITY, EF_CONSTRUCTION = 16, 200
EFFORTS = (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048)
THREADS = 2


class Contender:
    """A library with a store of its own in a folder. Answers hold places and texts; `places` reads them, untimed.

    `effort` is how widely the vector search looks, one of `efforts`. A filter keeps the records whose part is below
    `below`. `hybrid` is None for a library that has no keyword search, `insert` for one without single writes.
    """

    efforts: Sequence[Any] = (None,)
    effort: Any = None
    hybrid: Callable[..., Any] | None = None
    insert: Callable[[int, str, Vector], object] | None = None
    # Whether it takes questions as they are; else their stop words are left out, as a user of it would have to.
    takes_stop_words = False

    def build(self, data: Dataset, folder: Path) -> None:
        """Store all records of the data, ready to be asked, and close."""
        raise NotImplementedError

    def open(self, folder: Path) -> None:
        """Open what was built."""
        raise NotImplementedError

    def widen(self, effort: Any) -> None:
        """Set how widely the vector search looks."""
        self.effort = effort

    def vector(self, text: str, vector: Vector, below: int | None = None) -> Any:
        """The ten nearest records with their texts."""
        raise NotImplementedError

    def hybrid_many(self, texts: Sequence[str], vectors: Vector) -> object:
        """`hybrid` of many questions: by the library's own call if it has one, else on two threads."""
        assert self.hybrid is not None
        if not hasattr(self, "_pool"):
            self._pool = ThreadPoolExecutor(THREADS)
        return list(self._pool.map(self.hybrid, texts, vectors))

    def places(self, answer: Any) -> list[int]:
        """The places of the records of an answer, best first."""
        return [place for place, _ in answer]

    def close(self) -> None:
        """Close what was opened."""


def best(scores: Vector, count: int) -> NDArray[np.int64]:
    """The places of the highest scores, best first."""
    count = min(count, len(scores))
    top = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
    return np.asarray(top[np.argsort(-scores[top])])


def reciprocal_rank_fusion(*rankings: Iterable[int]) -> list[int]:
    """The ten best of rankings fused with k = 60 (Cormack, Clarke and Buettcher, 2009); ties by place."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            scores[place] = scores.get(place, 0.0) + 1 / (RRF_K + rank)
    return sorted(scores, key=lambda place: (-scores[place], place))[:TOP]
