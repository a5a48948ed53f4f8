"""Times of calls, taken in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    # Processes whose start is measured import this module: it must not import the engine.
    from benchmarks.harness.case import Timing

__all__ = ["interleaved", "percentiles", "rates", "same", "seconds", "timed"]


def interleaved(timing: Timing) -> dict[str, dict[str, Any]]:
    """Rows of a timing. All ways run in each round, in an order that rotates.

    What else the machine does meets all ways, so a ratio holds if times do not.
    """
    names = list(timing.ways)
    elapsed = np.zeros((timing.warm_up + timing.rounds, len(names)))
    processor = np.zeros_like(elapsed)
    answers: dict[str, list[Any]] = {name: [] for name in names}
    for number in range(len(elapsed)):
        for step in range(len(names)):
            way = (number + step) % len(names)
            call = timing.ways[names[way]]
            began, spent = time.perf_counter(), time.process_time()
            answer = call(number)
            processor[number, way] = time.process_time() - spent
            elapsed[number, way] = time.perf_counter() - began
            if number >= timing.warm_up and timing.check is not None:
                answers[names[way]].append(answer)
    rows = _rows(names, elapsed[timing.warm_up :] * 1e3, processor[timing.warm_up :] * 1e3)
    for name, more in (timing.check(answers) if timing.check is not None else {}).items():
        rows[name] |= more
    return rows


def _rows(names: Sequence[str], elapsed: Any, processor: Any) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(names):
        p50, p95 = np.percentile(elapsed[:, place], [50, 95])
        rows[name] = {"p50 ms": round(float(p50), 4), "p95 ms": round(float(p95), 4)}
        rows[name]["processor p50 ms"] = round(float(np.median(processor[:, place])), 4)
        if len(names) > 1:
            rows[name]["times the first"] = round(float(p50 / np.median(elapsed[:, 0])), 3)
            rows[name]["more than it, ms"] = round(float(np.median(elapsed[:, place] - elapsed[:, 0])), 4)
    return rows


def same(answers: dict[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """No further columns; ends the program if a way answered a round differently from the first."""
    first, *others = answers
    for name in others:
        for number, (one, other) in enumerate(zip(answers[first], answers[name], strict=True)):
            if one != other:
                raise SystemExit(f"round {number}: {first} answers {one}, {name} answers {other}")
    return {}


def seconds(call: Callable[[], object]) -> float:
    """Seconds that a call takes, once."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def rates(calls: dict[str, Callable[[], object]], count: int, unit: str = "records") -> dict[str, dict[str, Any]]:
    """Rows of calls that each handle `count` items, run once one after the other."""
    taken = {name: seconds(call) for name, call in calls.items()}
    return {
        name: {"seconds": round(spent, 2), f"{unit} a second": round(count / spent)} for name, spent in taken.items()
    }


def timed(call: Callable[[Any], object], arguments: Iterable[Any]) -> list[float]:
    """Milliseconds of `call` with each of the arguments in turn."""
    return [seconds(lambda argument=argument: call(argument)) * 1e3 for argument in arguments]


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99 by linear interpolation, the largest, and the number of calls."""
    p50, p95, p99 = np.percentile(milliseconds, [50, 95, 99]).tolist()
    return {
        "p50_ms": round(p50, 3),
        "p95_ms": round(p95, 3),
        "p99_ms": round(p99, 3),
        "max_ms": round(max(milliseconds), 3),
        "calls": len(milliseconds),
    }
