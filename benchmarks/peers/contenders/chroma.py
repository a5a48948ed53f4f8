"""Chroma, persistent: vectors with a metadata filter. It has no ranked keyword search without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from chromadb.config import Settings

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, EFFORTS, TOP, Contender, Vector

_NAME = "memory"


class Chroma(Contender):
    """Its HNSW graph by cosine beside its SQLite file."""

    efforts = EFFORTS

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

    def open(self, folder: Path) -> None:
        self._folder = folder
        self._collection = _client(folder).get_collection(_NAME, embedding_function=None)

    def vector(self, text: str, vector: Vector, below: int | None = None) -> Any:
        where: Any = None if below is None else {"part": {"$lt": below}}
        return self._collection.query(query_embeddings=vector[None], n_results=TOP, where=where, include=["documents"])

    def insert(self, place: int, text: str, vector: Vector) -> None:
        self._collection.add(ids=[str(place)], embeddings=vector[None], documents=[text], metadatas=[{"part": 999}])

    def places(self, answer: Any) -> list[int]:
        return [int(place) for place in answer["ids"][0]]

    def widen(self, effort: int | None) -> None:
        if effort is None or effort == self.effort:
            return
        self.effort = effort
        self._collection.modify(configuration={"hnsw": {"ef_search": effort}})
        # A graph that is loaded keeps the ef that it was loaded with.
        chromadb.api.client.SharedSystemClient.clear_system_cache()
        self.open(self._folder)


def _client(folder: Path) -> Any:
    return chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
