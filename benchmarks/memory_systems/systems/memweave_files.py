"""memweave: a folder of Markdown files, a file a turn, or a session as its authors measured it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memweave import MemoryConfig, MemWeave

from benchmarks.memory_systems.system import Embed, Said, System


class _Embedding:
    """Vectors for memweave."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    async def embed_query(self, text: str) -> list[float]:
        return self._embed.lists([text])[0]

    async def embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        return self._embed.lists(texts)


class MemWeaveFiles(System):
    """Its hybrid search with its defaults, but for the least score, which would leave the lists short."""

    whole_sessions = True

    def __init__(self, folder: Path, embed: Embed) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._memory = MemWeave(MemoryConfig(workspace_dir=str(folder)), embedding_provider=_Embedding(embed))
        self._loop.run_until_complete(self._memory.open())

    def write(self, records: Sequence[Said]) -> None:
        notes = self._folder / "memory" / "notes"
        notes.mkdir(parents=True)
        for place, record in enumerate(records):
            (notes / f"{place:05}.md").write_text(f"{record.line}\n", encoding="utf-8")
        self._loop.run_until_complete(self._memory.index())

    def recall(self, question: str, limit: int, moment: Any) -> list[int]:
        results = self._loop.run_until_complete(self._memory.search(question, max_results=3 * limit, min_score=0.0))
        return list(dict.fromkeys(int(Path(one.path).stem) for one in results))[:limit]

    def close(self) -> None:
        self._loop.run_until_complete(self._memory.close())
