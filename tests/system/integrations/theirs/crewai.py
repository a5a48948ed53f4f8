"""Puts RecalliteStorage in the place of CrewAI's storages: by the factory, and where a test constructs one."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"

from crewai.memory.storage import lancedb_storage
from crewai.memory.storage.factory import set_memory_storage_factory

from recallite import Memory, Settings
from recallite_connect.crewai import RecalliteStorage


class LanceDBStorage(RecalliteStorage):
    """The storage of a folder: the same for all that construct it, as two of LanceDB see each other's records."""

    opened: dict[str, Memory] = {}  # noqa: RUF012

    def __init__(self, path: Any = "lancedb", table_name: str = "memories", **_: Any) -> None:
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        file = str(folder / f"{table_name}.db")
        if file not in self.opened:
            self.opened[file] = Memory(file, settings=Settings(embedder="none"))
        super().__init__(self.opened[file], scope="/")

    def close(self) -> None:
        """Nothing: others may have the same."""


class QdrantEdgeStorage(LanceDBStorage):
    """The storage that CrewAI has for Qdrant."""


# In the place of the package, without which their tests of it would be skipped.
qdrant_edge = ModuleType("qdrant_edge")
qdrant_edge.__spec__ = ModuleSpec("qdrant_edge", None)
sys.modules["qdrant_edge"] = qdrant_edge
qdrant_storage = ModuleType("crewai.memory.storage.qdrant_edge_storage")
vars(qdrant_storage)["QdrantEdgeStorage"] = QdrantEdgeStorage
sys.modules[qdrant_storage.__name__] = qdrant_storage

lancedb_storage.LanceDBStorage = LanceDBStorage
set_memory_storage_factory(lambda spec: (QdrantEdgeStorage if spec == "qdrant-edge" else LanceDBStorage)(spec))
