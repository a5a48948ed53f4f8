"""Recall after a write; recall and another process's writes while a bulk is compared; what comparing and writing cost.

Lines with random unit vectors given, so that no model is timed; one in a hundred has the tag "one", one in ten "ten".
The other process opens the same file and writes every 50 ms, and meanwhile this one recalls every 10 ms.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus, isolated_process
from benchmarks.harness.case import Case, Context, Figures
from benchmarks.harness.measure import percentiles
from recallite import Filter, Memory
from recallite.model.records import NewRecord

__all__ = ["CASE"]

_DIMENSION, _VECTORS, _TURNS = 384, 8192, 300
_WRITE_EVERY_S, _RECALL_EVERY_S, _MEANWHILE_S = 0.05, 0.01, 20.0


@contextmanager
def _setup(context: Context) -> Iterator[dict[str, Any]]:
    lines = corpus.read_lines(context.corpus, context.records + 3 * _TURNS)
    yield {"stored": lines[: context.records], "new": lines[context.records :], "path": context.folder / "memory.db"}


def _tables(state: dict[str, Any], context: Context) -> Iterator[Figures]:
    stored, new, path = state["stored"], state["new"], state["path"]
    items = [
        {"text": line, "vector": vector, "tags": _tags(place)}
        for place, (line, vector) in enumerate(zip(stored, _vectors(len(stored), 0), strict=True))
    ]
    with Memory(path, embedder=None) as memory:
        memory.store.warmup()
        memory.remember_many(items)
        began, spent = time.perf_counter(), time.process_time()
        memory.store.catch_up()
        elapsed, spent = time.perf_counter() - began, time.process_time() - spent
        row = {"seconds": round(elapsed, 1), "us a record": round(elapsed / len(items) * 1e6)}
        row["processor us a record"] = round(spent / len(items) * 1e6)
        yield Figures("comparison of a bulk with nothing beside it", {f"{len(items):,} records": row})
        turns = context.count(_TURNS)
        yield Figures("after a write, ms", _after_writes(memory, new[:turns]))
        yield Figures("a durable write after a recall, KB of WAL", {"remember": _written(memory, new[-turns:])})
    yield Figures("while a bulk is compared, ms", _meanwhile(context.folder / "bulk.db", items, new))


def _tags(place: int) -> list[str]:
    return [name for name, every in (("one", 100), ("ten", 10)) if place % every == 0]


def _vectors(count: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Random vectors of a pool: what a vector is does not change what it costs."""
    pool = np.random.default_rng(seed).standard_normal((min(count, _VECTORS), _DIMENSION)).astype(np.float32)
    return (pool[place % len(pool)] for place in range(count))


def _after_writes(memory: Memory, lines: list[str]) -> dict[str, dict[str, Any]]:
    """A write before each timed recall but the plain one, in an order that rotates."""
    ways: dict[str, Filter | None] = {
        "recall": None,
        "recall after a write": None,
        "with a tag of 1 %, after a write": Filter(tags=["one"]),
        "with a tag of 10 %, after a write": Filter(tags=["ten"]),
    }
    taken: dict[str, list[float]] = {"remember": [], **{name: [] for name in ways}}
    names = list(ways)
    for number, (line, vector) in enumerate(zip(lines, _vectors(len(lines), 7), strict=True)):
        for step in range(len(names)):
            name = names[(number + step) % len(names)]
            if name == "recall":
                memory.recall(line, vector=vector)
            else:
                new = NewRecord(f"{line} {step}", vector=vector)
                taken["remember"].append(_ms(lambda: memory.remember(new)))  # noqa: B023
            taken[name].append(_ms(lambda: memory.recall(line, vector=vector, filter=ways[name])))  # noqa: B023
    return {name: percentiles(times) for name, times in taken.items()}


def _ms(call: Any) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def _written(memory: Memory, lines: list[str]) -> dict[str, Any]:
    """Kilobytes that a write gives the system to write; the median, so that a checkpoint between two does not count."""
    counter, grown = Path("/proc/self/io"), []
    for line, vector in zip(lines, _vectors(len(lines), 8), strict=True):
        memory.recall(line, vector=vector)
        before = _wchar(counter)
        memory.remember(NewRecord(line, vector=vector))
        grown.append((_wchar(counter) - before) / 1e3)
    return {"p50 KB": round(float(np.median(grown)), 1)}


def _wchar(counter: Path) -> int:
    return int(dict(line.split(": ") for line in counter.read_text("ascii").splitlines())["wchar"])


def _meanwhile(path: Path, items: list[dict[str, Any]], lines: list[str]) -> dict[str, dict[str, Any]]:
    asked = list(zip(lines, _vectors(len(lines), 9), strict=True))
    with Memory(path, embedder=None) as memory:
        memory.store.warmup()
        memory.remember_many(items)
        memory.recall(lines[0], vector=asked[0][1])
        with ThreadPoolExecutor(1) as other:
            arguments = {"path": path, "seconds": _MEANWHILE_S}
            written = other.submit(isolated_process.run, __name__, arguments, 20 * _MEANWHILE_S)
            taken = []
            while not written.done():
                line, vector = asked[len(taken) % len(asked)]
                taken.append(_ms(lambda: memory.recall(line, vector=vector)))  # noqa: B023
                time.sleep(_RECALL_EVERY_S)
            left = memory.store.stats().to_compare
    rows = {"recall": percentiles(taken), "another process's remember": percentiles(written.result()["taken"])}
    rows["recall"]["still to compare"] = left or 0
    return rows


def _write_meanwhile(path: str, seconds: float) -> None:
    """Write every 50 ms, and hand over what each took."""
    taken: list[float] = []
    with Memory(path, embedder=None) as memory:
        memory.remember(NewRecord("The first write of a process loads what reads texts", vector=next(_vectors(1, 10))))
        ends = time.perf_counter() + seconds
        for number, vector in enumerate(_vectors(round(seconds / _WRITE_EVERY_S) + 1, os.getpid())):
            if time.perf_counter() > ends:
                break
            new = NewRecord(f"Note {number} about boats", vector=vector)
            taken.append(_ms(lambda: memory.remember(new)))  # noqa: B023
            time.sleep(_WRITE_EVERY_S)
        isolated_process.finish({"taken": taken})


CASE = Case("around_a_change", "what a write and a bulk cost beside and after them", _setup, _tables)

if __name__ == "__main__":
    _write_meanwhile(**json.loads(sys.argv[1]))
