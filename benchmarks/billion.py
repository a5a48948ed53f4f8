"""A billion records on paper: bytes, machines and cost, computed from saved results.

`scaling` gives the bytes of a record, and the processor time of a recall as a + b * records through its two largest
stores. `embedding` gives the processor time of a text, `write_cost` the rate of one process that writes. All else is
multiplication: no size above a million is measured.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import report
from benchmarks.tables import table

__all__ = ["DOLLARS_A_CORE_HOUR", "markdown", "recall_cost"]

# Assumed: about the price of a core of an on-demand machine with 4 GB for each core.
DOLLARS_A_CORE_HOUR = 0.04
_BILLION = 1_000_000_000
_MACHINE_CORES, _MACHINE_GB = 16, 128
_SIZES = (10_000, 1_000_000, 10_000_000, 100_000_000, _BILLION)
_MEASURED = 1_000_000
_SECONDS_AN_HOUR = 3600


def recall_cost(scaling: dict[str, Any]) -> tuple[float, float]:
    """Core seconds of a recall among n records, as `fixed + each * n`: fixed, each."""
    small, large = (_core_seconds(scaling, size) for size in (100_000, _MEASURED))
    per_record = (large - small) / 900_000
    return small - per_record * 100_000, per_record


def _core_seconds(scaling: dict[str, Any], records: int) -> float:
    rate: float = scaling["results"][str(records)]["hybrid"]["queries_per_second"]
    return float(scaling["cores"] / rate)


def markdown(scaling: dict[str, Any], embedding: dict[str, Any], write_cost: dict[str, Any]) -> str:
    """Two tables: what a billion records take, and what a million recalls cost by how many records each looks at."""
    million, (fixed, per_record) = scaling["results"][str(_MEASURED)], recall_cost(scaling)
    (texts,) = next(iter(embedding["runs"].values()))["tables"]
    text_s, query_s = (texts["rows"][name]["processor ms a text"] / 1000 for name in ("chat turns", "one query"))
    embed_hours = _BILLION * text_s / _SECONDS_AN_HOUR
    memory_gb = million["open"]["from the store"]["anonymous_mb_above"]
    machines = f"{memory_gb:,.0f} GB: {-(-memory_gb // _MACHINE_GB):.0f} machines of {_MACHINE_GB} GB"
    embedded = f"{embed_hours:,.0f} core hours, {embed_hours * DOLLARS_A_CORE_HOUR:,.0f} $"
    written = report.rows(write_cost, "many at once, detection")
    ways = {"with": "compared afterwards", "without": "never compared"}
    rates = {f"one writer of a SQLite file, {name}": written[way] for way, name in ways.items()}
    rows = [
        ("bytes on disk", f"{million['disk_mb']:,.0f} a record", f"{million['disk_mb'] / 1000:.1f} TB"),
        ("index in memory, without token codes", f"{memory_gb:,.0f} a record", machines),
        ("embedding, texts of 33 tokens", f"{text_s * 1000:.1f} ms of a core", embedded),
        *(
            (name, f"{row['records a second']:,} a second", f"{_BILLION / row['records a second'] / 86_400:,.1f} days")
            for name, row in rates.items()
        ),
    ]
    recall_rows = []
    for size in _SIZES:
        seconds = _core_seconds(scaling, size) if size <= _MEASURED else fixed + per_record * size
        hours, whole = (1e6 * spent / _SECONDS_AN_HOUR for spent in (seconds, seconds + query_s))
        cost = f"{whole * DOLLARS_A_CORE_HOUR:,.2f}", f"{whole / _MACHINE_CORES:,.1f}"
        recall_rows.append((f"{size:,}", "yes" if size <= _MEASURED else "no", f"{hours:,.1f}", f"{whole:,.1f}", *cost))
    header = (
        "records that a recall looks at", "measured", "core hours a million recalls", "with embedding the questions",
        "$", f"hours of a machine of {_MACHINE_CORES} cores",
    )  # fmt: skip
    first = table(("a billion records", "measured", "computed"), rows, left=("a billion records",))
    commit = write_cost["runs"][max(write_cost["runs"], key=int)]["commit"]
    return (
        f"{first}\n\n{table(header, recall_rows)}\n\n"
        f"Measured on {scaling['cores']} cores, {scaling['processor']}, commits {scaling['commit']} and {commit}. "
        f"A core hour is assumed to cost {DOLLARS_A_CORE_HOUR} $."
    )
