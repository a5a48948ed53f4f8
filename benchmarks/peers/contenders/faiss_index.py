"""faiss: an exact index and an HNSW graph."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, TOP, Mode, Vector


class FaissFlat:
    """IndexFlatIP. A filter is a bitmap of places, made for every query. The file is written whole."""

    def build(self, data: Dataset, folder: Path) -> None:
        index = self._new(data.vectors.shape[1])
        index.add(np.asarray(data.vectors))
        faiss.write_index(index, str(folder / "index.faiss"))

    def open(self, folder: Path) -> dict[str, Mode]:
        self._index = faiss.read_index(str(folder / "index.faiss"))
        self._parts = parts(self._index.ntotal)
        return {"vector": self._mode()}

    def warm(self) -> None:
        pass

    def _new(self, dimension: int) -> faiss.Index:
        return faiss.IndexFlatIP(dimension)

    def _mode(self) -> Mode:
        return Mode(self._ask, many=self._many, filtered=self._filtered, places=_places, exact=True)

    def _ask(self, _: str, vector: Vector) -> np.ndarray:
        return self._index.search(vector[None, :], TOP)[1]

    def _many(self, _: object, vectors: Vector) -> np.ndarray:
        return self._index.search(vectors, TOP)[1]

    def _filtered(self, _: str, vector: Vector, below: int) -> np.ndarray:
        bitmap = np.packbits(self._parts < below, bitorder="little")
        selector = faiss.IDSelectorBitmap(bitmap)
        return self._index.search(vector[None, :], TOP, params=self._parameters(selector))[1]

    def _parameters(self, selector: faiss.IDSelector) -> faiss.SearchParameters:
        return faiss.SearchParameters(sel=selector)


class FaissHnsw(FaissFlat):
    """IndexHNSWFlat by inner product of unit vectors."""

    def _new(self, dimension: int) -> faiss.Index:
        index = faiss.IndexHNSWFlat(dimension, CONNECTIVITY, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EF_CONSTRUCTION
        return index

    def _mode(self) -> Mode:
        return Mode(self._ask, many=self._many, filtered=self._filtered, places=_places, effort=self._effort)

    def _effort(self, ef: int) -> None:
        self._index.hnsw.efSearch = ef

    def _parameters(self, selector: faiss.IDSelector) -> faiss.SearchParameters:
        return faiss.SearchParametersHNSW(sel=selector, efSearch=self._index.hnsw.efSearch)


def _places(neighbors: np.ndarray) -> list[int]:
    return [place for place in neighbors[0].tolist() if place >= 0]
