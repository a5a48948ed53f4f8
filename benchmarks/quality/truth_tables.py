"""The tables of truth over time: what holds now, pairs, dates and junk, with the bars that they are held to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.quality.ways import WAYS

__all__ = ["HEADER", "TITLES", "Table", "rows", "tables"]

TITLES = {
    "facts": "FactConsolidation",
    "beam_updates": "BEAM 100K, statements that changed",
    "longmemeval_updates": "LongMemEval-S, knowledge updates",
    "pairs": "Pairs of statements",
    "dates": "Date phrases",
    "junk": "Junk",
}
HEADER = ("set", "questions", "metric", *WAYS, "bar")
_BARS = {
    ("facts", "455 facts: current first"): "0.960",
    ("facts", "2,310 facts: current first"): "0.960",
    ("facts", "4,580 facts: current first"): "0.950",
    ("beam_updates", "knowledge_update: current before former"): "0.900",
    ("beam_updates", "contradiction_resolution: current before former"): "0.900",
    ("pairs", "superseded: precision"): "0.970",
    ("pairs", "superseded: recall"): "0.750",
    ("dates", "right or left alone"): "0.950",
    ("dates", "wrong"): "0",
}
Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]


def rows(run: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The main table: a row a metric."""
    for name, title in TITLES.items():
        if (result := run["sets"].get(name)) is None:
            continue
        for place, metric in enumerate(result["figures"]["default"]):
            yield (
                title if place == 0 else "",
                f"{result['questions']:,}" if place == 0 else "",
                metric,
                *(_shown(result["figures"].get(way, {}).get(metric)) for way in WAYS),
                _BARS.get((name, metric), ""),
            )


def tables(run: dict[str, Any]) -> Iterator[Table]:
    """Title, header and rows of what is shown beside the main table."""
    sets = run["sets"]
    for way, table in sets.get("pairs", {}).get("confusion", {}).items():
        seen = tuple(next(iter(table.values())))
        lines = [(expected, *(str(counts[outcome]) for outcome in seen)) for expected, counts in table.items()]
        yield f"Pairs, {way}: expected by row, found by column", ("expected", *seen), lines
    for part in ("languages", "grains"):
        if groups := sets.get("dates", {}).get(part):
            metrics = tuple(name for name in next(iter(groups.values())) if name != "questions")
            lines = [
                (name, str(one["questions"]), *(f"{one[key]:.3f}" for key in metrics)) for name, one in groups.items()
            ]
            yield f"Date phrases by {part[:-1]}", (part[:-1], "phrases", *metrics), lines
    if classes := sets.get("junk", {}).get("classes"):
        lines = [(name, str(one["questions"]), str(one["skipped"])) for name, one in classes.items()]
        yield "Junk by class", ("class", "texts", "skipped"), lines
    if changed := {name: result for name, result in sets.items() if "changes" in result}:
        counts = tuple(next(iter(changed.values()))["changes"])
        lines = [
            (name, f"{result['records']:,}", *(f"{result['changes'][key]:,}" for key in counts))
            for name, result in changed.items()
        ]
        yield "What detection does to the other sets", ("set", "records", *counts), lines


def _shown(figure: float | None) -> str:
    if figure is None:
        return ""
    return f"{figure:.3f}" if isinstance(figure, float) else f"{figure:,}"
