"""Recall by what is asked, single writes, and the start of a process, at one size."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from benchmarks import corpus
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import rates
from recallite import Memory
from recallite.embedding import Embedder, load
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments

__all__ = ["CASE", "started"]

_STARTS, _MANY = 5, 64
_OPTIONS: dict[str, dict[str, Any]] = {
    "vector ready": {},
    "vector ready, `neighbor_boost=0`": {"neighbor_boost": 0.0},
    'vector ready, `mode="vector"`': {"mode": "vector"},
    '`mode="keyword"`': {"mode": "keyword"},
    'vector ready, `diversify_by="one_per_source"`': {"diversify_by": "one_per_source"},
    "vector ready, 10 % by tag": {"tags": ["tenth"]},
    "vector ready, 1 % by scope": {"scope": "/team/7"},
}
# Each prints one line of JSON; the parent adds the time from its start to the last step.
_PYTHON = "import time, json; print(json.dumps({'ended': time.time()}))"
_IMPORT = "import recallite; " + _PYTHON
_RECALL = (
    "import json, sys; from recallite import Memory; path, query, vector = json.loads(sys.argv[1]); "
    "Memory(path).recall(query, vector=vector); " + _PYTHON
)


@contextmanager
def _setup(context: Context) -> Iterator[tuple[Memory, Embedder]]:
    # Not `context.model`, whose cache would answer for the model.
    embedder = load(context.embedder)
    with Memory(context.folder / "memory.db", embedder=embedder) as memory:
        memory.remember_many(corpus.items(context.dataset.lines, context.dataset.vectors))
        memory.store.catch_up()
        memory.store.warmup()
        yield memory, embedder


def _tables(state: tuple[Memory, Embedder], context: Context) -> Iterator[Timing | Figures]:
    (memory, embedder), data = state, context.dataset
    texts, vectors, count = data.questions, data.asked, len(data.questions)

    def asked(number: int, options: dict[str, Any]) -> object:
        return memory.recall(texts[number % count], vector=vectors[number % count], **recall_arguments(options))

    ways: dict[str, Callable[[int], object]] = {
        name: lambda number, arguments=arguments: asked(number, arguments) for name, arguments in _OPTIONS.items()
    }
    ways["from text"] = lambda number: memory.recall(texts[number % count])
    ways["embedding of the question alone"] = lambda number: embedder.embed([texts[number % count]])
    yield Timing("recall", ways, context.rounds)

    some = list(zip(texts, vectors, strict=True))[:_MANY]
    many = {
        "recall_many": lambda: memory.recall_many(
            [text for text, _ in some], vectors=[query_vector for _, query_vector in some]
        )
    }
    yield Figures("many at once, vectors ready", rates(many, len(some), "questions"))

    writes: dict[str, Callable[[int], object]] = {
        "vector given": lambda number: memory.remember(
            NewRecord(f"{texts[number % count]} {number}", vector=vectors[0])
        ),
        "recall right after it": lambda number: asked(number, {}),
    }
    yield Timing("remember, durable", writes, min(context.rounds, count))

    path = str(context.folder / "memory.db")
    arguments = {"from text": None, "vector ready": vectors[0].tolist()}
    tasks = {"a bare Python": (_PYTHON, None), "import recallite": (_IMPORT, None)}
    tasks |= {f"first recall, {name}": (_RECALL, [path, texts[0], vector]) for name, vector in arguments.items()}
    rows = {
        name: {"p50 ms": round(median(started(*task) for _ in range(context.count(_STARTS))), 1)}
        for name, task in tasks.items()
    }
    yield Figures("new process", rows)


def started(code: str, arguments: Any) -> float:
    """Milliseconds from the start of a new Python to the end of its code; RuntimeError if it fails."""
    began = time.time()
    command = [sys.executable, "-c", code, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a new process failed:\n{done.stderr}")
    ended: float = json.loads(done.stdout.splitlines()[-1])["ended"]
    return (ended - began) * 1e3


CASE = Case("latency", "how long recall, writes and a start take at one size", _setup, _tables, rounds=500)
