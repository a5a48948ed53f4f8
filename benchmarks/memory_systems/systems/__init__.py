"""The systems by name, each with its class, its distribution and its own embedding model."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from benchmarks.memory_systems.system import System

__all__ = ["OURS", "SYSTEMS", "TEXT_ALONE", "Entry"]

OURS, TEXT_ALONE = "recallite", "recallite, text alone"


@dataclass(frozen=True)
class Entry:
    """A system's class (`place`, as module:class).

    - distribution: the package whose version is named
    - model: the embedding model of its defaults
    - here: the embedder of Recallite's package that is this model; None if it cannot be had without a download
    - how: what is called, and what is set
    """

    place: str
    distribution: str
    model: str
    here: str | None
    how: str

    def load(self) -> type[System]:
        """The class of the system."""
        module, name = self.place.split(":")
        system: type[System] = getattr(import_module(f"{__name__}.{module}"), name)
        return system


_MINILM = "all-MiniLM-L6-v2"
_OPENAI = "text-embedding-3-small"

SYSTEMS = {
    OURS: Entry("recallite_memory:RecalliteMemory", "recallite", "recallite-minilm", "default", "`recall`, no options"),
    TEXT_ALONE: Entry(
        "recallite_memory:TextAlone", "recallite", "recallite-minilm", "default", "the same, with no field but the text"
    ),
    "mem0": Entry("mem0_memory:Mem0", "mem0ai", _OPENAI, None, "`add(infer=False)`, `search`; Qdrant in a folder"),
    "MemPalace": Entry(
        "mempalace_drawers:MemPalace", "mempalace", _MINILM, _MINILM, "a drawer a turn; `search_memories`"
    ),
    "basic-memory": Entry(
        "basic_memory_notes:BasicMemory", "basic-memory", "bge-small-en-v1.5", None, "a note a turn; `search_notes`"
    ),
    "memweave": Entry(
        "memweave_files:MemWeaveFiles", "memweave", _OPENAI, None, "a file a turn, or a session; `min_score=0`"
    ),
    "LangGraph SqliteStore": Entry(
        "langgraph_store:LangGraphStore", "langgraph-checkpoint-sqlite", "none", None, "`put`, `search(query=)`"
    ),
    "LlamaIndex VectorMemory": Entry(
        "llama_index_memory:LlamaIndexMemory", "llama-index-core", "text-embedding-ada-002", None, "`put`, `get(input)`"
    ),
    "CrewAI Memory": Entry(
        "crewai_memory:CrewAiMemory",
        "crewai",
        _OPENAI,
        None,
        'scope, categories and importance given, `depth="shallow"`: no language model',
    ),
}
