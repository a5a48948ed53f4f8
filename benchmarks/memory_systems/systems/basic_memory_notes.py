"""basic-memory: a Markdown note a turn, or a session, indexed and searched as its tools for agents do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from basic_memory import config, db
from basic_memory.cli.commands.db import _reindex
from basic_memory.mcp.tools import search_notes
from basic_memory.repository import search_repository, sqlite_search_repository

from benchmarks.memory_systems.system import Embed, Said, System


class _Embedding:
    """Vectors for basic-memory."""

    model_name = "given"

    def __init__(self, embed: Embed) -> None:
        self._embed, self.dimensions = embed, embed.dimension

    async def embed_query(self, text: str) -> list[float]:
        return self._embed.lists([text])[0]

    async def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embed.lists(texts)

    def runtime_log_attrs(self) -> dict[str, Any]:
        return {}


class BasicMemory(System):
    """Its default search, which is hybrid where it has vectors."""

    whole_sessions = True

    def __init__(self, folder: Path, embed: Embed) -> None:
        os.environ |= {
            "BASIC_MEMORY_HOME": str(folder / "notes"),
            "BASIC_MEMORY_CONFIG_DIR": str(folder / "config"),
            "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "true",
            "BASIC_MEMORY_LOG_LEVEL": "ERROR",
        }
        for module in (search_repository, sqlite_search_repository):
            module.create_embedding_provider = lambda _: _Embedding(embed)
        config._CONFIG_CACHE = None
        self._notes = folder / "notes"
        self._notes.mkdir()
        self._loop = asyncio.new_event_loop()

    def write(self, records: Sequence[Said]) -> None:
        for place, record in enumerate(records):
            (self._notes / f"note{place:05}.md").write_text(f"{record.line}\n", encoding="utf-8")
        settings = config.ConfigManager().config
        self._run(_reindex(settings, search=True, embeddings=True, full=True, project=None))

    def recall(self, question: str, limit: int, moment: Any) -> list[int]:
        answer = self._run(search_notes(query=question, page_size=2 * limit, output_format="json"))
        names = (Path(result["file_path"] or "").stem for result in answer["results"])
        return list(dict.fromkeys(int(name[4:]) for name in names if name.startswith("note")))[:limit]

    def close(self) -> None:
        self._run(db.shutdown_db())
        self._loop.close()

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)
