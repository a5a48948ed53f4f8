"""The tables of a run in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

from benchmarks.dataset import FILTERS
from benchmarks.peers.contenders import CONTENDERS, OURS
from benchmarks.tables import megabytes, milliseconds, table

__all__ = ["claims", "markdown", "ranked"]

_Row = tuple[str, dict[str, Any]]
_LEFT = ("contender", "a write survives", "update, delete", "filters", "processes")


def ranked(contenders: dict[str, Any], figure: str) -> list[_Row]:
    """(contender, its result) of all that have a figure, the quickest first."""
    rows = [(name, result) for name, result in contenders.items() if figure in result.get("figures", {})]
    return sorted(rows, key=lambda row: row[1]["figures"][figure]["p50_ms"])


def markdown(saved: dict[str, Any]) -> str:
    """Tables of hybrids, vectors and costs at each size, who has no figures and why, the promises, and the caption."""
    results: dict[str, dict[str, Any]] = saved.get("results", {})
    parts: list[str] = []
    for records in sorted(results, key=int):
        contenders, size = results[records]["contenders"], f"{int(records):,} records"
        parts += [f"{size}, hybrid recall, query vector ready:", _table(_hybrids(contenders))]
        parts += [f"{size}, vectors alone:", _table(_vectors(contenders))]
        parts += [f"{size}, costs:", _table(_costs(contenders))]
        failed = [f"- {name}: {result['failed']}" for name, result in contenders.items() if "failed" in result]
        parts += ["\n".join(failed)] if failed else []
    parts += ["What each promises:", _table(_promises())]
    return "\n\n".join([*parts, _caption(saved)])


def claims(saved: dict[str, Any]) -> str:
    """The claim of the README: hybrid recall beside the others, the quickest first, whoever it is."""
    records, result = max(saved["results"].items(), key=lambda item: int(item[0]))
    rows = ranked(result["contenders"], "hybrid")
    others = [(name, row) for name, row in rows if not name.startswith(OURS)]
    figures = dict(rows)[OURS]["figures"]
    faster = sum(row["figures"]["hybrid"]["p50_ms"] < figures["hybrid"]["p50_ms"] for _, row in others)
    listed = ", ".join(f"{name} {milliseconds(row['figures']['hybrid']['p50_ms'])}" for name, row in others)
    insert = milliseconds(dict(rows)[OURS]["insert"]["p50_ms"])
    text = (
        f"- **It is compared with the fastest,** and {faster} of {len(others)} are faster. With the query vector "
        f"ready, a hybrid recall among {int(records):,} memories takes {_shown(figures['hybrid'])} ms, "
        f"{figures['batch']['queries_per_second']:,.0f} a second in batches, and a write that survives power loss "
        f"{insert} ms. Others at a recall@10 of .99, in ms, with what each promises: {listed}. [Embedded "
        "libraries](docs/benchmarks.md#embedded-libraries)"
    )
    return fill(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _table(lines: tuple[Sequence[str], Sequence[Sequence[str]]]) -> str:
    header, rows = lines
    return table(header, rows, _LEFT)


def _hybrids(contenders: dict[str, Any]) -> tuple[Sequence[str], list[Sequence[str]]]:
    header = (
        "contender", "p50 ms (rounds)", "p99 ms", "CPU ms", "times ours", "batch, queries/s", *FILTERS,
        "p50 ms after 20 inserts",
    )  # fmt: skip
    rows: list[Sequence[str]] = []
    ours = contenders.get(OURS, {}).get("figures", {}).get("hybrid", {}).get("p50_ms")
    for name, result in ranked(contenders, "hybrid"):
        figures, hybrid = result["figures"], result["figures"]["hybrid"]
        rows.append(
            (
                _named(name),
                _shown(hybrid),
                milliseconds(hybrid["p99_ms"]),
                milliseconds(hybrid["cpu_ms"]),
                "" if ours is None else milliseconds(hybrid["p50_ms"] / ours),
                f"{figures['batch']['queries_per_second']:,.0f}",
                *(milliseconds(figures[f"hybrid, {filter}"]["p50_ms"]) for filter in FILTERS),
                milliseconds(result["after inserts"]["p50_ms"]) if "after inserts" in result else "",
            )
        )
    return header, rows


def _vectors(contenders: dict[str, Any]) -> tuple[Sequence[str], list[Sequence[str]]]:
    header = ("contender", ".95: p50 ms (rounds)", "recall@10", ".99: p50 ms (rounds)", "recall@10", *FILTERS)
    rows: list[Sequence[str]] = []
    for name, result in ranked(contenders, "vector .99"):
        figures = result["figures"]
        at = [figures[f"vector {target}"] for target in (".95", ".99")]
        filtered = [figures[f"vector, {filter}"] for filter in FILTERS]
        cells = [cell for one in at for cell in (_shown(one), f"{one['recall@10']:.3f}")]
        within = (f"{milliseconds(one['p50_ms'])} ({one['recall@10']:.3f})" for one in filtered)
        rows.append((_named(name), *cells, *within))
    return header, rows


def _costs(contenders: dict[str, Any]) -> tuple[Sequence[str], list[Sequence[str]]]:
    header = (
        "contender", "build s", "build CPU s", "insert p50 ms", "open s", "anonymous MB added", "peak RSS MB", "disk MB"
    )  # fmt: skip
    rows = [
        (
            _named(name),
            f"{result['build_s']:.1f}",
            f"{result['build_cpu_s']:.1f}",
            milliseconds(result["insert"]["p50_ms"]) if "insert" in result else "",
            f"{result['open_s']:.2f}",
            megabytes(result["added_mb"]),
            megabytes(result["weight"]["peak_rss_mb"]),
            megabytes(result["disk_mb"]),
        )
        for name, result in sorted(contenders.items(), key=lambda row: row[1].get("build_s", 0))
        if "figures" in result
    ]
    return header, rows


def _promises() -> tuple[Sequence[str], list[Sequence[str]]]:
    rows = [
        (_named(name), entry.durable, entry.changes, entry.filters, entry.processes)
        for name, entry in CONTENDERS.items()
        if not name.startswith(f"{OURS},")
    ]
    return _LEFT, rows


def _named(name: str) -> str:
    return f"**{name}**" if name.startswith(OURS) else name


def _shown(figures: dict[str, Any]) -> str:
    return f"{milliseconds(figures['p50_ms'])} ({_range(figures)})"


def _range(figures: dict[str, Any]) -> str:
    return f"{milliseconds(figures['low_ms'])} to {milliseconds(figures['high_ms'])}"


def _caption(saved: dict[str, Any]) -> str:
    return f"{'; '.join(_sizes(saved))}. {', '.join(sorted(_versions(saved)))}."


def _sizes(saved: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{saved['processor']}, {saved['cores']} cores, Python {saved['python']}, load {saved['load']} before, "
        f"commit {saved['commit']}, {saved['date']}"
    )
    for records, result in saved.get("results", {}).items():
        calls = max(
            (one["calls"] for row in result["contenders"].values() for one in row.get("figures", {}).values()
             if "calls" in one), default=0,
        )  # fmt: skip
        yield f"{int(records):,} records, {result['rounds']} rounds, at most {calls:,} questions a figure"


def _versions(saved: dict[str, Any]) -> set[str]:
    return {
        f"{distribution} {version}"
        for result in saved.get("results", {}).values()
        for row in result["contenders"].values()
        for distribution, version in row.get("versions", {}).items()
    }
