"""A folder of Markdown files as memory: the files are the truth, the index beside them is derived."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.reports import Exported as Exported
    from recollect.reports import Restored as Restored
    from recollect.workspace.aio import AsyncWorkspace as AsyncWorkspace
    from recollect.workspace.config import CacheConfig as CacheConfig
    from recollect.workspace.config import ChunkingConfig as ChunkingConfig
    from recollect.workspace.config import EmbeddingConfig as EmbeddingConfig
    from recollect.workspace.config import FlushConfig as FlushConfig
    from recollect.workspace.config import HybridConfig as HybridConfig
    from recollect.workspace.config import MMRConfig as MMRConfig
    from recollect.workspace.config import QueryConfig as QueryConfig
    from recollect.workspace.config import SyncConfig as SyncConfig
    from recollect.workspace.config import TemporalDecayConfig as TemporalDecayConfig
    from recollect.workspace.config import VectorConfig as VectorConfig
    from recollect.workspace.config import WorkspaceConfig as WorkspaceConfig
    from recollect.workspace.files import FileProblem as FileProblem
    from recollect.workspace.results import FileInfo as FileInfo
    from recollect.workspace.results import IndexResult as IndexResult
    from recollect.workspace.results import StoreStatus as StoreStatus
    from recollect.workspace.search import SearchResult as SearchResult
    from recollect.workspace.search import SearchResults as SearchResults
    from recollect.workspace.strategies import RawSearchRow as RawSearchRow
    from recollect.workspace.workspace import Workspace as Workspace

__all__ = [
    "AsyncWorkspace",
    "CacheConfig",
    "ChunkingConfig",
    "EmbeddingConfig",
    "Exported",
    "FileInfo",
    "FileProblem",
    "FlushConfig",
    "HybridConfig",
    "IndexResult",
    "MMRConfig",
    "QueryConfig",
    "RawSearchRow",
    "Restored",
    "SearchResult",
    "SearchResults",
    "StoreStatus",
    "SyncConfig",
    "TemporalDecayConfig",
    "VectorConfig",
    "Workspace",
    "WorkspaceConfig",
]

_HOMES = {
    "AsyncWorkspace": "workspace.aio",
    "Exported": "records",
    "FileInfo": "workspace.results",
    "FileProblem": "workspace.files",
    "IndexResult": "workspace.results",
    "RawSearchRow": "workspace.strategies",
    "Restored": "records",
    "SearchResult": "workspace.search",
    "SearchResults": "workspace.search",
    "StoreStatus": "workspace.results",
    "Workspace": "workspace.workspace",
}


def __getattr__(name: str) -> object:
    """Load what is asked for when it is asked for."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'recollect.workspace' has no attribute {name!r}")
    return getattr(import_module(f"recollect.{_HOMES.get(name, 'workspace.config')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
