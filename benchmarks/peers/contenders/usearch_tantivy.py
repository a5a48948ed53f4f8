"""usearch: an HNSW graph over int8, rescored from float32, with tantivy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from usearch.index import Index

from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, TOP, Vector
from benchmarks.peers.contenders.assembled import Assembled, sync

_DEFAULT_EF = 128
_RESCORED = 4


class UsearchTantivy(Assembled):
    """Its graph of int8 vectors in memory; four times the hits are rescored from the float32 of a mapped file."""

    def build_vectors(self, vectors: Vector, folder: Path) -> None:
        index = Index(
            ndim=vectors.shape[1], metric="cos", dtype="i8", connectivity=CONNECTIVITY, expansion_add=EF_CONSTRUCTION
        )
        index.add(np.arange(len(vectors)), vectors)
        index.save(str(folder / "vectors.usearch"))
        vectors.tofile(folder / "vectors.f32")

    def open_vectors(self, folder: Path) -> None:
        self._index = Index.restore(str(folder / "vectors.usearch"))
        self._map()

    def near(self, vector: Vector, count: int, below: int | None) -> Any:
        if below is not None:
            return self.rescored(self.allowed[below], vector, count)
        wide = max(count, TOP * _RESCORED)
        self._index.expansion_search = max(self.effort or _DEFAULT_EF, wide if count > TOP else TOP * 2)
        # One query needs one thread: waking two takes longer than the search.
        matches = self._index.search(vector, min(wide, self._index.expansion_search), threads=1)
        return self.rescored(matches.keys.astype(np.int64), vector, count)

    def add_vector(self, place: int, vector: Vector) -> None:
        self._index.add(place, vector)
        self._index.save(str(self.folder / "vectors.usearch"))
        with (self.folder / "vectors.f32").open("ab") as file:
            file.write(vector.tobytes())
        for name in ("vectors.usearch", "vectors.f32"):
            sync(self.folder / name)
        self._map()

    def _map(self) -> None:
        self.floats = np.memmap(self.folder / "vectors.f32", np.float32, "r").reshape(-1, self._index.ndim)
