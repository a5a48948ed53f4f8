"""First and second indexes of small files, without an embedder and with one that costs nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.embedders import Free
from benchmarks.harness.case import Case, Context, Timing
from recallite import Workspace

__all__ = ["CASE"]


@contextmanager
def _setup(context: Context) -> Iterator[Path]:
    lines = islice(corpus.synthetic_lines(), 2 * context.records)
    for number, (one, other) in enumerate(zip(lines, lines, strict=True)):
        place = context.folder / "notes" / "memory" / f"topic-{number % 50}"
        place.mkdir(parents=True, exist_ok=True)
        text = f"---\ntitle: Note {number}\n---\n# Note {number}\n\n{one}\n\n## What else\n\n- {other}\n"
        (place / f"note-{number}.md").write_text(text, encoding="utf-8")
    yield context.folder / "notes"


def _tables(folder: Path, context: Context) -> Iterator[Timing]:
    def index(embedder: Any, expected: int) -> None:
        with Workspace(folder, embedder=embedder) as workspace:
            assert workspace.index().files_indexed == expected

    def first(embedder: Any) -> Callable[[int], None]:
        def timed(_: int) -> None:
            shutil.rmtree(folder / ".recallite", ignore_errors=True)
            index(embedder, context.records)

        return timed

    yield Timing("first index", {"no embedder": first("none"), "free embedder": first(Free())}, context.rounds, 0)
    first(Free())(0)
    yield Timing("second index, nothing changed", {"free embedder": lambda _: index(Free(), 0)}, context.rounds, 0)


CASE = Case(
    "documents_small",
    "how the time of an index grows with small files",
    _setup,
    _tables,
    records=(1000, 2000, 4000, 8000),
    rounds=3,
    unit="files",
)
