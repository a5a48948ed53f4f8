"""LanceDB: its vector index, its full-text index and its hybrid search with its RRF reranker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow
from lancedb.index import FTS, BTree, HnswSq
from lancedb.query import MatchQuery
from lancedb.rerankers import RRFReranker

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import CONNECTIVITY, DEPTH, EF_CONSTRUCTION, RRF_K, TOP, Contender, Vector

_DEFAULT_EF = 128
# Candidates that are scored again from the float vectors, as a multiple of those asked for.
_REFINED = 2


class LanceDb(Contender):
    """IVF_HNSW_SQ of one partition refined from float32, FTS with stems and stop words, a B-tree on the part.

    All three indexes are made of the whole table, then it is optimised.
    """

    # It refuses an ef below the candidates that it is to refine.
    efforts = (24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)

    def build(self, data: Dataset, folder: Path) -> None:
        vectors = np.asarray(data.vectors)
        columns = {
            "place": pyarrow.array(np.arange(len(vectors))),
            "text": pyarrow.array(data.lines),
            "part": pyarrow.array(parts(len(vectors))),
            "vector": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), vectors.shape[1]),
        }
        table = lancedb.connect(folder).create_table("memory", pyarrow.table(columns))
        graph = HnswSq(distance_type="cosine", num_partitions=1, m=CONNECTIVITY, ef_construction=EF_CONSTRUCTION)
        table.create_index("vector", config=graph)
        table.create_index("text", config=FTS(with_position=False))
        table.create_index("part", config=BTree())
        table.optimize()

    def open(self, folder: Path) -> None:
        self._table = lancedb.connect(folder).open_table("memory")
        self._reranker = RRFReranker(K=RRF_K)

    def vector(self, text: str, vector: Vector, below: int | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._near(self._table.search(vector), TOP, below).limit(TOP).to_list()
        return rows

    def hybrid(self, text: str, vector: Vector, below: int | None = None) -> list[dict[str, Any]]:
        query = self._table.search(query_type="hybrid").vector(vector).text(MatchQuery(text, "text"))
        fused = self._near(query, DEPTH, below).rerank(self._reranker).limit(DEPTH).to_arrow()
        rows: list[dict[str, Any]] = fused.slice(0, TOP).to_pylist()
        return rows

    def insert(self, place: int, text: str, vector: Vector) -> None:
        self._table.add([{"place": place, "text": text, "part": 999, "vector": vector}])

    def places(self, answer: list[dict[str, Any]]) -> list[int]:
        return [row["place"] for row in answer]

    def _near(self, query: Any, count: int, below: int | None) -> Any:
        wide = max(self.effort or _DEFAULT_EF, count)
        query = query.distance_type("cosine").select(["place", "text"]).ef(wide)
        query = query.refine_factor(_REFINED if count == TOP else 1)
        return query if below is None else query.where(f"part < {below}", prefilter=True)
