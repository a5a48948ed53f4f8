"""A billion records on paper: bytes, machines and cost, computed from the saved results of other benchmarks.

Of `scaling` the stores of 100,000 and a million records give the bytes of a record, and the processor time of a recall
as a + b * records: what does not depend on the size, and the scan, which grows with it. `embedding` gives the processor
time of a text, `write_cost` what one process writes. All else is multiplication: no size above a million is measured.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.tables import table

__all__ = ["DOLLARS_A_CORE_HOUR", "RecallCost", "markdown"]

# Assumed: about what clouds ask for a core of an on-demand machine with 4 GB for each core.
DOLLARS_A_CORE_HOUR = 0.04
_BILLION = 1_000_000_000
_MACHINE_CORES, _MACHINE_GB = 16, 128
_SIZES = (10_000, 1_000_000, 10_000_000, 100_000_000, _BILLION)
_MEASURED = 1_000_000
_SECONDS_AN_HOUR = 3600


class RecallCost(NamedTuple):
    """Core seconds of a recall among n records: `fixed + each * n`."""

    fixed: float
    each: float

    @classmethod
    def of(cls, scaling: dict[str, Any]) -> RecallCost:
        """The line through the two largest stores that were measured."""
        small, large = (scaling["cores"] / _rate(scaling, size) for size in ("100000", "1000000"))
        each = (large - small) / 900_000
        return cls(small - each * 100_000, each)

    def seconds(self, records: int) -> float:
        """Core seconds of a recall among so many."""
        return self.fixed + self.each * records


def markdown(scaling: dict[str, Any], embedding: dict[str, Any], write_cost: dict[str, Any]) -> str:
    """The two tables: what a billion records take, and what a million recalls cost by how many each looks at."""
    million = scaling["results"]["1000000"]
    text_s = embedding["cases"]["chat turns"]["processor_ms_per_text"] / 1000
    query_s = embedding["cases"]["one query"]["processor_ms_per_text"] / 1000
    embed_hours = _BILLION * text_s / _SECONDS_AN_HOUR
    memory_gb = million["open"]["from the store"]["anonymous_mb_above"]
    written = write_cost["many"]
    rows = [
        ("bytes on disk", f"{million['disk_mb']:,.0f} a record", f"{million['disk_mb'] / 1000:.1f} TB"),
        (
            "index in memory, without token codes",
            f"{memory_gb:,.0f} a record",
            f"{memory_gb:,.0f} GB: {-(-memory_gb // _MACHINE_GB):.0f} machines of {_MACHINE_GB} GB",
        ),
        (
            "embedding, texts of 33 tokens",
            f"{text_s * 1000:.1f} ms of a core",
            f"{embed_hours:,.0f} core hours, {embed_hours * DOLLARS_A_CORE_HOUR:,.0f} $",
        ),
        *(
            (
                f"one writer of a SQLite file, {way} detection",
                f"{rate:,} a second",
                f"{_BILLION / rate / 86_400:,.1f} days",
            )
            for way, rate in written.items()
        ),
    ]
    cost = RecallCost.of(scaling)
    asked = []
    for size in _SIZES:
        seconds = scaling["cores"] / _rate(scaling, str(size)) if size <= _MEASURED else cost.seconds(size)
        hours, whole = (1e6 * each / _SECONDS_AN_HOUR for each in (seconds, seconds + query_s))
        told = f"{hours:,.1f}", f"{whole:,.1f}", f"{whole * DOLLARS_A_CORE_HOUR:,.2f}", f"{whole / _MACHINE_CORES:,.1f}"
        asked.append((f"{size:,}", "yes" if size <= _MEASURED else "no", *told))
    first = table(("a billion records", "measured", "computed"), rows, left=("a billion records",))
    header = (
        "records that a recall looks at", "measured", "core hours a million recalls", "with embedding the questions",
        "$", f"hours of a machine of {_MACHINE_CORES} cores",
    )  # fmt: skip
    return (
        f"{first}\n\n{table(header, asked)}\n\n"
        f"Measured on {scaling['cores']} cores, {scaling['processor']}, commits {scaling['commit']} and "
        f"{write_cost['commit']}. A core hour is assumed to cost {DOLLARS_A_CORE_HOUR} $."
    )


def _rate(scaling: dict[str, Any], size: str) -> float:
    rate: float = scaling["results"][size]["hybrid"]["queries_per_second"]
    return rate
