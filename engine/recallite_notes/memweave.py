"""memweave: its names for a workspace of Markdown files and for its configuration."""

from recallite_notes.async_workspace import AsyncWorkspace as MemWeave
from recallite_notes.config import CacheConfig as CacheConfig
from recallite_notes.config import ChunkingConfig as ChunkingConfig
from recallite_notes.config import EmbeddingConfig as EmbeddingConfig
from recallite_notes.config import FlushConfig as FlushConfig
from recallite_notes.config import HybridConfig as HybridConfig
from recallite_notes.config import MMRConfig as MMRConfig
from recallite_notes.config import QueryConfig as QueryConfig
from recallite_notes.config import SyncConfig as SyncConfig
from recallite_notes.config import TemporalDecayConfig as TemporalDecayConfig
from recallite_notes.config import VectorConfig as VectorConfig
from recallite_notes.config import WorkspaceConfig as MemoryConfig
from recallite_notes.search import RawSearchRow as RawSearchRow

__all__ = ["MemWeave", "MemoryConfig"]
