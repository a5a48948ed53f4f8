"""The table of a run: on the terminal, as JSON, and as Markdown for the README."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.quality.columns import COLUMNS

__all__ = ["TITLES", "markdown", "show", "write"]

TITLES = {
    "locomo": "LoCoMo, turns",
    "longmemeval": "LongMemEval-S, sessions",
    "realmem": "RealMem, statements",
    "scifact": "SciFact, abstracts",
    "confidence": "Confidence, answerable or not",
    "first_tries": "First tries, small stores",
}
_MAIN = {
    "locomo": ("recall@20", "hit@20", "MRR"),
    "longmemeval": ("recall_any@5", "recall_all@5", "recall_any@1", "recall_all@5, asked today"),
    "realmem": ("recall@20", "MRR"),
    "scifact": ("nDCG@10",),
    "confidence": ("ROC AUC", "ROC AUC, first hit"),
    "first_tries": ("answered first", "first and confident"),
}
_HEADER = ("set", "questions", "metric", *COLUMNS, "code bytes a record")


def write(run: dict[str, Any], path: Path) -> None:
    """Save a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def show(run: dict[str, Any], console: Console) -> None:
    """Print a run."""
    table = Table(title="Retrieval quality", caption=_caption(run))
    for name in _HEADER:
        table.add_column(name, justify="left" if name in ("set", "metric") else "right")
    for row in _rows(run):
        table.add_row(*row)
    console.print(table)
    categories = run["sets"].get("locomo", {}).get("categories")
    if categories:
        table = Table(title="LoCoMo by category, default")
        for name in ("category", "questions", *_MAIN["locomo"]):
            table.add_column(name, justify="left" if name == "category" else "right")
        for row in _category_rows(categories):
            table.add_row(*row)
        console.print(table)


def markdown(run: dict[str, Any]) -> str:
    """The tables of a run in Markdown, without headings."""
    lines = [*_markdown(_HEADER, list(_rows(run)), left=("set", "metric"))]
    categories = run["sets"].get("locomo", {}).get("categories")
    if categories:
        lines += ["", "LoCoMo by category, default:", ""]
        lines += _markdown(("category", "questions", *_MAIN["locomo"]), list(_category_rows(categories)), ("category",))
    return "\n".join([*lines, "", f"{_caption(run)}."])


def _rows(run: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, result in run["sets"].items():
        for place, metric in enumerate(_MAIN[name]):
            figures = [result["figures"].get(column, {}).get(metric) for column in COLUMNS]
            yield (
                TITLES[name] if place == 0 else "",
                f"{result['questions']:,}" if place == 0 else "",
                metric,
                *("" if figure is None else f"{figure:.3f}" for figure in figures),
                f"{result['code_bytes_per_record']:,}" if place == 0 and result.get("code_bytes_per_record") else "",
            )


def _category_rows(categories: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, result in categories.items():
        figures = result["figures"]["default"]
        yield name, f"{result['questions']:,}", *(f"{figures[metric]:.3f}" for metric in _MAIN["locomo"])


def _caption(run: dict[str, Any]) -> str:
    seconds = sum(sum(result["seconds"].values()) for result in run["sets"].values())
    return f"Embedder {run['embedder']}, commit {run['commit']}, {run['date']}, {seconds:.0f} s on {run['cores']} cores"


def _markdown(header: tuple[str, ...], rows: list[tuple[str, ...]], left: tuple[str, ...]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"| {' | '.join('---' if name in left else '---:' for name in header)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"
