"""Where the time of a single recall goes: stages and kernels are timed where they are called.

A deeper line is part of the line above it. Query vectors are ready, and nothing is filtered.
"""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any
from unittest.mock import patch

from benchmarks import corpus
from benchmarks.harness.case import Case, Context, Figures
from recallite import Memory
from recallite.index import query_batch
from recallite.recall import candidates, pipeline, view
from recallite.recall.confidence import Judge
from recallite.store.sqlite.blocks import SqliteBlocks
from recallite.store.sqlite.records import SqliteRecords
from recallite_kernels import dispatch

__all__ = ["CASE"]

_WARM_UP = 50
_STEPS: tuple[tuple[int, str, Any, str], ...] = (
    (0, "check the query", pipeline, "prepare_queries"),
    (0, "filter", view, "select_rows"),
    (0, "answer", pipeline, "answer_all"),
    (1, "words of the query", pipeline, "find_words"),
    (1, "their postings and IDF", query_batch.IndexView, "batch"),
    (1, "search, by vector and by words", query_batch.QueryBatch, "search"),
    (2, "scan the sketches (a block)", dispatch.python_backend, "hamming_shortlist"),
    (2, "BM25, best of all", dispatch.python_backend, "bm25_top_k"),
    (2, "rescore the shortlist", dispatch.python_backend, "rescore_shortlist"),
    (1, "exact cosines of the first", candidates, "_rescore"),
    (2, "read their vectors", SqliteBlocks, "exact_vectors"),
    (1, "join, measure, fuse, spread, order", query_batch.QueryBatch, "rank"),
    (2, "the kernel of it", dispatch.python_backend, "rank_candidates"),
    (1, "confidence", Judge, "assess"),
    (1, "what is said of each hit", pipeline, "score_hits"),
    (0, "fetch and show", pipeline, "fetch_hits"),
    (1, "fetch", SqliteRecords, "fetch"),
    (1, "build the hits", pipeline, "load_hits"),
)


@contextmanager
def _setup(context: Context) -> Iterator[Memory]:
    with Memory(context.folder / "memory.db") as memory:
        memory.remember_many(corpus.items(context.dataset.lines, context.dataset.vectors))
        memory.warmup()
        yield memory


def _tables(memory: Memory, context: Context) -> Iterator[Figures]:
    data, times = context.dataset, defaultdict[str, list[float]](list)

    def ask(number: int) -> None:
        place = number % len(data.questions)
        memory.recall(data.questions[place], vector=data.asked[place])

    for number in range(_WARM_UP):
        ask(number)
    with ExitStack() as patched:
        for _, step, owner, name in _STEPS:
            owner = dispatch.active if owner is dispatch.python_backend else owner
            patched.enter_context(patch.object(owner, name, _timed(getattr(owner, name), times[step])))
        whole = _timed(ask, times["recall"])
        for number in range(context.rounds):
            whole(_WARM_UP + number)
    rows = {"recall": {"p50 ms": _median(times["recall"]), "calls": 1}}
    for depth, step, _, _ in _STEPS:
        calls = round(len(times[step]) / context.rounds)
        rows["\u2003" * (depth + 1) + step] = {"p50 ms": _median(times[step]), "calls": calls}
    yield Figures("single recall, vector ready", rows)


def _median(seconds: list[float]) -> float:
    return round(median(seconds) * 1e3, 4) if seconds else 0.0


def _timed(call: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    @functools.wraps(call)
    def timed(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        result = call(*arguments, **named)
        times.append(time.perf_counter() - began)
        return result

    return timed


CASE = Case("stages", "where the time of a single recall goes", _setup, _tables, records=(1_000_000,), rounds=400)
