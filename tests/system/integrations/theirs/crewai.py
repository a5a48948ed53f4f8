"""Puts RecalliteStorage in the place of LanceDBStorage: by the factory, and where a test constructs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"

from crewai.memory.storage import lancedb_storage
from crewai.memory.storage.factory import set_memory_storage_factory

from recallite import Memory, Settings
from recallite.errors import InvalidInput
from recallite.integrations.crewai import RecalliteStorage


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

    def update(self, record: Any) -> None:
        try:
            super().update(record)
        except InvalidInput as fault:
            raise TypeError(f"not JSON serializable: {fault}") from fault


lancedb_storage.LanceDBStorage = LanceDBStorage
set_memory_storage_factory(lambda spec: LanceDBStorage(spec))
