"""memweave: its names for a workspace of Markdown files and for its configuration."""

from __future__ import annotations

from recallite.notes.async_workspace import AsyncWorkspace as MemWeave
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
)
from recallite.notes.config import WorkspaceConfig as MemoryConfig
from recallite.notes.strategies import RawSearchRow

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
