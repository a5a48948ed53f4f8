"""Real files: the first index beside embedding its chunks alone, an index of nothing new, and of one changed file.

The files are indexed in parts, each in a folder of its own. Processor time, of all threads, stands beside the clock's,
which other processes disturb. For each part the index and the embedding of the very same
chunks, in one call, take turns in one process, and which goes first changes from part to part: what else the machine
does meets both. The embedder has run before.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.documents.embedders import Free, Recorded
from recallite import Workspace

__all__ = ["first_index", "later_indexes"]

_PARTS = 20
_AGAIN = 20
_CHANGED = 10
_ADDED = "\n\nA line that stands in no other file.\n"


def first_index(files: list[Path], scratch: Path, embedder: Any, log: Callable[[str], None]) -> dict[str, Any]:
    """Seconds of both, part by part, and their ratio."""
    embedder.embed_documents(["A sentence to start with."] * 16, [None] * 16)
    parts = []
    for number in range(_PARTS):
        folder = copied(files[number::_PARTS], scratch / f"part-{number}")
        asked = Recorded(Free())
        _indexed(folder, asked)
        measured = Recorded(embedder)
        for turn in range(2):
            if turn == number % 2:
                alone_s, alone_cpu_s = _timed(lambda asked=asked: embedder.embed_documents(asked.texts, asked.contexts))
            else:
                index_s, index_cpu_s = _indexed(folder, measured)
        assert measured.texts == asked.texts
        parts.append({
            "files": len(files[number::_PARTS]), "chunks": len(asked.texts), "index_s": index_s, "alone_s": alone_s,
            "index_cpu_s": index_cpu_s, "alone_cpu_s": alone_cpu_s, "outside_embedder_s": index_s - measured.seconds,
        })  # fmt: skip
        log(f"part {number + 1} of {_PARTS}: {parts[-1]}")
    total = {name: sum(part[name] for part in parts) for name in parts[0]}
    return {
        **_rounded(total),
        "ratio": round(total["index_s"] / total["alone_s"], 3),
        "ratio_cpu": round(total["index_cpu_s"] / total["alone_cpu_s"], 3),
        "ratio_median": round(median(part["index_s"] / part["alone_s"] for part in parts), 3),
        "parts": [_rounded(part) for part in parts],
    }


def _rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) for name, value in figures.items()}


def later_indexes(files: list[Path], scratch: Path, embedder: CachedEmbedder) -> dict[str, Any]:
    """Indexes of all files: nothing changed, and then one line added to each of ten files in turn."""
    folder = copied(files, scratch / "whole")
    with Workspace(folder, embedder=embedder) as workspace:
        first = workspace.index()
        times = []
        for _ in range(_AGAIN + 1):
            began = perf_counter()
            assert workspace.index().files_indexed == 0
            times.append(perf_counter() - began)
        changes = []
        for file in sorted(folder.glob("*.md"))[:: max(1, len(files) // _CHANGED)][:_CHANGED]:
            file.write_bytes(file.read_bytes() + _ADDED.encode())
            began = perf_counter()
            result = workspace.index()
            changes.append((result, perf_counter() - began))
    return {
        "files": first.files_indexed,
        "chunks": first.chunks_created,
        "second_s": round(times[0], 4),
        "later_s": round(median(times[1:]), 4),
        "changed_files": sum(result.files_indexed for result, _ in changes),
        "chunks_kept": sum(result.chunks_kept for result, _ in changes),
        "chunks_created": sum(result.chunks_created for result, _ in changes),
        "embedded": sum(result.embeddings_computed for result, _ in changes),
        "one_changed_s": round(median(seconds for _, seconds in changes), 4),
    }


def copied(files: list[Path], folder: Path) -> Path:
    """A folder with copies of files."""
    folder.mkdir(parents=True)
    for file in files:
        shutil.copy2(file, folder / file.name)
    return folder


def _indexed(folder: Path, embedder: Any) -> tuple[float, float]:
    """Seconds of a first index, by the clock and of the processor; what it made is removed."""
    with Workspace(folder, embedder=embedder) as workspace:
        times = _timed(workspace.index)
        status = workspace.status()
    assert status.pending == 0
    assert not status.problems
    shutil.rmtree(folder / ".recallite")
    return times


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    began, processor = perf_counter(), process_time()
    call()
    return perf_counter() - began, process_time() - processor
