"""Public boards: the figures that others publish of the same sets, with their questions and 95 % intervals."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Any

from benchmarks.quality.metrics import wilson
from benchmarks.quality.report import caption
from benchmarks.tables import table

__all__ = ["claims", "markdown"]

_HEADER = ("board", "figure", "questions", "value", "95 % interval")
_SHOWN = {
    "locomo": ("LoCoMo, turns", ("recall@20", "recall@20 within 8,000 characters", "hit@20", "MRR")),
    "longmemeval": ("LongMemEval-S, sessions", ("recall_all@5", "recall_any@5")),
    "beam": ("BEAM 100K, abstention", ("abstention: ROC AUC", "abstention: ROC AUC, first hit")),
}
_SHARES = frozenset(("recall_all@5", "recall_any@5", "hit@20"))
# Questions of one fact of each history, and what PrecisionMemBench has.
_FACTS, _CASES, _TURNS = 100, 77, 12
# Of them, those in which something must be retrieved; and by the reports in its repository (aed5c2b) the best of nine
# systems that the authors of the set did not write.
_ACTIVE, _BEST_OTHER = 43, ("supermemory", 17)


def markdown(run: dict[str, Any]) -> str:
    """Table of the boards that were run, in Markdown."""
    rows = [row for of_board in (_means(run), _facts(run), _precision(run)) for row in of_board]
    return "\n\n".join([table(_HEADER, rows, left=("board", "figure")), f"{caption(run)}."])


def claims(run: dict[str, Any]) -> str:
    """Claim of the README: how often exactly what matters is returned, and nothing else."""
    figures = run["sets"]["precision"]["figures"]
    wire, typed = (figures[f"{name}, relevant"]["active passes"] for name in ("wire", "typed"))
    other, most = _BEST_OTHER
    text = (
        f"- **It leaves out the rest.** In PrecisionMemBench `relevant=True` returns exactly what matters in {wire} of "
        f"{_ACTIVE} cases, and in {typed} if memories have their fields. The best of nine systems that the set's "
        f"authors did not write, {other}, does in {most}. [Public boards](benchmarks/results/README.md#public-boards)"
    )
    return fill(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _means(run: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, (title, metrics) in _SHOWN.items():
        if (result := run["sets"].get(name)) is None:
            continue
        intervals = result.get("intervals", {})
        for metric in (metric for metric in metrics if metric in _SHARES or metric in intervals):
            value, count = result["figures"]["default"][metric], result["questions"]
            low, high = wilson(value, count) if metric in _SHARES else intervals[metric]
            yield title, metric, f"{count:,}", f"{value:.3f}", f"{low:.3f} to {high:.3f}"
            title = ""


def _facts(run: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    result = run["sets"].get("facts", {"figures": {"default": {}}})
    shares = {name: share for name, share in result["figures"]["default"].items() if name.endswith("current first")}
    for place, (name, share) in enumerate(shares.items()):
        low, high = wilson(share, _FACTS)
        title = "FactConsolidation" if place == 0 else ""
        yield title, name, str(_FACTS), f"{share:.3f}", f"{low:.3f} to {high:.3f}"


def _precision(run: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    title = "PrecisionMemBench"
    for adapter, figures in run["sets"].get("precision", {"figures": {}})["figures"].items():
        for name, count in (("active passes", _CASES), ("passes", _CASES), ("turns", _TURNS)):
            low, high = (round(bound * count) for bound in wilson(figures[name] / count, count))
            yield title, f"{adapter}: {name}", str(count), str(figures[name]), f"{low} to {high}"
            title = ""
