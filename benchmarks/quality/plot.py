"""Plots of a run: a bar for each column of the sets that ask for the first 20, and the reliability of confidence."""

from __future__ import annotations

from typing import Any

from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.report import TITLES

__all__ = ["bars", "reliability"]

# As in benchmarks.drawing, which needs matplotlib.
_OURS, _GREY = "#2f81f7", "#7d8590"
_WIDTH, _STEP, _LEFT, _BAR = 700, 22, 90, 520
_METRIC = "recall@20"
_SIDE, _MARGIN = 300, 44


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


def reliability(run: dict[str, Any]) -> str:
    """The reliability diagram of a run as SVG: the share of right hits over the mean confidence of each bin."""
    lines = run["sets"]["confidence"]["reliability"]
    height = _SIDE + 2 * _MARGIN
    parts = [
        f'<rect x="{_x(0)}" y="{_y(1)}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="{_GREY}" opacity="0.4"/>',
        f'<path d="M{_x(0)} {_y(0)} L{_x(1)} {_y(1)}" stroke="{_GREY}" stroke-dasharray="4 4" fill="none"/>',
        f'<text x="{_x(0.5)}" y="{height - 4}" fill="{_GREY}" text-anchor="middle">confidence</text>',
        f'<text x="0" y="{_y(1) - 12}" fill="{_GREY}">share of right hits</text>',
    ]
    parts += [
        f'<text x="{_x(share)}" y="{_y(0) + 18}" fill="{_GREY}" text-anchor="middle">{share:g}</text>'
        f'<text x="{_x(0) - 8}" y="{_y(share) + 4}" fill="{_GREY}" text-anchor="end">{share:g}</text>'
        for share in (0, 0.5, 1)
    ]
    for place, (name, colour) in enumerate((("all hits", _GREY), ("first hit", _OURS))):
        points = [(_x(bar["confidence"]), _y(bar["right"])) for bar in lines[name]]
        path = " L".join(f"{x} {y}" for x, y in points)
        parts.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in points]
        parts.append(f'<text x="{_x(0) + 12}" y="{_y(1) + 22 + 18 * place}" fill="{colour}">{name}</text>')
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIDE + 2 * _MARGIN} {height}" '
        'font-family="sans-serif" font-size="13">'
    )
    return "\n".join((start, *parts, "</svg>", ""))


def _x(share: float) -> float:
    return round(_MARGIN + share * _SIDE, 1)


def _y(share: float) -> float:
    return round(_MARGIN + (1 - share) * _SIDE, 1)
