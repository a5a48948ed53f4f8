"""How long remembering takes, and how much of it is not the embedder's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus
from benchmarks.latency.figures import percentiles, timed
from recallite import Memory
from recallite.embedding import Embedded, Embedder, embed_documents

__all__ = ["build", "measure"]

_ONE, _TEXTS = 300, 4000


class _Timed:
    """An embedder that adds up the seconds spent in it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.fingerprint = embedder.fingerprint
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        began = time.perf_counter()
        vectors = self._embedder.embed(texts)
        self.seconds += time.perf_counter() - began
        return vectors

    def embed_documents(
        self,
        texts: Sequence[str],
        contexts: Sequence[str | None],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Embedded:
        began = time.perf_counter()
        embedded = embed_documents(self._embedder, texts, contexts, on_progress)
        self.seconds += time.perf_counter() - began
        return embedded


def build(path: Path, embedder: Embedder, lines: Sequence[str], vectors: NDArray[np.float32]) -> dict[str, Any]:
    """A store of all lines with given vectors, at full durability: `remember_many`'s rate."""
    ready = list(corpus.items(lines, vectors))
    with Memory(path, embedder=embedder) as memory:
        began = time.perf_counter()
        memory.remember_many(ready)
        seconds = time.perf_counter() - began
        figures = memory.stats()
    return {
        "remember_many, vectors given": {
            "records_per_second": round(len(lines) / seconds),
            "records": len(lines),
            "bytes_per_record": round(figures.bytes_on_disk / len(lines)),
        }
    }


def measure(path: Path, embedder: Embedder, texts: Sequence[str], questions: Sequence[str]) -> dict[str, Any]:
    """One at a time into the large store at `path`, many into a new one beside it; full durability."""
    ones, others, many = texts[:_ONE], texts[_ONE : 2 * _ONE], texts[2 * _ONE : 2 * _ONE + _TEXTS]
    ready = embedder.embed(others)
    cases: dict[str, Any] = {}
    with Memory(path, embedder=embedder) as memory:
        memory.warmup()
        cases["remember, text"] = percentiles(timed(memory.remember, ones))
        cases["remember, vector given"] = percentiles(
            timed(lambda place: memory.remember(others[place], vector=ready[place]), range(len(others)))
        )
        asked = embedder.embed(questions[:100])
        after = []
        for place in range(100):
            memory.remember(f"{others[place]} {place}", vector=ready[place])
            after += timed(lambda i: memory.recall(questions[i], vector=asked[i]), [place])
        cases["recall right after a write, vector ready"] = percentiles(after)
    stopwatch = _Timed(embedder)
    with Memory(path.with_name("texts.db"), embedder=stopwatch) as memory:
        memory.remember(questions[0])
        stopwatch.seconds = 0.0
        began = time.perf_counter()
        memory.remember_many(many)
        seconds = time.perf_counter() - began
    cases["remember_many, texts"] = {
        "records_per_second": round(len(many) / seconds),
        "records": len(many),
        "share_outside_embedder": round(1 - stopwatch.seconds / seconds, 3),
    }
    return cases
