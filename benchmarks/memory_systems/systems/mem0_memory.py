"""mem0 with `infer=False`: texts as given, vectors in Qdrant's local folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mem0 import Memory

from benchmarks.memory_systems.system import Embed, Said, System

_USER = "reader"


class _Embedding:
    """Vectors for mem0."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._embed.lists([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return self._embed.lists(texts)


class Mem0(System):
    """A message a turn. Keyword and entity scores of its extra `nlp` need a model that spaCy downloads: without."""

    def __init__(self, folder: Path, embed: Embed) -> None:
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": embed.dimension, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
                # Neither is asked: nothing is inferred, and the embedding model is replaced below.
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "embedder": {"provider": "openai", "config": {"api_key": "none"}},
            }
        )
        self._memory.embedding_model = _Embedding(embed)

    def write(self, records: Sequence[Said]) -> None:
        for place, record in enumerate(records):
            message = {"role": "user", "content": record.line}
            self._memory.add([message], user_id=_USER, metadata={"place": place}, infer=False)

    def recall(self, question: str, limit: int, moment: Any) -> list[int]:
        results = self._memory.search(question, top_k=limit, filters={"user_id": _USER})["results"]
        return [one["metadata"]["place"] for one in results]

    def close(self) -> None:
        self._memory.vector_store.client.close()
