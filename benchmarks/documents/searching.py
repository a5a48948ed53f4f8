"""Searches of a workspace of real files, with files looked at before each and without; both take turns."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import corpus
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.documents.indexing import copied
from benchmarks.latency.figures import percentiles
from recallite import Workspace
from recallite.embedding import load
from recallite.notes.config import SyncConfig, WorkspaceConfig

__all__ = ["evaluate"]

_QUERIES = 320
_WARM = 20


def evaluate(files: list[Path], scratch: Path, embedder: CachedEmbedder) -> dict[str, Any]:
    """Milliseconds of single searches by new queries, their embedding included."""
    folder = copied(files, scratch / "searched")
    with Workspace(folder, embedder=embedder) as workspace:
        chunks = workspace.index().chunks_created
    lines = [line for file in files for line in file.read_text("utf-8").splitlines() if len(line.split()) > 8]
    asked = corpus.queries(lines[:: max(1, len(lines) // 2000)], _QUERIES)
    warm = min(_WARM, len(asked) // 4)
    times: dict[str, list[float]] = {}
    by_name = {name: _opened(folder, on_search) for name, on_search in (("on", True), ("off", False))}
    try:
        for place, query in enumerate(asked):
            for name, workspace in by_name.items():
                began = perf_counter()
                workspace.search(query, min_score=0.0)
                if place >= warm:
                    times.setdefault(name, []).append((perf_counter() - began) * 1e3)
    finally:
        for workspace in by_name.values():
            workspace.close()
    return {"files": len(files), "chunks": chunks, "sync_on_search": {k: percentiles(v) for k, v in times.items()}}


def _opened(folder: Path, on_search: bool) -> Workspace:
    return Workspace(folder, WorkspaceConfig(sync=SyncConfig(on_search=on_search)), embedder=load())
