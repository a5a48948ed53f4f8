"""From a new process to the first answer."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.latency.newprocess import run

__all__ = ["measure"]

_IMPORTS, _RECALLS = 15, 5


def measure(large: Path, small: Path, question: str, vector: list[float]) -> dict[str, Any]:
    """Medians of new processes; JIT kernels come from their cache. `small` has 10,000 records."""
    bare = [run("nothing")["process_ms"] for _ in range(_RECALLS)]
    imports = [run("import") for _ in range(_IMPORTS)]
    cases: dict[str, Any] = {
        "import recallite": {
            "p50_ms": _median(imports, "import_ms"),
            "calls": _IMPORTS,
            "numpy_loaded": imports[0]["numpy_loaded"],
            "bare_python_process_ms": round(median(bare), 1),
        }
    }
    for size, path in (("10,000", small), ("all", large)):
        for what, arguments in (("text", {}), ("vector ready", {"vector": vector})):
            starts = [run("recall", {"path": str(path), "query": question, **arguments}) for _ in range(_RECALLS)]
            cases[f"new process to first recall, {size} records, {what}"] = {
                "p50_ms": _median(starts, "process_ms"),
                "import_ms": _median(starts, "import_ms"),
                "open_ms": _median(starts, "open_ms"),
                "first_recall_ms": _median(starts, "recall_ms"),
                "stages_ms": {
                    name: round(median(one["stages"][name] for one in starts), 1) for name in starts[0]["stages"]
                },
                "calls": _RECALLS,
            }
    return cases


def _median(results: list[dict[str, Any]], name: str) -> float:
    return round(median(float(result[name]) for result in results), 1)
