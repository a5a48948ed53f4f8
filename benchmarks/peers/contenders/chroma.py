"""Chroma, persistent: vectors with a metadata filter. It has no ranked keyword search without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from chromadb.config import Settings

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, TOP, Mode, Vector

_NAME = "memory"


class Chroma:
    """Its HNSW graph by cosine beside its SQLite file; texts are returned with the places."""

    def build(self, data: Dataset, folder: Path) -> None:
        client = _client(folder)
        collection = client.create_collection(
            _NAME,
            embedding_function=None,
            configuration={
                "hnsw": {"space": "cosine", "ef_construction": EF_CONSTRUCTION, "max_neighbors": CONNECTIVITY}
            },
        )
        belongs = parts(len(data.vectors)).tolist()
        step = client.get_max_batch_size()
        for begin in range(0, len(belongs), step):
            rows = slice(begin, begin + step)
            collection.add(
                ids=[str(begin + place) for place in range(len(belongs[rows]))],
                embeddings=np.asarray(data.vectors[rows]),
                documents=data.lines[rows],
                metadatas=[{"part": part} for part in belongs[rows]],
            )

    def open(self, folder: Path) -> dict[str, Mode]:
        self._folder = folder
        self._collection = _client(folder).get_collection(_NAME, embedding_function=None)
        return {
            "vector": Mode(
                lambda _, vector: self._ask(vector[None, :]),
                many=lambda _, vectors: self._ask(vectors),
                filtered=lambda _, vector, below: self._ask(vector[None, :], where={"part": {"$lt": below}}),
                places=lambda result: [int(place) for place in result["ids"][0]],
                effort=self._effort,
            )
        }

    def warm(self) -> None:
        pass

    def _ask(self, vectors: Vector, where: Any = None) -> Any:
        return self._collection.query(query_embeddings=vectors, n_results=TOP, where=where, include=["documents"])

    def _effort(self, ef: int) -> None:
        self._collection.modify(configuration={"hnsw": {"ef_search": ef}})
        # A graph that is loaded keeps the ef that it was loaded with.
        chromadb.api.client.SharedSystemClient.clear_system_cache()
        self._collection = _client(self._folder).get_collection(_NAME, embedding_function=None)


def _client(folder: Path) -> Any:
    return chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
