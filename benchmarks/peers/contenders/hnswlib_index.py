"""hnswlib: an HNSW graph. A filter is a Python function called for each record that the search meets."""

from __future__ import annotations

from pathlib import Path

import hnswlib
import numpy as np

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, TOP, Mode, Vector


class Hnswlib:
    """Cosine over float32. The file is written whole."""

    def build(self, data: Dataset, folder: Path) -> None:
        count, dimension = data.vectors.shape
        index = hnswlib.Index(space="cosine", dim=dimension)
        index.init_index(max_elements=count, M=CONNECTIVITY, ef_construction=EF_CONSTRUCTION)
        index.add_items(np.asarray(data.vectors), np.arange(count))
        index.save_index(str(folder / "index.hnsw"))
        (folder / "dimension").write_text(str(dimension))

    def open(self, folder: Path) -> dict[str, Mode]:
        index = hnswlib.Index(space="cosine", dim=int((folder / "dimension").read_text()))
        index.load_index(str(folder / "index.hnsw"))
        belongs = parts(index.get_current_count())

        def filtered(_: str, vector: Vector, below: int) -> list[int]:
            kept = (belongs < below).tobytes()
            found, _distances = index.knn_query(vector, TOP, num_threads=1, filter=lambda place: kept[place] == 1)
            return found

        return {
            "vector": Mode(
                lambda _, vector: index.knn_query(vector, TOP, num_threads=1)[0],
                many=lambda _, vectors: index.knn_query(vectors, TOP)[0],
                filtered=filtered,
                places=lambda found: found[0].tolist(),
                effort=index.set_ef,
            )
        }

    def warm(self) -> None:
        pass
