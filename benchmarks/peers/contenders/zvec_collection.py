"""zvec: one collection with vectors, full text and an inverted part, with a write-ahead log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zvec
from zvec._zvec import _MultiQuery
from zvec.executor.query_executor import QueryContext

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import CONNECTIVITY, DEPTH, EF_CONSTRUCTION, EFFORTS, RRF_K, TOP, Contender, Vector

_ROWS = 1000
_DEFAULT_EF = 128


class Zvec(Contender):
    """HNSW over int8, with or without a refinement from float32, after `optimize`; its own RRF.

    Words are lowered and not stemmed: with its filter `stemmer`, `optimize` fails after an insert after an `optimize`
    (0.8.0, "source postings is not BitPacked"). Its int8 is not rotated: rotated, recall is .002.
    """

    efforts = tuple((ef, refined) for ef in EFFORTS for refined in (False, True))

    def build(self, data: Dataset, folder: Path) -> None:
        zvec.init(log_level=zvec.LogLevel.ERROR)
        index = zvec.HnswIndexParam(
            metric_type=zvec.MetricType.COSINE, m=CONNECTIVITY, ef_construction=EF_CONSTRUCTION,
            use_contiguous_memory=True, quantize_type=zvec.QuantizeType.INT8,
            quantizer_param=zvec.QuantizerParam(enable_rotate=False),
        )  # fmt: skip
        fields = [
            zvec.FieldSchema("text", zvec.DataType.STRING, index_param=zvec.FtsIndexParam("standard", ["lowercase"])),
            zvec.FieldSchema("part", zvec.DataType.INT32, index_param=zvec.InvertIndexParam()),
        ]
        vectors = [zvec.VectorSchema("vector", zvec.DataType.VECTOR_FP32, data.vectors.shape[1], index)]
        schema = zvec.CollectionSchema(name="memory", fields=fields, vectors=vectors)
        collection = zvec.create_and_open(str(folder / "collection"), schema)
        rows, belongs = np.asarray(data.vectors), parts(len(data.vectors)).tolist()
        for begin in range(0, len(rows), _ROWS):
            places = range(begin, min(begin + _ROWS, len(rows)))
            _insert(collection, [_document(place, data.lines[place], rows[place], belongs[place]) for place in places])
        collection.optimize()
        collection.flush()
        collection.close()

    def open(self, folder: Path) -> None:
        self._collection = zvec.open(str(folder / "collection"))
        self._reranker = zvec.RrfReRanker(rank_constant=RRF_K)

    def vector(self, text: str, vector: Vector, below: int | None = None) -> list[Any]:
        query = zvec.Query("vector", vector=vector, param=self._wide(0))
        documents: list[Any] = self._collection.query(query, topk=TOP, output_fields=["text"], filter=_filter(below))
        return documents

    def hybrid(self, text: str, vector: Vector, below: int | None = None) -> list[Any]:
        # `query` fuses only as many candidates of a route as it returns: these are its calls, with a hundred a route.
        querier, collection = self._collection._querier, self._collection._obj
        context = QueryContext(
            topk=TOP, filter=_filter(below), output_fields=["text"], reranker=self._reranker,
            queries=[
                zvec.Query("vector", vector=vector, param=self._wide(DEPTH)),
                zvec.Query("text", fts=zvec.Fts(match_string=text)),
            ],
        )  # fmt: skip
        multi: _MultiQuery = querier._build_multi_query(context, querier._build_queries(context, collection))
        routes = multi.queries
        for route in routes:
            route.num_candidates = DEPTH
        multi.queries = routes
        documents: list[Any] = collection.Query(multi)
        return documents

    def insert(self, place: int, text: str, vector: Vector) -> None:
        _insert(self._collection, [_document(place, text, vector, 999)])
        self._collection.flush()

    def places(self, answer: list[Any]) -> list[int]:
        return [int(document.id) for document in answer]

    def close(self) -> None:
        self._collection.close()

    def _wide(self, least: int) -> Any:
        ef, refined = self.effort or (_DEFAULT_EF, False)
        scale = (1.0 if least else 2.0) if refined else 0.0
        return zvec.HnswQueryParam(ef=max(ef, least), is_using_refiner=refined, scale_factor=scale)


def _document(place: int, text: str, vector: Vector, part: int) -> Any:
    return zvec.Doc(id=str(place), vectors={"vector": vector}, fields={"text": text, "part": part})


def _insert(collection: Any, documents: list[Any]) -> None:
    for status in collection.insert(documents):
        assert status.ok(), status


def _filter(below: int | None) -> str | None:
    return None if below is None else f"part < {below}"
