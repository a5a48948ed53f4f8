"""scaling.svg: how each figure grows with the number of records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["draw"]

_Get = Callable[[dict[str, Any]], Any]


def draw(saved: dict[str, Any], folder: Path) -> list[Path]:
    """Write the plot into a folder; ImportError without matplotlib."""
    from benchmarks.drawing import GREY, OURS, SECOND, dress, label_ends, panels, save, told

    results = {int(size): figures for size, figures in saved.get("results", {}).items()}
    if not results:
        return []
    sizes = sorted(results)
    colours = (OURS, SECOND, GREY)
    plots = _plots(results[sizes[-1]])
    figure, axes = panels(len(plots), columns=3)
    for panel, (title, lines) in zip(axes, plots.items(), strict=True):
        ends = []
        for colour, (name, get) in zip(colours, lines.items(), strict=False):
            points = [(size, get(results[size])) for size in sizes if get(results[size]) is not None]
            if not points:
                continue
            panel.plot(*zip(*points, strict=True), color=colour, linewidth=2, marker="o", markersize=4)
            ends.append((*points[-1], f"{name}  {told(points[-1][1])}", colour))
        dress(panel, title, sizes)
        label_ends(panel, ends)
    return [save(figure, folder / "scaling.svg")]


def _plots(largest: dict[str, Any]) -> dict[str, dict[str, _Get]]:
    """The lines of each panel by title."""

    def opened(case: str, figure: str) -> _Get:
        return lambda at: at["open"].get(case, {}).get(figure)

    return {
        "Recall, vector ready: ms": {name: _figure("hybrid", f"{name}_ms") for name in ("p50", "p95", "p99")},
        "recall_many: queries/s": {"hybrid": _figure("hybrid", "queries_per_second")},
        "Process start to first hits: s": {case: opened(case, "open_s") for case in largest["open"]},
        "Anonymous memory added: MB": {case: opened(case, "anonymous_mb_above") for case in largest["open"]},
        "One durable write: ms": {
            "remember": _figure("remember", "p50_ms"),
            "recall after it": _figure("recall_after_it", "p50_ms"),
        },
        "All written: s": {"remember_many": lambda at: at["build_s"]},
    }


def _figure(mode: str, figure: str) -> _Get:
    return lambda at: at[mode][figure]
