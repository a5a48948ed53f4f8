"""The tables of a run in Markdown, and what others have published."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from textwrap import fill
from typing import Any, NamedTuple

from benchmarks.memory_systems.systems import OURS, SYSTEMS, TEXT_ALONE
from benchmarks.tables import megabytes, milliseconds, table

__all__ = ["PUBLISHED", "SETS", "Published", "claims", "markdown"]

SETS = {
    "locomo": ("LoCoMo, turns, development part", ("recall@20", "hit@20", "MRR")),
    "longmemeval": ("LongMemEval-S, what the user said, development part", ("recall_all@5", "recall_any@5")),
}
_LEFT = ("system", "embedding model")
_GIVEN = "recallite-minilm"
# The most load before a run whose times are shown.
_QUIET = 2.5


class Published(NamedTuple):
    """Figures that the authors of a system publish, of other questions."""

    system: str
    figures: str
    on: str
    by: str


PUBLISHED = (
    Published(
        "memkeeper",
        "recall@20 .768, hit@20 .880, MRR .668",
        "all of LoCoMo, 1,982 questions; cross-encoder",
        "[its authors](https://memkeeper.ai/blog/benchmarking-agent-memory-locomo.html), read 2026-11-26; its package "
        "on PyPI (0.0.1) is empty, so it was not run",
    ),
    Published(
        "memweave",
        "recall_all@5 .889, recall_any@5 .980",
        "LongMemEval-S, its 450 held-out questions, what the user said; all-MiniLM-L6-v2",
        "[its authors](https://github.com/sachinsharma9780/memweave/tree/2ff82df7148274ee7d465273e2c401be18625238/benchmarks)"
        ", 2026-05-10; all@5 recomputed from their result files",
    ),
    Published(
        "MemPalace",
        "recall_any@5 .966",
        "LongMemEval-S, 500 questions, without a language model",
        "[its authors](https://github.com/MemPalace/mempalace/blob/02ffc39826584d63ec91741e4b908d2429b907a8/README.md)"
        ", of its version 3.5.0",
    ),
)


def markdown(saved: dict[str, Any]) -> str:
    """A table a set, what each system is asked for, what is published, and the caption."""
    results: dict[str, dict[str, Any]] = saved.get("results", {})
    parts: list[str] = []
    for of, (title, metrics) in SETS.items():
        if of in results:
            header = ("system", "embedding model", *metrics, "recall p50 ms", "writes/s", "MB added")
            n = max(figures.get("questions", 0) for row in results[of].values() for figures in row.values())
            rows = sorted(_rows(results[of], metrics), key=lambda row: row[2], reverse=True)
            parts += [f"{title}, {n} questions:", table(header, rows, _LEFT), *_failures(results[of])]
    calls = [(name, entry.model, entry.how) for name, entry in SYSTEMS.items()]
    header = ("system", "its own model", "what is called")
    parts += ["What was asked of each:", table(header, calls, header)]
    header = ("system", "figure", "measured on", "by")
    parts += ["Published by others, on other questions:", table(header, PUBLISHED, header)]
    return "\n\n".join([*parts, _caption(saved)])


def claims(saved: dict[str, Any]) -> str:
    """The claim of the README: Recallite, with fields and with text alone, and the best other system."""
    rows = saved["results"]["locomo"]
    ours = rows[OURS]["default"]
    others = {
        name: figures
        for name, row in rows.items()
        if not name.startswith(OURS) and (figures := _best(row, "recall@20"))
    }
    name = max(others, key=lambda other: _mean(others[other]))
    text = (
        f"- **It finds what you mean.** Of the evidence for {ours['questions']} questions about LoCoMo's "
        f"conversations, development part, {_percent(ours)} is among the first 20 hits if each turn has its speaker, "
        f"session and time, and {_percent(rows[TEXT_ALONE]['default'])} if it is a line of text. With lines of text "
        f"{name}, the best of {len(others)} other systems that need no language model, finds "
        f"{_percent(others[name])}. Held-out parts, and who is ahead in MRR: [quality](docs/benchmarks.md#quality)"
    )
    return fill(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _best(row: dict[str, Any], metric: str) -> Any:
    measured = [figures for figures in row.values() if "figures" in figures]
    return max(measured, key=lambda figures: figures["figures"][metric]["mean"], default=None)


def _mean(figures: dict[str, Any]) -> float:
    return float(figures["figures"]["recall@20"]["mean"])


def _percent(figures: dict[str, Any]) -> str:
    value = figures["figures"]["recall@20"]
    return f"{100 * value['mean']:.1f} % ({100 * value['low']:.1f} to {100 * value['high']:.1f})"


def _rows(results: dict[str, Any], metrics: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, row in results.items():
        for model, figures in row.items():
            if "figures" in figures:
                quiet = figures.get("load", inf) <= _QUIET
                suffix = " (its own)" if model == SYSTEMS[name].here else ""
                yield (
                    f"**{name}**" if name.startswith(OURS) else name,
                    f"{_GIVEN if model == 'default' else model}{suffix}",
                    *(_shown(figures["figures"][metric]) for metric in metrics),
                    milliseconds(figures["recall"]["p50_ms"]) if quiet else "",
                    f"{figures['writes_per_second']:,.0f}" if quiet else "",
                    megabytes(figures["added_mb"]),
                )


def _failures(results: dict[str, Any]) -> list[str]:
    lines = [
        f"- {name}, {model}: {figures['failed']}"
        for name, row in results.items()
        for model, figures in row.items()
        if "failed" in figures
    ]
    return ["\n".join(lines)] if lines else []


def _shown(value: dict[str, float]) -> str:
    return f"{value['mean']:.3f} ({value['low']:.3f} to {value['high']:.3f})"


def _caption(saved: dict[str, Any]) -> str:
    runs = [
        (name, figures)
        for results in saved.get("results", {}).values()
        for name, row in results.items()
        for figures in row.values()
        if "version" in figures
    ]
    commits = ", ".join(sorted({figures["commit"] for _, figures in runs}))
    versions = ", ".join(sorted({f"{name} {figures['version']}" for name, figures in runs}))
    return (
        f"{saved['processor']}, {saved['cores']} cores, commit {commits}, {saved['date']}. Intervals hold 95 % of "
        f"2,000 resamples of the questions. Times stand where the load before was at most {_QUIET}. {versions}."
    )
