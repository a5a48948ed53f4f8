"""A folder of Markdown files as memory, and an index that is derived from it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recallite.model.reports import Exported, Restored
    from recallite.notes.async_workspace import AsyncWorkspace
    from recallite.notes.config import (
        CacheConfig,
        ChunkingConfig,
        EmbeddingConfig,
        FlushConfig,
        HybridConfig,
        MMRConfig,
        QueryConfig,
        SyncConfig,
        TemporalDecayConfig,
        VectorConfig,
        WorkspaceConfig,
    )  # fmt: skip
    from recallite.notes.note_files import FileProblem
    from recallite.notes.results import FileInfo, IndexResult, StoreStatus
    from recallite.notes.search import SearchResult, SearchResults
    from recallite.notes.strategies import RawSearchRow
    from recallite.notes.workspace import Workspace

__all__ = [
    "AsyncWorkspace", "CacheConfig", "ChunkingConfig", "EmbeddingConfig", "Exported", "FileInfo", "FileProblem",
    "FlushConfig", "HybridConfig", "IndexResult", "MMRConfig", "QueryConfig", "RawSearchRow", "Restored",
    "SearchResult", "SearchResults", "StoreStatus", "SyncConfig", "TemporalDecayConfig", "VectorConfig", "Workspace",
    "WorkspaceConfig",
]  # fmt: skip

_HOMES = {
    "AsyncWorkspace": "notes.aio", "Exported": "model.reports", "FileInfo": "notes.results",
    "FileProblem": "notes.files", "IndexResult": "notes.results", "RawSearchRow": "notes.strategies",
    "Restored": "model.reports", "SearchResult": "notes.search", "SearchResults": "notes.search",
    "StoreStatus": "notes.results", "Workspace": "notes.workspace",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'recallite.notes' has no attribute {name!r}")
    return getattr(import_module(f"recallite.{_HOMES.get(name, 'notes.config')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
