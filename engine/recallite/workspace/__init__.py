"""A folder of Markdown files as memory, and an index that is derived from it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recallite.reports import Exported, Restored
    from recallite.workspace.aio import AsyncWorkspace
    from recallite.workspace.config import (
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
    from recallite.workspace.files import FileProblem
    from recallite.workspace.results import FileInfo, IndexResult, StoreStatus
    from recallite.workspace.search import SearchResult, SearchResults
    from recallite.workspace.strategies import RawSearchRow
    from recallite.workspace.workspace import Workspace

__all__ = [
    "AsyncWorkspace", "CacheConfig", "ChunkingConfig", "EmbeddingConfig", "Exported", "FileInfo", "FileProblem",
    "FlushConfig", "HybridConfig", "IndexResult", "MMRConfig", "QueryConfig", "RawSearchRow", "Restored",
    "SearchResult", "SearchResults", "StoreStatus", "SyncConfig", "TemporalDecayConfig", "VectorConfig", "Workspace",
    "WorkspaceConfig",
]  # fmt: skip

_HOMES = {
    "AsyncWorkspace": "workspace.aio", "Exported": "reports", "FileInfo": "workspace.results",
    "FileProblem": "workspace.files", "IndexResult": "workspace.results", "RawSearchRow": "workspace.strategies",
    "Restored": "reports", "SearchResult": "workspace.search", "SearchResults": "workspace.search",
    "StoreStatus": "workspace.results", "Workspace": "workspace.workspace",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'recallite.workspace' has no attribute {name!r}")
    return getattr(import_module(f"recallite.{_HOMES.get(name, 'workspace.config')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
