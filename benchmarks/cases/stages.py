"""Time the stages and kernels of a single recall at the places that call them.

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
from recallite.recall import pipeline, plan
from recallite.store.sql.records import Records
from recallite_kernels import dispatch

__all__ = ["CASE"]

_WARM_UP = 50
_STEPS: tuple[tuple[int, str, Any, str], ...] = (
    (0, "the index under the filter", pipeline, "open_view"),
    (0, "answer", pipeline, "answer_all"),
    (1, "the question's words, times and tokens", plan, "question_arrays"),
    (1, "the kernel", dispatch.python_backend, "recall"),
    (0, "fetch and show", pipeline, "hits_of_answers"),
    (1, "fetch", Records, "fetch"),
    (1, "build the hits", pipeline, "load_hits"),
)


@contextmanager
def _setup(context: Context) -> Iterator[Memory]:
    with Memory(context.folder / "memory.db") as memory:
        memory.remember_many(corpus.items(context.dataset.lines, context.dataset.vectors))
        memory.store.catch_up()
        memory.store.warmup()
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
