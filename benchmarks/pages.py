"""python -m benchmarks.pages: write the saved results into results/README.md and the pages that quote them.

A table stands between `<!-- results: NAME -->` and `<!-- end -->`; NAME is a key of `TABLES`, or a case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

from benchmarks import documents, saving
from benchmarks.harness import report as cases
from benchmarks.memory_systems import report as memory_systems
from benchmarks.peers import report as peers
from benchmarks.quality import boards, workspace
from benchmarks.quality import report as quality
from benchmarks.scaling import report as scaling
from tests.attacks import __main__ as attacks
from tests.system.integrations import results as integrations

__all__ = ["PAGES", "TABLES", "filled", "main"]

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "benchmarks/results/README.md",
        "docs/benchmarks.md",
        "docs/resilience.md",
        "docs/integrations/index.md",
    )
]
_REGION = re.compile(r"(<!-- results: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def _saved(name: str) -> dict[str, Any]:
    if not (run := saving.read(saving.RESULTS / f"{name}.json")):
        raise saving.NotMeasured(name)
    return run


def _excerpt(text: str, *columns: str, below: str = "") -> str:
    """These columns of the first table of a text, or of the first below a line, and its rows without an empty cell."""
    lines = text[text.index(below) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = [line[2:-2].split(" | ") for line in takewhile(bool, lines[start:])]
    chosen = [[row[rows[0].index(column)] for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in chosen if all(row))


TABLES: dict[str, Callable[[], str]] = {
    "quality": lambda: quality.markdown(_saved("quality")),
    "boards": lambda: boards.markdown(_saved("quality")),
    "boards claims": lambda: boards.claims(_saved("quality")),
    "truth": lambda: quality.truth_markdown(_saved("quality")),
    "quality instant": lambda: quality.markdown(_saved("quality_instant")),
    "scaling": lambda: scaling.markdown(_saved("scaling")),
    "large": lambda: scaling.markdown(_saved("large")),
    "reliability": lambda: quality.reliability_markdown(_saved("quality")),
    "documents": lambda: documents.markdown(_saved("documents")),
    "workspace": lambda: workspace.markdown(_saved("workspace_quality")),
    "peers": lambda: peers.markdown(_saved("peers")),
    "peers claims": lambda: peers.claims(_saved("peers")),
    "memory systems": lambda: memory_systems.markdown(_saved("memory_systems")),
    "memory systems claims": lambda: memory_systems.claims(_saved("memory_systems")),
    "quality excerpt": lambda: _excerpt(
        quality.markdown(_saved("quality")), "set", "questions", "metric", "vector", "keyword", "RRF", "default"
    ),
    "memory systems excerpt": lambda: _excerpt(
        memory_systems.markdown(_saved("memory_systems")), "system", "embedding model", "recall@20", "hit@20", "MRR"
    ),
    "peers excerpt": lambda: _excerpt(
        peers.markdown(_saved("peers")),
        "contender",
        "p50 ms (rounds)",
        "batch, queries/s",
        "1 %",
        below="100,000 records",
    ),
    "integrations": lambda: integrations.markdown(_saved("integrations")),
    "integrations left out": lambda: integrations.left_out(_saved("integrations")),
    "resilience": lambda: attacks.markdown(_saved("resilience")),
    "resilience excerpt": lambda: _excerpt(
        attacks.markdown(_saved("resilience")),
        "attack",
        "tries",
        "lost",
        "half done",
        "leak",
        "crash",
        "untyped",
        "wrong",
        "hung",
        "date, commit",
    ),
}


def filled(text: str) -> str:
    """A page with every table as the saved results have it."""
    return _REGION.sub(lambda region: f"{region[1]}\n{_shown(region[2])}\n\n{region[3]}", text)


def _shown(name: str) -> str:
    """The table of that name, or a line if its results are not saved yet, which for a claim is empty."""
    try:
        return TABLES[name]() if name in TABLES else cases.markdown(_saved(name))
    except saving.NotMeasured:
        return "" if name.endswith("claims") else "Not measured yet."


def main() -> None:
    """Write the pages."""
    for page in PAGES:
        page.write_text(filled(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
