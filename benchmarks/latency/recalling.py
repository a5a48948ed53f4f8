"""How long one recall takes, by what is asked, and where the time goes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.latency.figures import percentiles, timed
from recallite import Memory, Settings
from recallite.embedding import Embedder

__all__ = ["measure"]

_WARM = 20
_BATCH = 64


def measure(
    path: Path, embedder: Embedder, questions: Sequence[str], vectors: NDArray[np.float32]
) -> dict[str, dict[str, Any]]:
    """Times of recall on a store that is open and warm. Every question is asked once a case and comes from no cache."""
    rest = range(_WARM, len(questions))
    cases: dict[str, dict[str, Any]] = {}
    with Memory(path, embedder=embedder, settings=Settings(query_cache_size=0)) as memory:
        memory.warmup()

        def case(name: str, **options: Any) -> None:
            def ask(place: int) -> None:
                memory.recall(questions[place], vector=vectors[place], **options)

            timed(ask, range(_WARM))
            cases[name] = percentiles(timed(ask, rest))

        stages: list[dict[str, float]] = []
        timed(memory.recall, questions[:_WARM])
        cases["recall of a text"] = percentiles(
            timed(lambda text: stages.append(memory.recall(text).stages), questions[_WARM:])
        )
        cases["recall of a text"]["stages_ms"] = _medians(stages)
        cases["embedding of a query"] = percentiles(timed(lambda text: embedder.embed([text]), questions[_WARM:]))
        case("recall, vector ready")
        case("recall, vector ready, spread=0", spread=0.0)
        case("recall, vector ready, mode='vector'", mode="vector")
        case("recall, mode='keyword'", mode="keyword")
        case("recall, vector ready, group_by='source'", group_by="source")
        case("recall, vector ready, 10 % by tag", tags=["tenth"])
        case("recall, vector ready, 1 % by scope", scope="/team/7")
        stages = [memory.recall(questions[place], vector=vectors[place]).stages for place in rest]
        cases["recall, vector ready"]["stages_ms"] = _medians(stages)
        cases["recall_many of 64, vectors ready"] = _many(memory, questions, vectors)
    return cases


def _medians(stages: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: round(median(each[name] for each in stages), 3) for name in stages[0]}


def _many(memory: Memory, questions: Sequence[str], vectors: NDArray[np.float32]) -> dict[str, Any]:
    seconds = []
    for begin in range(0, len(questions) - _BATCH + 1, _BATCH):
        part = slice(begin, begin + _BATCH)
        began = time.perf_counter()
        memory.recall_many(questions[part], vectors=list(vectors[part]))
        seconds.append(time.perf_counter() - began)
    return {"queries_per_second": round(_BATCH / median(seconds))}
