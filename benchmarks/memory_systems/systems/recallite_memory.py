"""Recallite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.memory_systems.system import Embed, Said, System
from recallite import Memory


class RecalliteMemory(System):
    """Turns of a transcript with speaker, session, position and time, as an agent's log has them."""

    def __init__(self, folder: Path, embed: Embed) -> None:
        self._memory = Memory(folder / "memory.db", embedder=embed.embedder)

    def write(self, records: Sequence[Said]) -> None:
        ids = self._memory.remember_many(map(self._fields, records))
        self._memory.store.catch_up()
        self._places = {id: place for place, id in enumerate(ids)}

    def recall(self, question: str, limit: int, moment: Any) -> list[int]:
        return [self._places[hit.id] for hit in self._memory.recall(question, limit=limit, as_of=moment)]

    def close(self) -> None:
        self._memory.close()

    def _fields(self, record: Said) -> dict[str, Any]:
        return {
            "text": record.text, "context": record.speaker, "source": record.session, "position": record.position,
            "created_at": record.moment, "valid_from": record.moment,
        }  # fmt: skip


class TextAlone(RecalliteMemory):
    """Turns as the other systems get them: "Ada: I moved to Oslo", in their order."""

    def _fields(self, record: Said) -> dict[str, Any]:
        return {"text": record.line}
