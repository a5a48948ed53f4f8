"""Small SVG plots that can be read on a light and on a dark page, the same bytes for the same figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

__all__ = ["GREY", "OURS", "SECOND", "dress", "label_ends", "panels", "save", "told"]

# Each has a contrast of about four to white and to GitHub's dark page.
OURS, SECOND, GREY = "#2f81f7", "#d4691a", "#7d8590"
_GAP = 0.052


def panels(count: int, columns: int, width: float = 4.3, height: float = 3.1) -> tuple[Figure, list[Any]]:
    """A transparent figure with axes of logarithmic records, left to right."""
    mpl.rcParams.update({"svg.hashsalt": "recallite", "svg.fonttype": "none", "font.family": "sans-serif"})
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    figure.patch.set_alpha(0)
    FigureCanvasSVG(figure)
    axes = list(np.atleast_1d(figure.subplots(rows, columns)).ravel())
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def dress(axes: Any, title: str, sizes: Sequence[int] | None = None) -> None:
    """Axes of a plot over these sizes, both logarithmic, or over something else; after its lines are drawn."""
    lowest = min(float(np.min(line.get_ydata())) for line in axes.get_lines())
    axes.patch.set_alpha(0)
    axes.set_title(title, loc="left", fontsize=10, color=GREY)
    if sizes is not None:
        axes.set_xscale("log")
        axes.set_xticks(list(sizes), [_count(size) for size in sizes])
        axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    axes.set_yscale("log")
    axes.set_ylim(max(low, lowest) / 1.3, high * 1.3)
    # Less than two decades need lines between them.
    steps = (1.0,) if high / max(low, lowest) > 100 else (1.0, 2.0, 5.0)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: told(value)))
    axes.tick_params(colors=GREY, labelsize=8, length=0)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    for side in axes.spines.values():
        side.set_visible(False)


def label_ends(axes: Any, labels: Sequence[tuple[float, float, str, str]]) -> None:
    """Write (x, y, text, colour) right of each line's end, moved apart where they would lie on each other."""
    low, high = np.log10(axes.get_ylim())
    heights = [(np.log10(y) - low) / (high - low) for _, y, _, _ in labels]
    placed: list[tuple[float, int]] = []
    for place in np.argsort(heights).tolist():
        least = placed[-1][0] + _GAP if placed else -np.inf
        placed.append((max(heights[place], least), place))
    over = max(0.0, placed[-1][0] - 1.0) if placed else 0.0
    for height, place in placed:
        _, _, text, colour = labels[place]
        axes.annotate(
            text,
            (1.0, height - over),
            xycoords="axes fraction",
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=colour,
            fontweight="bold" if colour == OURS else "normal",
        )


def save(figure: Figure, path: Path) -> Path:
    """Write the SVG without a date."""
    figure.savefig(path, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return path


def told(value: float) -> str:
    """Three digits at most, or a whole number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _count(size: int) -> str:
    return f"{size // 1_000_000}M" if size >= 1_000_000 else f"{size // 1000}k" if size >= 1000 else str(size)
