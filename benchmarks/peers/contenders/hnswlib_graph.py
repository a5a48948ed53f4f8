"""hnswlib: an HNSW graph over float32, vectors alone."""

from __future__ import annotations

import os
from pathlib import Path

import hnswlib
import numpy as np

from benchmarks.dataset import FILTERS, Dataset, parts
from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, EFFORTS, TOP, Contender, Vector
from benchmarks.peers.contenders.assembled import sync

_ROOM = 1000


class Hnswlib(Contender):
    """Cosine; texts in a list. A filter is a Python function that it calls for each record that it meets."""

    efforts = EFFORTS

    def build(self, data: Dataset, folder: Path) -> None:
        count, dimension = data.vectors.shape
        index = hnswlib.Index(space="cosine", dim=dimension)
        index.init_index(max_elements=count, M=CONNECTIVITY, ef_construction=EF_CONSTRUCTION)
        index.add_items(np.asarray(data.vectors), np.arange(count))
        index.save_index(str(folder / "index.hnsw"))
        (folder / "dimension").write_text(str(dimension))
        (folder / "lines.txt").write_text("\n".join(data.lines), encoding="utf-8")

    def open(self, folder: Path) -> None:
        self._folder = folder
        self._lines = (folder / "lines.txt").read_text(encoding="utf-8").split("\n")
        self._index = hnswlib.Index(space="cosine", dim=int((folder / "dimension").read_text()))
        self._index.load_index(str(folder / "index.hnsw"), max_elements=len(self._lines) + _ROOM)
        belongs = parts(len(self._lines))
        self._allowed = {below: (belongs < below).tobytes() for below in FILTERS.values()}
        self._counts = {below: min(TOP, sum(allowed)) for below, allowed in self._allowed.items()}

    def vector(self, text: str, vector: Vector, below: int | None = None) -> list[tuple[int, str]]:
        if self.effort is not None:
            self._index.set_ef(self.effort)
        allowed = None if below is None else self._allowed[below]
        keep = None if allowed is None else lambda place: allowed[place] == 1
        # It fails if it finds fewer than it is asked for.
        count = TOP if below is None else self._counts[below]
        places = self._index.knn_query(vector, count, num_threads=1, filter=keep)[0][0].tolist()
        return [(place, self._lines[place]) for place in places]

    def insert(self, place: int, text: str, vector: Vector) -> None:
        self._index.add_items(vector[None], [place], num_threads=1)
        written = self._folder / "index.tmp"
        self._index.save_index(str(written))
        sync(written)
        os.replace(written, self._folder / "index.hnsw")
        self._lines.append(text)
        with (self._folder / "lines.txt").open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")
        sync(self._folder / "lines.txt")
