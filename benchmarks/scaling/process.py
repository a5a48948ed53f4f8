"""Run as a script: `ask`, `open`, `weigh` or `write` on a store that is built."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.dataset import Dataset
from benchmarks.harness.measure import percentiles
from benchmarks.isolated_process import anonymous_mb, finish
from recallite import Memory, Settings
from recallite.model.records import NewRecord

_WRITES, _WEIGHED = 100, 100


def _ask(data: Dataset, store: Path) -> dict[str, Any]:
    """Recall with the query vector ready, hybrid and by vector alone."""
    # Imported here: the start of a process is measured, and the contenders take 0.1 s of it.
    from benchmarks.peers.asking import measure
    from benchmarks.peers.contenders.recallite_memory import Recallite

    recallite = Recallite()
    modes = recallite.open(store)
    recallite.warm()
    measured = {mode: measure(mode, modes[mode], data, 0.0) for mode in ("hybrid", "vector")}
    recallite.close()  # which writes the index snapshot
    return measured


def _weigh(data: Dataset, store: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Anonymous memory that an open and asked store adds to a process that has used a small one."""
    text, vector = data.questions[0], data.asked[0]
    with Memory(":memory:") as memory:
        memory.remember(NewRecord(text, vector=vector))
        memory.store.warmup()
        memory.recall(text, vector=vector)
    gc.collect()
    before = anonymous_mb()
    opened = _opened(store, settings)
    opened.store.warmup()
    for place in range(_WEIGHED):
        opened.recall(data.questions[place], vector=data.asked[place])
    gc.collect()
    after = anonymous_mb()
    return {"anonymous_mb_above": None if before is None or after is None else round(after - before, 1)}


def _open(data: Dataset, store: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Time the start of the process to the first hits, with the query vector ready."""
    text, vector = data.questions[0], data.asked[0]
    began = time.perf_counter()
    memory = _opened(store, settings)
    memory.recall(text, vector=vector)
    return {"answered_at": time.time(), "open_and_recall_s": round(time.perf_counter() - began, 3)}


def _opened(store: Path, settings: dict[str, Any]) -> Memory:
    os.environ["RECALLITE_LOW_MEMORY"] = str(int(settings.pop("low_memory", False)))
    return Memory(store / "memory.db", settings=Settings(**settings))


def _write(data: Dataset, store: Path) -> dict[str, Any]:
    """Durable writes of one record, its vector given, and the recall right after each."""
    with Memory(store / "memory.db") as memory:
        memory.store.warmup()
        writes, recalls = [], []
        for place in range(_WRITES):
            text, vector = data.questions[place], data.asked[place]
            began = time.perf_counter()
            memory.remember(NewRecord(f"{text} {place}", vector=vector))
            written = time.perf_counter()
            memory.recall(text, vector=vector)
            recalls.append((time.perf_counter() - written) * 1e3)
            writes.append((written - began) * 1e3)
    return {"remember": percentiles(writes), "recall_after_it": percentiles(recalls)}


_TASKS: dict[str, Any] = {"ask": _ask, "open": _open, "weigh": _weigh, "write": _write}


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    task, data, store = arguments.pop("task"), Dataset(Path(arguments.pop("data"))), Path(arguments.pop("store"))
    finish(_TASKS[task](data, store, **arguments))
