"""usearch and hnswlib: HNSW graphs. A contender imports its library itself: its process may have one of them only."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, TOP, Mode, Vector


class Usearch:
    """usearch: cosine over float32, read into memory (not `view`ed), without a filter. The file is written whole."""

    def build(self, data: Dataset, folder: Path) -> None:
        import usearch.index

        index = usearch.index.Index(
            ndim=data.vectors.shape[1],
            metric="cos",
            dtype="f32",
            connectivity=CONNECTIVITY,
            expansion_add=EF_CONSTRUCTION,
        )
        index.add(np.arange(len(data.vectors)), np.asarray(data.vectors))
        index.save(str(folder / "index.usearch"))

    def open(self, folder: Path) -> dict[str, Mode]:
        import usearch.index

        index = usearch.index.Index.restore(str(folder / "index.usearch"))

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


class Hnswlib:
    """hnswlib: cosine over float32. A filter is a Python function called for each record. The file is written whole."""

    def build(self, data: Dataset, folder: Path) -> None:
        import hnswlib

        count, dimension = data.vectors.shape
        index = hnswlib.Index(space="cosine", dim=dimension)
        index.init_index(max_elements=count, M=CONNECTIVITY, ef_construction=EF_CONSTRUCTION)
        index.add_items(np.asarray(data.vectors), np.arange(count))
        index.save_index(str(folder / "index.hnsw"))
        (folder / "dimension").write_text(str(dimension))

    def open(self, folder: Path) -> dict[str, Mode]:
        import hnswlib

        index = hnswlib.Index(space="cosine", dim=int((folder / "dimension").read_text()))
        index.load_index(str(folder / "index.hnsw"))
        belongs = parts(index.get_current_count())

        def filtered(_: str, vector: Vector, below: int) -> list[int]:
            mask = (belongs < below).tobytes()
            labels, _distances = index.knn_query(vector, TOP, num_threads=1, filter=lambda place: mask[place] == 1)
            return labels

        return {
            "vector": Mode(
                lambda _, vector: index.knn_query(vector, TOP, num_threads=1)[0],
                many=lambda _, vectors: index.knn_query(vectors, TOP)[0],
                filtered=filtered,
                places=lambda labels: labels[0].tolist(),
                effort=index.set_ef,
            )
        }

    def warm(self) -> None:
        pass
