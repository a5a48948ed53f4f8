"""The tables of a run in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.peers.contenders import CONTENDERS
from benchmarks.tables import megabytes, milliseconds, table

__all__ = ["KINDS", "in_short", "is_settled", "markdown", "rows"]

# What a row is compared in: everything that is hybrid, everything by vector alone, everything that embeds the query.
KINDS = {"hybrid": "hybrid, query vector ready", "vector": "vector only", "text": "from the text of the query"}
_HEADER = (
    "contender", "keeps", "p50 ms", "p95 ms", "p99 ms", "queries", "times ours", "queries/s", "recall@10", "ef",
    "build s", "open s", "anonymous MB", "peak RSS MB", "disk MB",
)  # fmt: skip
_FILTER_HEADER = ("contender", "records", "no filter", "10 %", "1 %", "0.1 %")
_LEFT = ("contender", "keeps")
_OURS = "recallite"


def is_settled(result: dict[str, Any] | None) -> bool:
    """Whether a saved result need not be tried again."""
    return result is not None and ("modes" in result or "did_not_finish" in result)


def in_short(result: dict[str, Any]) -> str:
    """A result in a line."""
    if "modes" not in result:
        return _why_not(result)
    return ", ".join(f"{mode} p50 {milliseconds(figures['p50_ms'])} ms" for mode, figures in result["modes"].items())


def rows(saved: dict[str, Any], kind: str) -> Iterator[tuple[int, str, dict[str, Any], dict[str, Any]]]:
    """(records, contender, its result, its figures in this mode), the quickest of a size first."""
    for records, results in sorted(saved.get("results", {}).items(), key=lambda item: int(item[0])):
        results_of_kind = [(name, result) for name, result in results.items() if kind in result.get("modes", {})]
        for name, result in sorted(results_of_kind, key=lambda row: row[1]["modes"][kind]["p50_ms"]):
            yield int(records), name, result, result["modes"][kind]


def markdown(saved: dict[str, Any]) -> str:
    """A table a size and kind with who has no figures and why, one of filters, and what it was measured with."""
    results: dict[str, dict[str, Any]] = saved.get("results", {})
    if not results:
        return "Nothing is saved."
    parts: list[str] = []
    for records in sorted(results, key=int):
        for kind, title in KINDS.items():
            lines = [row for size, *row in rows(saved, kind) if size == int(records)]
            if lines:
                parts += [f"{int(records):,} records, {title}:", _main_table(lines, kind)]
        absent = [f"- {name}: {_why_not(result)}" for name, result in results[records].items() if "modes" not in result]
        if absent:
            parts.append("\n".join(absent))
    if filters := list(_filter_lines(saved)):
        parts += ["Filters, vector only, p50 ms and recall@10:", table(_FILTER_HEADER, filters, _LEFT)]
    return "\n\n".join([*parts, _caption(saved)])


def _why_not(result: dict[str, Any]) -> str:
    if "not_installed" in result:
        return f"not installed: {', '.join(result['not_installed'])}"
    if "did_not_finish" in result:
        built = f", built in {result['build_s']:.0f} s" if "build_s" in result else ""
        return f"did not finish in {result['limit_s']:.0f} s{built}"
    if (smaller := result.get("not_tried")) is not None:
        return (
            f"not tried within {result['limit_s']:.0f} s: {smaller['records']:,} records took "
            f"{smaller['build_s']:.0f} s to build"
        )
    return f"failed: {result['failed']}"


def _main_table(lines: Sequence[Sequence[Any]], kind: str) -> str:
    ours = next((figures["p50_ms"] for name, _, figures in lines if name == _OURS), None)
    shown = []
    for name, result, figures in lines:
        # A hybrid's recall@10 is that of its vector stage.
        vector = result["modes"].get("vector", {})
        shown.append(
            (
                f"**{name}**" if name.startswith(_OURS) else name,
                CONTENDERS[name].keeps,
                *(milliseconds(figures[f"{percentile}_ms"]) for percentile in ("p50", "p95", "p99")),
                f"{figures['calls']:,}",
                "" if ours is None else milliseconds(figures["p50_ms"] / ours),
                f"{figures['queries_per_second']:,.0f}{'' if figures['batch'] else ' (one by one)'}",
                "" if kind == "text" else _recall(vector),
                "" if "ef" not in vector else f"{vector['ef']}{'' if vector['reaches_target'] else ', not enough'}",
                f"{result['build_s']:,.1f}",
                f"{result['open_s']:.2f}",
                megabytes(result["anonymous_mb"]),
                megabytes(result["peak_rss_mb"]),
                megabytes(result["disk_mb"]),
            )
        )
    return table(_HEADER, shown, _LEFT)


def _filter_lines(saved: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for records, name, _, figures in rows(saved, "vector"):
        if "filters" in figures:
            cells = (figures, *figures["filters"].values())
            shown = (f"{milliseconds(cell['p50_ms'])} ({cell['recall@10']:.3f})" for cell in cells)
            yield f"**{name}**" if name == _OURS else name, f"{records:,}", *shown


def _recall(vector: dict[str, Any]) -> str:
    if vector.get("equals_exact"):
        return "exact"
    return f"{vector['recall@10']:.4f}{', not exact' if 'equals_exact' in vector else ''}"


def _caption(saved: dict[str, Any]) -> str:
    versions = {
        f"{distribution} {version}"
        for results in saved["results"].values()
        for result in results.values()
        for distribution, version in result.get("versions", {}).items()
    }
    return (
        f"{saved['processor']}, {saved['cores']} cores, Python {saved['python']}, commit {saved['commit']}, "
        f"{saved['date']}. {', '.join(sorted(versions))}."
    )
