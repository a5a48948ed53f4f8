"""Markdown tables and how figures stand in them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["megabytes", "milliseconds", "table"]


def table(header: Sequence[str], lines: Sequence[Sequence[str]], left: Sequence[str] = ()) -> str:
    """Columns are aligned right but for those of `left`."""
    rule = ["---" if name in left else "---:" for name in header]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *lines))


def milliseconds(value: float) -> str:
    """Two digits after the point below ten."""
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def megabytes(value: float | None) -> str:
    """Format whole megabytes; empty if unknown."""
    return "" if value is None else f"{value:,.0f}"
