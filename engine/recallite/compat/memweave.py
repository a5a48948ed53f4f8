"""memweave: its names for a workspace of Markdown files and for its configuration."""

from recallite.notes.async_workspace import AsyncWorkspace as MemWeave
from recallite.notes.config import CacheConfig as CacheConfig
from recallite.notes.config import ChunkingConfig as ChunkingConfig
from recallite.notes.config import EmbeddingConfig as EmbeddingConfig
from recallite.notes.config import FlushConfig as FlushConfig
from recallite.notes.config import HybridConfig as HybridConfig
from recallite.notes.config import MMRConfig as MMRConfig
from recallite.notes.config import QueryConfig as QueryConfig
from recallite.notes.config import SyncConfig as SyncConfig
from recallite.notes.config import TemporalDecayConfig as TemporalDecayConfig
from recallite.notes.config import VectorConfig as VectorConfig
from recallite.notes.config import WorkspaceConfig as MemoryConfig
from recallite.notes.strategies import RawSearchRow as RawSearchRow

__all__ = ["MemWeave", "MemoryConfig"]
