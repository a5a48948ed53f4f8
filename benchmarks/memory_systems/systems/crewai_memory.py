"""CrewAI's Memory on its LanceDB storage, without its language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crewai.memory.unified_memory import Memory

from benchmarks.memory_systems.system import Embed, Said, System, by_text

_SCOPE, _IMPORTANCE = "/talk", 0.5
# The most that it takes: merging what is alike would ask its language model.
_EQUAL = 1.0


class CrewAiMemory(System):
    """Scope, categories and importance are given and merging is off, so that saving asks no language model."""

    def __init__(self, folder: Path, embed: Embed) -> None:
        self._memory = Memory(storage=str(folder / "lancedb"), embedder=embed.lists, consolidation_threshold=_EQUAL)

    def write(self, records: Sequence[Said]) -> None:
        lines = [record.line for record in records]
        self._memory.remember_many(lines, scope=_SCOPE, categories=["turn"], importance=_IMPORTANCE, metadata={"a": 1})
        self._memory.drain_writes()
        self._places = by_text(lines)

    def recall(self, question: str, limit: int, moment: Any) -> list[int]:
        matches = self._memory.recall(question, scope=_SCOPE, limit=limit, depth="shallow")
        return list(dict.fromkeys(self._places[one.record.content] for one in matches))

    def close(self) -> None:
        self._memory.close()
