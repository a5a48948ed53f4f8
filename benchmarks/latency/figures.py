"""Times of single calls and what is told of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["percentiles", "timed"]


def timed(call: Callable[[Any], object], arguments: Iterable[Any]) -> list[float]:
    """Milliseconds of `call` with each of the arguments in turn."""
    milliseconds = []
    for argument in arguments:
        began = time.perf_counter()
        call(argument)
        milliseconds.append((time.perf_counter() - began) * 1e3)
    return milliseconds


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99 by linear interpolation, the largest, and how many there are."""
    p50, p95, p99 = np.percentile(milliseconds, [50, 95, 99]).tolist()
    return {
        "p50_ms": round(p50, 3),
        "p95_ms": round(p95, 3),
        "p99_ms": round(p99, 3),
        "max_ms": round(max(milliseconds), 3),
        "calls": len(milliseconds),
    }
