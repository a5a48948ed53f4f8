"""Puts RecalliteHistoryProvider in the place of the history providers of the framework."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agent_framework

from recallite import Memory, Settings
from recallite_connect.agent_framework import RecalliteHistoryProvider


class FileHistoryProvider(RecalliteHistoryProvider):
    """A memory in its folder, which is made if it is not there."""

    def __init__(self, storage_path: Any, **options: Any) -> None:
        self.storage_path = Path(storage_path)
        self.storage_path.mkdir(parents=True, exist_ok=True)
        super().__init__(Memory(self.storage_path / "history.db", settings=Settings(embedder="none")), **options)


agent_framework.FileHistoryProvider = FileHistoryProvider


class InMemoryHistoryProvider(RecalliteHistoryProvider):
    """One for each agent, in RAM."""

    def __init__(self, source_id: str | None = None, **options: Any) -> None:
        memory = Memory(":memory:", settings=Settings(embedder="none"))
        super().__init__(memory, source_id=source_id or "in_memory", **options)


agent_framework.InMemoryHistoryProvider = InMemoryHistoryProvider
