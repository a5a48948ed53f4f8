"""faiss: an HNSW graph over float32, with tantivy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import faiss

from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, Vector
from benchmarks.peers.contenders.assembled import Assembled, sync

_DEFAULT_EF = 128


class FaissTantivy(Assembled):
    """IndexHNSWFlat by inner product of unit vectors. A filter scores all that it leaves: better than its selector."""

    def build_vectors(self, vectors: Vector, folder: Path) -> None:
        index = faiss.IndexHNSWFlat(vectors.shape[1], CONNECTIVITY, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EF_CONSTRUCTION
        index.add(vectors)
        faiss.write_index(index, str(folder / "vectors.faiss"))

    def open_vectors(self, folder: Path) -> None:
        self._index = faiss.read_index(str(folder / "vectors.faiss"))
        storage = faiss.downcast_index(self._index.storage)
        count = self._index.ntotal
        self.floats = faiss.rev_swig_ptr(storage.get_xb(), count * self._index.d).reshape(count, -1)

    def near(self, vector: Vector, count: int, below: int | None) -> Any:
        if below is not None:
            return self.rescored(self.allowed[below], vector, count)
        wide = faiss.SearchParametersHNSW(efSearch=max(self.effort or _DEFAULT_EF, count))
        places = self._index.search(vector[None], count, params=wide)[1][0]
        return places[places >= 0]

    def add_vector(self, place: int, vector: Vector) -> None:
        self._index.add(vector[None])
        written = self.folder / "vectors.tmp"
        faiss.write_index(self._index, str(written))
        sync(written)
        os.replace(written, self.folder / "vectors.faiss")
