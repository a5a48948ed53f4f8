"""The contenders by name, and what each promises. A module is imported in its own process only."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, metadata

from benchmarks.peers.contender import Contender

__all__ = ["CONTENDERS", "OURS", "Entry"]

OURS = "recallite"


@dataclass(frozen=True)
class Entry:
    """A contender's class (`place`, as module:class), its distributions, and its promises, in words.

    - durable: what a write survives when it returns
    - changes: how records are updated and deleted
    - filters: by what records are filtered
    - processes: how many may use a store at the same time
    """

    place: str
    distributions: tuple[str, ...]
    durable: str
    changes: str
    filters: str
    processes: str

    def load(self) -> Contender:
        """A new contender."""
        module, name = self.place.split(":")
        contender: Contender = getattr(import_module(f"{__name__}.{module}"), name)()
        return contender

    def versions(self) -> dict[str, str]:
        """The distributions that it runs with."""
        return {distribution: metadata.version(distribution) for distribution in self.distributions}


_RECALLITE = (
    ("numba", "numpy"),
    "power loss (one fsync)",
    "both, versioned, in one transaction",
    "tags, scopes, sources, times, metadata, expressions",
    "many read, one writes at a time",
)
_WHOLE = "power loss only when its file is written whole"

CONTENDERS = {
    OURS: Entry("recallite_memory:Recallite", *_RECALLITE),
    "recallite, plain": Entry("recallite_memory:RecallitePlain", *_RECALLITE),
    "zvec": Entry(
        "zvec_collection:Zvec",
        ("zvec",),
        "a killed process (log, no fsync); power loss after `flush`",
        "both; search slows until `optimize`",
        "expressions over scalar fields",
        "one writes, or many read",
    ),
    "lancedb": Entry(
        "lance:LanceDb",
        ("lancedb", "pyarrow"),
        "a killed process (no fsync)",
        "both; new rows are scanned until `optimize`",
        "SQL expressions",
        "many read and write",
    ),
    "turbovec + tantivy": Entry(
        "turbovec_tantivy:TurbovecTantivy",
        ("turbovec", "tantivy"),
        "power loss, in three files that are not atomic together",
        "delete; no update",
        "lists of ids",
        "one",
    ),
    "faiss HNSW + tantivy": Entry(
        "faiss_tantivy:FaissTantivy",
        ("faiss-cpu", "tantivy"),
        _WHOLE,
        "neither in an HNSW graph",
        "lists of ids, bitmaps",
        "one",
    ),
    "usearch + tantivy": Entry(
        "usearch_tantivy:UsearchTantivy",
        ("usearch", "tantivy"),
        _WHOLE,
        "delete; no update",
        "none of its own",
        "one; many read a mapped file",
    ),
    "hnswlib": Entry(
        "hnswlib_graph:Hnswlib",
        ("hnswlib",),
        _WHOLE,
        "both, by marks",
        "a Python function",
        "one",
    ),
    "chroma": Entry(
        "chroma:Chroma",
        ("chromadb",),
        "power loss (SQLite's log); the graph is written every 1,000 records",
        "both",
        "metadata, substrings of the text",
        "one",
    ),
    "sqlite-vec + FTS5": Entry(
        "sqlite_vec_fts5:SqliteVecFts5",
        ("sqlite-vec", "apsw"),
        "power loss (one fsync)",
        "both, in one transaction",
        "metadata columns, SQL",
        "many read, one writes at a time",
    ),
    "numpy + bm25s": Entry(
        "numpy_bm25s:NumpyBm25s",
        ("numpy", "bm25s"),
        "nothing: files are written whole",
        "neither: it is built again",
        "arrays of places",
        "one",
    ),
}
