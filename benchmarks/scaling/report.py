"""The table of a run in Markdown: a column a size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.tables import megabytes, milliseconds, table

__all__ = ["markdown"]

Figures = dict[str, Any]


def markdown(saved: dict[str, Any]) -> str:
    """Tabulate the measurements by number of records, and what they were measured with."""
    results: dict[str, Figures] = saved.get("results", {})
    if not results:
        return "Nothing is saved."
    sizes = sorted(results, key=int)
    header = ("", *(f"{int(size):,}" for size in sizes))
    lines = [
        (title, *(_shown(show, results[size]) for size in sizes)) for title, show in _lines(results[sizes[-1]]["open"])
    ]
    caption = (
        f"{saved['processor']}, {saved['cores']} cores, Python {saved['python']}, commit {saved['commit']}, "
        f"{saved['date']}."
    )
    measured = [line for line in lines if any(line[1:])]
    return f"{table(header, measured, left=('',))}\n\n{caption}"


def _shown(show: Callable[[Figures], str], figures: Figures) -> str:
    """A size that was measured before a case was added has nothing to show for it."""
    try:
        return show(figures)
    except KeyError:
        return ""


def _lines(cases: Figures) -> Iterator[tuple[str, Callable[[Figures], str]]]:
    for percentile in ("p50", "p95", "p99"):
        yield f"recall, {percentile} ms", lambda at, name=percentile: milliseconds(at["hybrid"][f"{name}_ms"])
    yield '`mode="vector"`, p50 ms', lambda at: milliseconds(at["vector"]["p50_ms"])
    yield "recall@10 of the vector stage", lambda at: f"{at['vector']['recall@10']:.4f}"
    for filter in ("10 %", "1 %", "0.1 %"):
        yield (
            f"filtered to {filter}: recall p50 ms (recall@10)",
            lambda at, name=filter: (
                f"{milliseconds(at['hybrid']['filters'][name]['p50_ms'])} "
                f"({at['vector']['filters'][name]['recall@10']:.3f})"
            ),
        )
    yield "`recall_many`, queries/s", lambda at: f"{at['hybrid']['queries_per_second']:,.0f}"
    for name in cases:
        yield f"{name}: process start to first hits, s", lambda at, case=name: f"{at['open'][case]['open_s']:.2f}"
        yield (
            f"{name}: of that opening and recall, s",
            lambda at, case=name: f"{at['open'][case]['open_and_recall_s']:.2f}",
        )
        yield f"{name}: anonymous MB added", lambda at, case=name: megabytes(at["open"][case]["anonymous_mb_above"])
    for name in ("with the snapshot", "without a snapshot"):
        yield f"`recallite recall`, {name}, s", lambda at, way=name: f"{at['command_s'][way]:.2f}"
    yield "`remember`, durable, p50 ms", lambda at: milliseconds(at["remember"]["p50_ms"])
    yield "recall right after it, p50 ms", lambda at: milliseconds(at["recall_after_it"]["p50_ms"])
    yield "`remember_many` of all, s", lambda at: f"{at['build_s']:,.1f}"
    yield "MB on disk", lambda at: megabytes(at["disk_mb"])
