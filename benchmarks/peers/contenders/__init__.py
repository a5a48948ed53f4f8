"""The contenders by name, with what they need and what they keep. A module is imported in its own process only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata
from importlib.util import find_spec

from benchmarks.peers.contender import Contender

__all__ = ["CONTENDERS", "Entry"]


@dataclass(frozen=True)
class Entry:
    """A contender's class (`place`, as module:class) and the import names that it needs, by distribution."""

    place: str
    keeps: str
    needs: Mapping[str, str] = field(default_factory=dict)

    def missing(self) -> list[str]:
        """The distributions that are not installed."""
        return [distribution for distribution, name in self.needs.items() if find_spec(name) is None]

    def versions(self) -> dict[str, str]:
        """The distributions that it runs with."""
        return {distribution: metadata.version(distribution) for distribution in self.needs}

    def load(self) -> Contender:
        """A new contender."""
        module, name = self.place.split(":")
        contender: Contender = getattr(import_module(f"{__name__}.{module}"), name)()
        return contender


_DURABLE, _WHOLE = "each write durable", "a file written whole"

# Recallite comes first: its recall@10 is what the graphs must reach.
CONTENDERS = {
    "recallite": Entry("recallite_memory:Recallite", _DURABLE, {"recallite": "recallite", "numba": "numba"}),
    "recallite instant": Entry(
        "recallite_memory:RecalliteInstant", _DURABLE, {"recallite": "recallite", "numba": "numba"}
    ),
    "sqlite-vec + FTS5": Entry("sqlite_vec_fts5:SqliteVecFts5", _DURABLE, {"sqlite-vec": "sqlite_vec", "apsw": "apsw"}),
    "numpy + bm25s": Entry("numpy_bm25s:NumpyBm25s", _WHOLE, {"numpy": "numpy", "bm25s": "bm25s"}),
    "lancedb": Entry("lance:LanceDb", _DURABLE, {"lancedb": "lancedb", "pyarrow": "pyarrow"}),
    "faiss flat": Entry("faiss_index:FaissFlat", _WHOLE, {"faiss-cpu": "faiss"}),
    "faiss HNSW": Entry("faiss_index:FaissHnsw", _WHOLE, {"faiss-cpu": "faiss"}),
    "usearch": Entry("graphs:Usearch", _WHOLE, {"usearch": "usearch"}),
    "hnswlib": Entry("graphs:Hnswlib", _WHOLE, {"hnswlib": "hnswlib"}),
    "chroma": Entry("chroma:Chroma", _DURABLE, {"chromadb": "chromadb"}),
}
