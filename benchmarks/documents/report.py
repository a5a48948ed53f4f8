"""The tables of a run in Markdown."""

from __future__ import annotations

from typing import Any

from benchmarks.tables import milliseconds, table

__all__ = ["markdown"]


def markdown(saved: dict[str, Any]) -> str:
    """What was measured, and with what."""
    parts = {"index": _index, "small": _small, "search": _search, "pdf": _pdf}
    shown = [f"{show(saved[part])}\n\n{_made_with(saved[part])}" for part, show in parts.items() if part in saved]
    return "\n\n".join(shown) or "Nothing is saved."


def _index(run: dict[str, Any]) -> str:
    first, later = run["first"], run["later"]
    lines = [
        (f"first index of {first['files']:,} files, {first['chunks']:,} chunks", f"{first['index_s']:.1f} s"),
        ("the same chunks embedded alone", f"{first['alone_s']:.1f} s"),
        ("first index / embedding alone", f"{first['ratio']:.3f} (median of parts {first['ratio_median']:.3f})"),
        ("the same of processor time", f"{first['ratio_cpu']:.3f}"),
        ("of the index, outside of the embedder", f"{first['outside_embedder_s']:.1f} s"),
        ("second index, nothing changed", f"{milliseconds(later['second_s'] * 1e3)} ms"),
        ("later ones", f"{milliseconds(later['later_s'] * 1e3)} ms"),
        ("index after one file has changed", f"{milliseconds(later['one_changed_s'] * 1e3)} ms"),
        (
            f"chunks embedded for {later['changed_files']} changed files, of {_all(later)} in them",
            f"{later['embedded']}",
        ),
    ]
    return table(("", ""), lines, left=("",))


def _all(later: dict[str, Any]) -> int:
    return int(later["chunks_kept"] + later["chunks_created"])


def _small(run: dict[str, Any]) -> str:
    header = ("files", *(f"{name}: s (files/s), processor s, again s" for name in run["indexed"]))
    sizes = next(iter(run["indexed"].values()))
    lines = [(f"{int(size):,}", *(_cell(figures[size]) for figures in run["indexed"].values())) for size in sizes]
    return table(header, lines)


def _cell(figures: dict[str, float]) -> str:
    return (
        f"{figures['index_s']:.2f} ({figures['files_per_second']:,}), {figures['processor_s']:.2f}, "
        f"{figures['second_s']:.3f}"
    )


def _search(run: dict[str, Any]) -> str:
    lines = [
        (name, *(milliseconds(figures[key]) for key in ("p50_ms", "p95_ms")))
        for name, figures in run["sync_on_search"].items()
    ]
    return (
        f"{run['files']:,} files, {run['chunks']:,} chunks.\n\n{table(('sync on search', 'p50 ms', 'p95 ms'), lines)}"
    )


def _pdf(run: dict[str, Any]) -> str:
    lines = [
        (name, f"{row['pages']}", f"{row['characters']:,}", milliseconds(row["ms"]))
        for name, row in run["documents"].items()
    ]
    lines += [(name, "", "", reason) for name, reason in run["refused"].items()]
    return (
        f"{table(('file', 'pages', 'characters', 'ms'), lines, left=('file',))}\n\n"
        f"{run['pages_per_second']:,} pages/s; the first document, with the start of its process, {run['first_ms']} ms."
    )


def _made_with(run: dict[str, Any]) -> str:
    return f"{run['processor']}, {run['cores']} cores, Python {run['python']}, commit {run['commit']}, {run['date']}."
