"""quality.svg: a bar for each column of the table, of the sets that ask for the first 20."""

from __future__ import annotations

from typing import Any

from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.report import TITLES

__all__ = ["bars"]

# As in benchmarks.drawing, which needs matplotlib.
_OURS, _GREY = "#2f81f7", "#7d8590"
_WIDTH, _STEP, _LEFT, _BAR = 700, 22, 90, 520
_METRIC = "recall@20"


def bars(run: dict[str, Any]) -> str:
    """The plot of a run as SVG, readable on a light and on a dark page."""
    parts: list[str] = []
    y = 0
    for name, result in run["sets"].items():
        figures = {column: result["figures"].get(column, {}).get(_METRIC) for column in COLUMNS}
        shown = {column: figure for column, figure in figures.items() if figure is not None}
        if not shown:
            continue
        y += 20
        parts.append(f'<text x="0" y="{y}" fill="{_GREY}" font-weight="bold">{TITLES[name]}: {_METRIC}</text>')
        for column, figure in shown.items():
            y += _STEP
            colour = _OURS if column == "default" else _GREY
            parts.append(
                f'<text x="{_LEFT - 8}" y="{y}" fill="{colour}" text-anchor="end">{column}</text>'
                f'<rect x="{_LEFT}" y="{y - 12}" width="{_BAR * figure:.1f}" height="15" fill="{colour}"/>'
                f'<text x="{_LEFT + _BAR * figure + 6:.1f}" y="{y}" fill="{colour}">{figure:.3f}</text>'
            )
        y += 16
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" font-family="sans-serif" font-size="13">'
    )
    return "\n".join((start, *parts, "</svg>", ""))
