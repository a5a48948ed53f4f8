"""A mode of an opened contender: latency, queries a second, recall@10 and the same under filters."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count, islice
from typing import Any

import numpy as np

from benchmarks.dataset import FILTERS, Dataset
from benchmarks.harness.measure import percentiles
from benchmarks.peers.contender import Mode

__all__ = ["measure"]

# A mode is asked all questions in order until the seconds are over, and at least the fewest.
SECONDS, FEWEST = 12.0, 20
_FILTER_SECONDS, _FILTERED, _FEWEST_FILTERED = 3.0, 200, 10
_WARM_SECONDS, _WARM = 2.0, 50
_BATCH, _BATCH_SECONDS = 100, 3.0


def measure(name: str, mode: Mode, data: Dataset, target: float) -> dict[str, Any]:
    """The figures of one mode. A graph is searched as widely as it takes to reach a recall@10 of `target`."""
    figures: dict[str, Any] = {}
    if mode.effort is not None:
        figures["ef"] = _searched_widely_enough(mode, data, target)
    questions = len(data.questions)
    _asked(mode.ask, data, range(questions - _WARM, questions), _WARM_SECONDS, 3)
    milliseconds, answers = _asked(mode.ask, data, range(questions), SECONDS, FEWEST)
    figures |= percentiles(milliseconds)
    figures["queries_per_second"] = round(_queries_per_second(mode, data, milliseconds), 1)
    figures["batch"] = mode.many is not None
    if name == "vector":
        shares = data.recall([mode.places(answer) for answer in answers])
        figures |= {"recall@10": round(float(shares.mean()), 4), "worst_query": float(shares.min())}
        if mode.effort is not None:
            figures |= {"target": target, "reaches_target": bool(shares.mean() >= target)}
        if mode.exact:
            figures["equals_exact"] = bool(shares.min() == 1)
    if mode.filtered is not None:
        figures["filters"] = {filter: _filtered(name, mode, data, filter) for filter in FILTERS}
    return figures


def _searched_widely_enough(mode: Mode, data: Dataset, target: float) -> int:
    """The least of its efforts that reaches the target, by bisection; the most if none does. It stays set."""
    assert mode.effort is not None
    low, high = 0, len(mode.efforts) - 1
    while low < high:
        middle = (low + high) // 2
        mode.effort(mode.efforts[middle])
        places = [mode.places(mode.ask("", vector)) for vector in data.asked[: len(data.tenth[""])]]
        if data.recall(places).mean() >= target:
            high = middle
        else:
            low = middle + 1
    mode.effort(mode.efforts[low])
    return mode.efforts[low]


def _asked(
    ask: Callable[[str, Any], Any], data: Dataset, places: range, seconds: float, fewest: int
) -> tuple[list[float], list[Any]]:
    """Milliseconds and results of questions in order, until the seconds have passed, but of the fewest at least."""
    milliseconds: list[float] = []
    answers = []
    end = time.perf_counter() + seconds
    for done, place in enumerate(places):
        if done >= fewest and time.perf_counter() > end:
            break
        text, vector = data.questions[place], data.asked[place]
        began = time.perf_counter()
        answer = ask(text, vector)
        milliseconds.append((time.perf_counter() - began) * 1e3)
        answers.append(answer)
    return milliseconds, answers


def _queries_per_second(mode: Mode, data: Dataset, milliseconds: list[float]) -> float:
    """Return the rate of the batch call (median of batches of 100 after a first one), else of single queries."""
    if mode.many is None:
        return 1e3 / float(np.mean(milliseconds))
    seconds: list[float] = []
    end = time.perf_counter() + _BATCH_SECONDS
    for batch in islice(count(), 2 + len(data.questions) // _BATCH):
        begin = batch * _BATCH % len(data.questions)
        part = slice(begin, begin + _BATCH)
        began = time.perf_counter()
        mode.many(data.questions[part], data.asked[part])
        seconds.append((time.perf_counter() - began) / len(data.questions[part]))
        if len(seconds) > 1 and time.perf_counter() > end:
            break
    return float(1 / np.median(seconds[1:]))


def _filtered(name: str, mode: Mode, data: Dataset, filter: str) -> dict[str, Any]:
    filtered, below = mode.filtered, FILTERS[filter]
    assert filtered is not None

    def ask(text: str, vector: Any) -> Any:
        return filtered(text, vector, below)

    _asked(ask, data, range(3), 0.0, 1)
    places = range(min(_FILTERED, len(data.questions)))
    milliseconds, answers = _asked(ask, data, places, _FILTER_SECONDS, _FEWEST_FILTERED)
    figures: dict[str, Any] = {"p50_ms": percentiles(milliseconds)["p50_ms"], "calls": len(milliseconds)}
    if name == "vector":
        shares = data.recall([mode.places(answer) for answer in answers], filter)
        figures["recall@10"] = round(float(shares.mean()), 4)
    return figures
