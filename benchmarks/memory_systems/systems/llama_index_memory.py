"""LlamaIndex' VectorMemory on its SimpleVectorStore, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import VectorMemory

from benchmarks.memory_systems.system import Embed, Said, System

_DEEPEST = 50


class _Embedding(BaseEmbedding):
    """Vectors for LlamaIndex."""

    source: Any = None

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.source.lists(texts)
        return vectors

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class LlamaIndexMemory(System):
    """A user's message a turn; as many as are asked for are retrieved, where its default is two."""

    def __init__(self, folder: Path, embed: Embed) -> None:
        self._memory = VectorMemory.from_defaults(
            embed_model=_Embedding(source=embed), retriever_kwargs={"similarity_top_k": _DEEPEST}
        )

    def write(self, records: Sequence[Said]) -> None:
        for place, record in enumerate(records):
            self._memory.put(ChatMessage(role="user", content=record.line, additional_kwargs={"place": place}))

    def recall(self, question: str, limit: int, moment: Any) -> list[int]:
        messages = self._memory.get(question)
        return [int(message.additional_kwargs["place"]) for message in messages][:limit]
