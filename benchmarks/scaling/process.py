"""Run as a script: `ask`, `open`, `weigh` or `write` on a store that is built."""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.dataset import FILTERS, Dataset
from benchmarks.harness.measure import percentiles
from benchmarks.isolated_process import anonymous_mb, finish
from benchmarks.scaling.large import MARK, LargeDataset
from recallite import Memory, Settings
from recallite.model.records import NewRecord

_WRITES, _WEIGHED = 100, 100
_SECONDS = 12.0


def _ask(data: Dataset, store: Path, filters: Sequence[str] = tuple(FILTERS)) -> dict[str, Any]:
    """Recall with the query vector ready, hybrid and by vector alone, and under filters."""
    # Imported here: the start of a process is measured, and the contenders take 0.1 s of it.
    from benchmarks.peers.contenders.recallite_memory import Recallite
    from benchmarks.peers.process import Asked

    recallite = Recallite()
    contender = Asked(recallite, data)
    contender.open(str(store))
    contender.ask("hybrid", None, 0, 50, 2.0)
    measured: dict[str, Any] = {}
    for mode in ("hybrid", "vector"):
        measured[mode] = _with_mean(contender.ask(mode, None, 0, len(data.questions), _SECONDS))
        measured[mode]["filters"] = {
            name: _with_mean(contender.ask(mode, None, 0, 200, _SECONDS / 4, name)) for name in filters
        }
    rates = [contender.batch(None, begin, 100)["queries_per_second"] for begin in range(0, 1000, 100)]
    measured["hybrid"]["queries_per_second"] = round(median(rates[1:]), 1)
    recallite.close()  # which writes the index snapshot
    return measured


def _with_mean(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures with the mean recall@10 in place of each question's."""
    shares = [share for share in figures.pop("recall", []) if not math.isnan(share)]
    return {**figures, **({"recall@10": round(fmean(shares), 4)} if shares else {})}


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
    task, folder, store = arguments.pop("task"), Path(arguments.pop("data")), Path(arguments.pop("store"))
    data = LargeDataset(folder) if (folder / MARK).exists() else Dataset(folder)
    finish(_TASKS[task](data, store, **arguments))
