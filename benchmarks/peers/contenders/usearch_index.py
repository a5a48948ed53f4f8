"""usearch: an HNSW graph. Its Python interface has no filter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from usearch.index import Index

from benchmarks.dataset import Dataset
from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, TOP, Mode


class Usearch:
    """Cosine over float32, read into memory (not `view`ed). The file is written whole."""

    def build(self, data: Dataset, folder: Path) -> None:
        index = Index(
            ndim=data.vectors.shape[1],
            metric="cos",
            dtype="f32",
            connectivity=CONNECTIVITY,
            expansion_add=EF_CONSTRUCTION,
        )
        index.add(np.arange(len(data.vectors)), np.asarray(data.vectors))
        index.save(str(folder / "index.usearch"))

    def open(self, folder: Path) -> dict[str, Mode]:
        index = Index.restore(str(folder / "index.usearch"))

        def effort(ef: int) -> None:
            index.expansion_search = ef

        return {
            "vector": Mode(
                # One query needs one thread: waking two takes longer than the search.
                lambda _, vector: index.search(vector, TOP, threads=1),
                many=lambda _, vectors: index.search(vectors, TOP),
                places=lambda matches: matches.keys.tolist(),
                effort=effort,
            )
        }

    def warm(self) -> None:
        pass
