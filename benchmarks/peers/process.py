"""Run as a script: one contender, either `build`, or opened to answer tasks that stand on lines of standard input."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dataset import FILTERS, Dataset
from benchmarks.harness.measure import percentiles
from benchmarks.isolated_process import anonymous_mb, finish, peak_rss_mb
from benchmarks.peers.contender import Contender
from benchmarks.peers.contenders import CONTENDERS

__all__ = ["Asked", "bytes_on_disk"]


def bytes_on_disk(folder: Path) -> int:
    """Sum the sizes of all files in a folder and below."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _build(name: str, data: Dataset, store: Path) -> dict[str, Any]:
    contender = CONTENDERS[name].load()
    # The data is read before the clock runs.
    data.vectors.sum()
    len(data.lines)
    began, spent = time.perf_counter(), time.process_time()
    contender.build(data, store)
    return {
        "versions": CONTENDERS[name].versions(),
        "build_s": round(time.perf_counter() - began, 2),
        "build_cpu_s": round(time.process_time() - spent, 2),
        "build_peak_rss_mb": peak_rss_mb(),
        "disk_mb": round(bytes_on_disk(store) / 1e6, 1),
    }


class Asked:
    """A contender that is opened, and the tasks that it can be given: methods without an underscore."""

    def __init__(self, contender: Contender, data: Dataset) -> None:
        self._contender, self._data = contender, data
        self._texts = data.questions if contender.takes_stop_words else data.words

    def open(self, folder: str) -> dict[str, Any]:
        """Seconds of opening a folder and the first answer."""
        began = time.perf_counter()
        self._contender.open(Path(folder))
        (self._contender.hybrid or self._contender.vector)(self._texts[0], self._data.asked[0])
        return {"open_s": round(time.perf_counter() - began, 3)}

    def sweep(self, count: int, seconds: float) -> list[dict[str, Any]]:
        """Latency and recall@10 of the vector search at each of the contender's efforts."""
        return [
            {"effort": effort, **self.ask("vector", effort, 0, count, seconds)} for effort in self._contender.efforts
        ]

    def ask(self, mode: str, effort: Any, begin: int, count: int, seconds: float, filter: str = "") -> dict[str, Any]:
        """Some questions one by one, five at least, until the seconds are over."""
        contender, data = self._contender, self._data
        contender.widen(tuple(effort) if isinstance(effort, list) else effort)
        call: Callable[..., Any] = getattr(contender, mode)
        below = FILTERS.get(filter)
        milliseconds: list[float] = []
        answers: dict[int, Any] = {}
        end, spent = time.perf_counter() + seconds, time.process_time()
        for number in range(begin, begin + count):
            place = number % len(data.questions)
            began = time.perf_counter()
            answers[place] = call(self._texts[place], data.asked[place], below)
            milliseconds.append((time.perf_counter() - began) * 1e3)
            if len(milliseconds) >= 5 and time.perf_counter() > end:
                break
        cpu_ms = (time.process_time() - spent) * 1e3 / len(milliseconds)
        figures = {**percentiles(milliseconds), "cpu_ms": round(cpu_ms, 3)}
        if mode == "vector":
            figures["recall"] = [
                data.recall(place, contender.places(answer), filter) for place, answer in answers.items()
            ]
        return figures

    def batch(self, effort: Any, begin: int, count: int) -> dict[str, Any]:
        """Questions a second of hybrids in one call."""
        self._contender.widen(tuple(effort) if isinstance(effort, list) else effort)
        places = [number % len(self._data.questions) for number in range(begin, begin + count)]
        texts = [self._texts[place] for place in places]
        began, spent = time.perf_counter(), time.process_time()
        self._contender.hybrid_many(texts, self._data.asked[places])
        taken = time.perf_counter() - began
        return {"queries_per_second": round(count / taken, 1), "cpu_ms": (time.process_time() - spent) * 1e3 / count}

    def insert(self, count: int, seconds: float) -> dict[str, Any]:
        """Durable writes of one record, near no question, until the seconds are over."""
        assert self._contender.insert is not None
        generator, milliseconds = np.random.default_rng(99), []
        end = time.perf_counter() + seconds
        for place in range(len(self._data.vectors), len(self._data.vectors) + count):
            vector = generator.standard_normal(self._data.vectors.shape[1]).astype(np.float32)
            vector /= np.linalg.norm(vector)
            began = time.perf_counter()
            self._contender.insert(place, f"fresh note number {place} about a kitchen", vector)
            milliseconds.append((time.perf_counter() - began) * 1e3)
            if time.perf_counter() > end:
                break
        return percentiles(milliseconds)

    def weigh(self) -> dict[str, Any]:
        """Memory of the process."""
        return {"anonymous_mb": anonymous_mb(), "peak_rss_mb": peak_rss_mb()}

    def abilities(self) -> dict[str, bool]:
        """Whether the contender has a hybrid and single writes."""
        return {name: getattr(self._contender, name) is not None for name in ("hybrid", "insert")}


def _serve(name: str, data: Dataset) -> None:
    # What a library prints does not stand between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    before = anonymous_mb()
    began = time.perf_counter()
    contender = Asked(CONTENDERS[name].load(), data)
    import_s = round(time.perf_counter() - began, 3)
    print(json.dumps({"before_mb": before, "import_s": import_s, **contender.abilities()}), file=answers)
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(getattr(contender, task.pop("do"))(**task)), file=answers)


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    data = Dataset(Path(arguments["data"]))
    if arguments["task"] == "build":
        finish(_build(arguments["contender"], data, Path(arguments["store"])))
    _serve(arguments["contender"], data)
