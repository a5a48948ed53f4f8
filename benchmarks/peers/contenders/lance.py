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
from benchmarks.peers.contender import CONNECTIVITY, EF_CONSTRUCTION, EFFORTS, TOP, Mode, Vector

_ROWS = 50_000
# Candidates that are scored again from the float vectors, as a multiple of those asked for.
_REFINED = 5


class LanceDb:
    """IVF_HNSW_SQ with the best refined from float32, FTS with stems and stop words, a B-tree on the part."""

    def build(self, data: Dataset, folder: Path) -> None:
        schema = pyarrow.schema(
            {
                "place": pyarrow.int64(),
                "text": pyarrow.string(),
                "part": pyarrow.int16(),
                "vector": pyarrow.list_(pyarrow.float32(), data.vectors.shape[1]),
            }
        )
        table = lancedb.connect(folder).create_table("memory", schema=schema)
        belongs = parts(len(data.vectors))
        for begin in range(0, len(belongs), _ROWS):
            rows = slice(begin, begin + _ROWS)
            vectors = np.asarray(data.vectors[rows])
            columns = [
                pyarrow.array(np.arange(begin, begin + len(vectors))),
                pyarrow.array(data.lines[rows]),
                pyarrow.array(belongs[rows]),
                pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), vectors.shape[1]),
            ]
            table.add(pyarrow.table(columns, schema=schema))
        table.create_index(
            "vector", config=HnswSq(distance_type="cosine", m=CONNECTIVITY, ef_construction=EF_CONSTRUCTION)
        )
        table.create_index("text", config=FTS())
        table.create_index("part", config=BTree())

    def open(self, folder: Path) -> dict[str, Mode]:
        self._table = lancedb.connect(folder).open_table("memory")
        self._reranker = RRFReranker()
        self._ef = EFFORTS[-1]
        return {
            "hybrid": Mode(
                lambda text, vector: self._hybrid(text, vector).to_list(),
                filtered=lambda text, vector, below: self._hybrid(text, vector).where(f"part < {below}").to_list(),
                places=_places,
            ),
            "vector": Mode(
                lambda _, vector: self._nearest(vector).to_list(),
                filtered=lambda _, vector, below: self._nearest(vector).where(f"part < {below}").to_list(),
                places=_places,
                effort=self._effort,
                # It refuses an ef below the candidates that it is to refine.
                efforts=[ef for ef in EFFORTS if ef >= TOP * _REFINED],
            ),
        }

    def warm(self) -> None:
        pass

    def _effort(self, ef: int) -> None:
        self._ef = ef

    def _nearest(self, vector: Vector) -> Any:
        query = self._table.search(vector).distance_type("cosine").select(["place", "text"])
        return query.ef(self._ef).refine_factor(_REFINED).limit(TOP)

    def _hybrid(self, text: str, vector: Vector) -> Any:
        query = self._table.search(query_type="hybrid").vector(vector).text(MatchQuery(text, "text"))
        query = query.distance_type("cosine").select(["place", "text"]).ef(self._ef).refine_factor(_REFINED)
        return query.rerank(self._reranker).limit(TOP)


def _places(rows: list[dict[str, Any]]) -> list[int]:
    return [row["place"] for row in rows]
