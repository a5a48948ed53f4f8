"""Thousands of small files: does the time of an index grow with their number, and with nothing else?

Files have a title, two sections and about 500 characters. Sizes and embedders take turns, in several rounds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks import corpus
from benchmarks.documents.embedders import Free
from recallite import Workspace

__all__ = ["evaluate"]

_ROUNDS = 3


def evaluate(sizes: Sequence[int], scratch: Path, log: Callable[[str], None]) -> dict[str, Any]:
    """Median seconds of a first index, by the clock and of the processor, and of a second."""
    for size in sizes:
        _write(scratch / f"{size}", size)
    embedders: dict[str, Any] = {"none": "none", "free": Free()}
    times: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for turn in range(_ROUNDS):
        for size in sizes:
            for name, embedder in embedders.items():
                times.setdefault((name, size), []).append(_timed(scratch / f"{size}", embedder, size))
                log(f"round {turn + 1} of {_ROUNDS}: {size:,} files, embedder {name}: {times[name, size][-1]}")
    return {name: {str(size): _figures(times[name, size], size) for size in sizes} for name in embedders}


def _figures(times: Sequence[tuple[float, float, float]], size: int) -> dict[str, float]:
    index_s, processor_s, second_s = (median(column) for column in zip(*times, strict=True))
    return {
        "index_s": round(index_s, 3),
        "processor_s": round(processor_s, 3),
        "files_per_second": round(size / index_s),
        "second_s": round(second_s, 3),
    }


def _timed(folder: Path, embedder: Any, size: int) -> tuple[float, float, float]:
    with Workspace(folder, embedder=embedder) as workspace:
        began, processor = perf_counter(), process_time()
        result = workspace.index()
        first, processor = perf_counter() - began, process_time() - processor
        assert result.files_indexed == size
        began = perf_counter()
        assert workspace.index().files_indexed == 0
        second = perf_counter() - began
    shutil.rmtree(folder / ".recallite")
    return first, processor, second


def _write(folder: Path, count: int) -> None:
    lines = islice(corpus.synthetic_lines(), 2 * count)
    for number, (one, other) in enumerate(zip(lines, lines, strict=True)):
        place = folder / "memory" / f"topic-{number % 50}"
        place.mkdir(parents=True, exist_ok=True)
        text = f"---\ntitle: Note {number}\n---\n# Note {number}\n\n{one}\n\n## What else\n\n- {other}\n"
        (place / f"note-{number}.md").write_text(text, encoding="utf-8")
