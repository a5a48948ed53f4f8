"""Saved runs of a case as JSON, and as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import saving
from benchmarks.tables import milliseconds, table

__all__ = ["caption", "markdown", "rows", "save"]


def save(case: str, key: str, run: dict[str, Any], path: Path) -> None:
    """Add a run to the file of a case; runs at other sizes stay."""
    before = saving.read(path)
    saving.write({"case": case, "runs": {**before.get("runs", {}), key: run}}, path)


def rows(saved: dict[str, Any], title: str, key: str | None = None) -> dict[str, dict[str, Any]]:
    """Rows of a saved table, of the largest run unless `key` names another."""
    run = saved["runs"][key or max(saved["runs"], key=int)]
    rows: dict[str, dict[str, Any]] = next(table["rows"] for table in run["tables"] if table["title"] == title)
    return rows


def markdown(saved: dict[str, Any]) -> str:
    """Tables of all runs, the smallest first, each with its caption."""
    if not saved:
        raise saving.NotMeasured("nothing is saved")
    parts = []
    for key in sorted(saved["runs"], key=int):
        run = saved["runs"][key]
        parts += [f"{run['records']:,} {run['unit']}:"] if len(saved["runs"]) > 1 else []
        parts += [*(_table(table["title"], table["rows"]) for table in run["tables"]), caption(run)]
    return "\n\n".join(parts)


def caption(run: dict[str, Any]) -> str:
    """The size, machine, commit and date of a run."""
    load = "" if run.get("load_before") is None else f"load {run['load_before']} before, "
    return (
        f"{run['records']:,} {run['unit']}, {run['rounds']:,} rounds, {run['processor']}, "
        f"{run['cores']} cores, {load}commit {run['commit']}, {run['date']}."
    )


def _table(title: str, rows: dict[str, dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [(name, *(_shown(column, row.get(column)) for column in columns)) for name, row in rows.items()]
    return table((title, *columns), lines, left=(title,))


def _shown(column: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    # Ratios and shares are told apart at the third digit, times at the second.
    return f"{value:.3f}" if "@" in column or column in ("MRR", "share") else milliseconds(value)
