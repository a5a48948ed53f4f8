"""MemPalace: a drawer a turn, in its palace on Chroma."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mempalace import embedding

from benchmarks.memory_systems.system import Embed, Said, System, by_text


class MemPalace(System):
    """Filed by `add_drawer` and results by `search_memories`, its search for programs, with its defaults."""

    def __init__(self, folder: Path, embed: Embed) -> None:
        from chromadb.api.types import EmbeddingFunction

        class Given(EmbeddingFunction):  # type: ignore[type-arg]
            """The model that is given, under the name that a palace keeps."""

            def __init__(self) -> None:
                pass

            def __call__(self, input: list[str]) -> Any:
                return list(embed(input))

            @staticmethod
            def name() -> str:
                return "default"

        function = Given()
        embedding.get_embedding_function = lambda device=None, model=None: function
        from mempalace.palace import get_collection

        self._palace = str(folder / "palace")
        self._collection = get_collection(self._palace)

    def write(self, records: Sequence[Said]) -> None:
        from mempalace.miner import add_drawer

        for record in records:
            add_drawer(self._collection, "talk", "turns", record.line, record.session, record.position, "reader")
        self._places = by_text([record.line for record in records])

    def recall(self, question: str, limit: int, moment: Any) -> list[int]:
        from mempalace.searcher import search_memories

        results = search_memories(question, self._palace, n_results=limit)["results"]
        return list(dict.fromkeys(self._places[one["text"]] for one in results if one["text"] in self._places))
