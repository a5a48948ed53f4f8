"""First and later indexes of a workspace of real Markdown files.

The files are indexed in parts, each in a folder of its own. The index of a part and the embedding of its chunks, in one
call, take turns; which one goes first changes from part to part. `--data` holds `markdown*.tar.gz`.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.embedders import Free, Recorded
from benchmarks.harness.case import Case, Context, Figures
from recallite import Workspace
from recallite.embedding import load

__all__ = ["CASE", "copied", "markdown_files"]

_AGAIN, _CHANGED = 20, 10
_ADDED = "\n\nA line that stands in no other file.\n"


@contextmanager
def _setup(context: Context) -> Iterator[list[Path]]:
    yield markdown_files(context.need("data"), context.folder)[: context.records]


def _tables(files: list[Path], context: Context) -> Iterator[Figures]:
    embedder: Any = load(context.embedder)
    embedder.embed_documents(["A sentence to start with."] * 16, [None] * 16)
    parts: list[dict[str, float]] = []
    for number in range(context.rounds):
        parts.append(_part(files[number :: context.rounds], context.folder / f"part-{number}", embedder, number))
        context.log(f"part {number + 1} of {context.rounds}: {parts[-1]}")
    total = {name: sum(part[name] for part in parts) for name in parts[0]}
    rows: dict[str, dict[str, Any]] = {
        "first index": {"seconds": total["index_s"], "processor s": total["index_cpu_s"]},
        "of it, outside of the embedder": {"seconds": total["index_s"] - total["embedder_s"]},
        "the same chunks embedded alone": {"seconds": total["alone_s"], "processor s": total["alone_cpu_s"]},
        "first index / embedding alone": {
            "ratio": total["index_s"] / total["alone_s"],
            "processor ratio": total["index_cpu_s"] / total["alone_cpu_s"],
            "median of parts": median(part["index_s"] / part["alone_s"] for part in parts),
        },
    }
    yield Figures(f"{len(files):,} files, {total['chunks']:,.0f} chunks", rows)
    yield Figures("later indexes", _later(files, context))


def _part(files: list[Path], folder: Path, embedder: Any, number: int) -> dict[str, float]:
    copied(files, folder)
    recorded, measured = Recorded(Free()), Recorded(embedder)
    _indexed(folder, recorded)
    for turn in range(2):
        if turn == number % 2:
            alone_s, alone_cpu_s = _timed(lambda: embedder.embed_documents(recorded.texts, recorded.contexts))
        else:
            index_s, index_cpu_s = _indexed(folder, measured)
    assert measured.texts == recorded.texts
    return {
        "chunks": len(recorded.texts), "index_s": index_s, "index_cpu_s": index_cpu_s, "alone_s": alone_s,
        "alone_cpu_s": alone_cpu_s, "embedder_s": measured.seconds,
    }  # fmt: skip


def _later(files: list[Path], context: Context) -> dict[str, dict[str, Any]]:
    """Indexes of all files: nothing changed, and then one line added to each of ten files in turn."""
    folder = copied(files, context.folder / "whole")
    with Workspace(folder, embedder=context.model) as workspace:
        workspace.index()
        times = []
        for _ in range(context.count(_AGAIN) + 1):
            began = perf_counter()
            assert workspace.index().files_indexed == 0
            times.append(perf_counter() - began)
        changes = []
        for file in sorted(folder.glob("*.md"))[:: max(1, len(files) // _CHANGED)][:_CHANGED]:
            file.write_bytes(file.read_bytes() + _ADDED.encode())
            began = perf_counter()
            changes.append((workspace.index(), perf_counter() - began))
    context.model.flush()
    return {
        "second, nothing changed": {"p50 ms": times[0] * 1e3},
        "later, nothing changed": {"p50 ms": median(times[1:]) * 1e3},
        "one file changed": {
            "p50 ms": median(spent for _, spent in changes) * 1e3,
            "files": sum(result.files_indexed for result, _ in changes),
            "chunks in them": sum(result.chunks_kept + result.chunks_created for result, _ in changes),
            "chunks embedded": sum(result.embeddings_computed for result, _ in changes),
        },
    }


def markdown_files(data: Path, scratch: Path) -> list[Path]:
    """The Markdown files of the first archive in a folder, unpacked."""
    archive = next(iter(sorted(data.glob("markdown*.tar.gz"))), None)
    if archive is None:
        raise SystemExit(f"{data} has no markdown*.tar.gz")
    with tarfile.open(archive) as packed:
        # Python before 3.11.4 has no filters, and ignores this.
        packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        packed.extractall(scratch / "given")
    return sorted((scratch / "given").rglob("*.md"))


def copied(files: list[Path], folder: Path) -> Path:
    """A folder with copies of files."""
    folder.mkdir(parents=True)
    for file in files:
        shutil.copy2(file, folder / file.name)
    return folder


def _indexed(folder: Path, embedder: Any) -> tuple[float, float]:
    """Seconds of a first index, by the clock and of the processor; its files are removed."""
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


# Rounds are the parts.
CASE = Case(
    "documents_index",
    "what an index costs beside its embeddings",
    _setup,
    _tables,
    records=(300,),
    rounds=20,
    unit="files",
)
