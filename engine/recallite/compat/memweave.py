"""memweave: its names for a workspace of Markdown files and for its configuration."""

from __future__ import annotations

from recallite.workspace.aio import AsyncWorkspace as MemWeave
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
)
from recallite.workspace.config import WorkspaceConfig as MemoryConfig
from recallite.workspace.strategies import RawSearchRow

__all__ = [
    "CacheConfig",
    "ChunkingConfig",
    "EmbeddingConfig",
    "FlushConfig",
    "HybridConfig",
    "MMRConfig",
    "MemWeave",
    "MemoryConfig",
    "QueryConfig",
    "RawSearchRow",
    "SyncConfig",
    "TemporalDecayConfig",
    "VectorConfig",
]
