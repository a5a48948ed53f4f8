"""turbovec: 4-bit codes scanned whole, rescored from float32, with tantivy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from turbovec import IdMapIndex

from benchmarks.dataset import Dataset
from benchmarks.peers.contender import DEPTH, TOP, Vector, reciprocal_rank_fusion
from benchmarks.peers.contenders.assembled import Assembled, sync

_DEFAULT_RESCORED = 32
_CALIBRATED = 10_000


class TurbovecTantivy(Assembled):
    """Codes calibrated on a sample; the best `effort` are rescored from the float32 of a mapped file.

    A filter is its list of allowed ids.
    """

    efforts = (10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)

    def build_vectors(self, vectors: Vector, folder: Path) -> None:
        index = IdMapIndex(dim=vectors.shape[1], bit_width=4)
        index.calibrate(np.ascontiguousarray(vectors[:: max(1, len(vectors) // _CALIBRATED)]))
        index.add_with_ids(vectors, np.arange(len(vectors), dtype=np.uint64))
        index.sync(str(folder / "vectors.tvim"))
        vectors.tofile(folder / "vectors.f32")

    def open_vectors(self, folder: Path) -> None:
        self._index = IdMapIndex.load(str(folder / "vectors.tvim"))
        self._index.prepare()
        self._ids = {below: places.astype(np.uint64) for below, places in self.allowed.items()}
        self._map()

    def build(self, data: Dataset, folder: Path) -> None:
        super().build(data, folder)
        (folder / "dimension").write_text(str(data.vectors.shape[1]))

    def near(self, vector: Vector, count: int, below: int | None) -> Any:
        allowed = {} if below is None else {"allowlist": self._ids[below]}
        return self._best(self._index.search(vector[None], self._wide(count), **allowed)[1][0], vector, count)

    def hybrid_many(self, texts: Sequence[str], vectors: Vector) -> object:
        nearest = self._index.search(vectors, self._wide(DEPTH))[1]
        near = [self._best(ids, vector, DEPTH).tolist() for ids, vector in zip(nearest, vectors, strict=True)]
        matching = (self._matching(text, None) for text in texts)
        return [self._with_texts(reciprocal_rank_fusion(*rankings)) for rankings in zip(near, matching, strict=True)]

    def add_vector(self, place: int, vector: Vector) -> None:
        self._index.add_with_ids(vector[None], np.array([place], np.uint64))
        self._index.sync(str(self.folder / "vectors.tvim"))
        with (self.folder / "vectors.f32").open("ab") as file:
            file.write(vector.tobytes())
        sync(self.folder / "vectors.f32")
        self._map()

    def _wide(self, count: int) -> int:
        return max(count, self.effort or _DEFAULT_RESCORED)

    def _best(self, ids: Any, vector: Vector, count: int) -> Any:
        places = ids.astype(np.int64)
        return places if len(places) <= count and (self.effort or 0) <= TOP else self.rescored(places, vector, count)

    def _map(self) -> None:
        dimension = int((self.folder / "dimension").read_text())
        self.floats = np.memmap(self.folder / "vectors.f32", np.float32, "r").reshape(-1, dimension)
