"""Ratios and differences between the rounds of two sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from benchmarks.compare.ways import WAYS
from benchmarks.harness.measure import percentiles
from benchmarks.tables import milliseconds, table

__all__ = ["Rounds", "differing", "markdown"]

SIDES = ("base", "now")
_SCORE_TOLERANCE = 1e-6
_HEADER = (
    "way", "base p50 ms", "p95", "now p50 ms", "p95", "now / base", "quartiles", "processor", "answers that differ",
)  # fmt: skip


@dataclass
class Rounds:
    """The rounds of one way at one size: what each side took, and which questions it answered differently."""

    ms: dict[str, list[list[float]]] = field(default_factory=lambda: {side: [] for side in SIDES})
    processor_ms: dict[str, list[list[float]]] = field(default_factory=lambda: {side: [] for side in SIDES})
    questions: set[int] = field(default_factory=set)
    differ: dict[str, set[int]] = field(default_factory=dict)

    def add(self, places: Sequence[int], base: dict[str, Any], now: dict[str, Any]) -> None:
        """A round of both."""
        for side, times in zip(SIDES, (base, now), strict=True):
            self.ms[side].append(times["ms"])
            self.processor_ms[side].append(times["processor_ms"])
        self.questions.update(places)
        for place, one, other in zip(places, base["answers"], now["answers"], strict=True):
            for what in differing(one, other):
                self.differ.setdefault(what, set()).add(place)

    def figures(self) -> dict[str, Any]:
        """Per side the percentiles of all rounds; the ratio of the medians of each round, and of its processor time.

        A ratio below 1 says that "now" is faster.
        """
        ratios = _ratios(self.ms)
        low, middle, high = np.percentile(ratios, [25, 50, 75]).tolist()
        return {
            **{side: percentiles([times for one in self.ms[side] for times in one]) for side in SIDES},
            "ratio": round(middle, 4),
            "ratio_quartiles": [round(low, 4), round(high, 4)],
            "processor_ratio": round(median(_ratios(self.processor_ms)), 4),
            "questions": len(self.questions),
            "questions_that_differ": len(set[int]().union(*self.differ.values())),
            "differ_in": {what: len(places) for what, places in self.differ.items()},
        }


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """List what differs between two answers: hits, order, scores beyond 1e-6, gaps, reasons."""
    differences = []
    if one["places"] != other["places"]:
        differences.append("order" if sorted(one["places"]) == sorted(other["places"]) else "hits")
    elif not np.allclose(one["scores"], other["scores"], rtol=0, atol=_SCORE_TOLERANCE):
        differences.append("scores")
    differences += ["gaps"] if one["gaps"] != other["gaps"] else []
    # Of other hits there are other reasons.
    differences += ["reasons"] if one["places"] == other["places"] and one["reasons"] != other["reasons"] else []
    return differences


def _ratios(rounds: dict[str, list[list[float]]]) -> list[float]:
    return [median(now) / median(base) for base, now in zip(*(rounds[side] for side in SIDES), strict=True)]


def markdown(run: dict[str, Any]) -> str:
    """A table a size."""
    parts = [
        f"{run['processor']}, {run['cores']} cores, Python {run['python']}, {run['rounds']} rounds of "
        f"{run['questions_per_round']} questions a way. Base: {run['base']}. Now: {run['commit']}. Ratios are of each "
        "round's medians, and the median of those; below 1, now is faster."
    ]
    for size, result in run["results"].items():
        lines = [_line(way, figures) for way, figures in result["ways"].items()]
        parts += [
            f"{int(size):,} records",
            table(_HEADER, lines, left=(_HEADER[0], _HEADER[-1])),
            _written(size, result),
        ]
    return "\n\n".join(part for part in parts if part)


def _line(way: str, figures: dict[str, Any]) -> list[str]:
    if refused := figures.get("refused"):
        reasons = "; ".join(f"missing in {side}: {reason}" for side, reason in refused.items())
        return [way, *("" for _ in _HEADER[2:]), reasons[:200]]
    times = [_time(way, figures[side]) for side in SIDES]
    low, high = figures["ratio_quartiles"]
    differ = f"{figures['questions_that_differ']:,} of {figures['questions']:,}"
    kinds = ", ".join(f"{what} {count:,}" for what, count in figures["differ_in"].items())
    return [
        way,
        *(cell for pair in times for cell in pair),
        f"{figures['ratio']:.3f}",
        f"{low:.3f}-{high:.3f}",
        f"{figures['processor_ratio']:.3f}",
        f"{differ} ({kinds})" if kinds else differ,
    ]


def _time(way: str, side: dict[str, float]) -> tuple[str, str]:
    """Median and p95; what is asked in one call by the second."""
    if WAYS[way].many:
        return f"{1e3 / side['p50_ms']:,.0f}/s", ""
    return f"{side['p50_ms']:.3f}", milliseconds(side["p95_ms"])


def _written(size: str, result: dict[str, Any]) -> str:
    """Report how long the stores written in this run took."""
    written = [
        f"{side} {figures['build_s']:.1f} s ({int(size) / figures['build_s']:,.0f}/s)"
        for side, figures in result["opened"].items()
        if "build_s" in figures
    ]
    return f"`remember_many` of all, vectors given, one after the other: {', '.join(written)}." if written else ""
