"""Quality on LoCoMo beside pgvector and full-text search, fused by reciprocal rank in one SQL statement.

The statement is that of `examples/hybrid_search/rrf.py` of https://github.com/pgvector/pgvector-python: the 20 nearest
by cosine, the 20 best by `ts_rank_cd` of the texts that hold all words of the query, fused with k = 60. There are an
HNSW index with its default parameters and a GIN index over `to_tsvector`, made after the rows, as pgvector's README
recommends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import postgres_server
from benchmarks.harness.case import Case, Context, Figures
from benchmarks.quality import locomo
from benchmarks.quality.metrics import ndcg_at_k, recall_at_k, reciprocal_rank
from recallite import Memory
from tests.system.postgres.server import PostgresServer

__all__ = ["CASE", "PgvectorHybrid"]

_LIMIT = 20

_CANDIDATES, _RRF_K = 20, 60
_HYBRID = f"""
WITH near AS (
    SELECT id, rank() OVER (ORDER BY embedding <=> %(vector)s::vector) AS place FROM documents
    ORDER BY embedding <=> %(vector)s::vector LIMIT {_CANDIDATES}
), matching AS (
    SELECT id, rank() OVER (ORDER BY ts_rank_cd(to_tsvector('english', content), words) DESC) AS place
    FROM documents, plainto_tsquery('english', %(text)s) words
    WHERE to_tsvector('english', content) @@ words
    ORDER BY ts_rank_cd(to_tsvector('english', content), words) DESC LIMIT {_CANDIDATES}
)
SELECT id, coalesce(1.0 / ({_RRF_K} + near.place), 0) + coalesce(1.0 / ({_RRF_K} + matching.place), 0) AS score
FROM near FULL JOIN matching USING (id) ORDER BY score DESC, id LIMIT %(limit)s
"""


class PgvectorHybrid:
    """The table `documents` in a schema of its own."""

    def __init__(self, address: str, schema: str, dimension: int) -> None:
        import psycopg

        self._connection = psycopg.connect(address, autocommit=True)
        self._schema = schema
        self._connection.execute(f"CREATE SCHEMA {schema}".encode())
        self._connection.execute(f"SET search_path = {schema}, public".encode())
        columns = f"id bigint PRIMARY KEY, content text NOT NULL, embedding vector({dimension})"
        self._connection.execute(f"CREATE TABLE documents ({columns})".encode())

    def fill(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Store texts by place, and index them."""
        with self._connection.cursor().copy("COPY documents FROM STDIN") as copy:
            for place, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
                copy.write_row((place, text, _literal(vector)))
        for index in ("GIN (to_tsvector('english', content))", "hnsw (embedding vector_cosine_ops)"):
            self._connection.execute(f"CREATE INDEX ON documents USING {index}".encode())
        self._connection.execute("VACUUM ANALYZE documents")

    def recall(self, text: str, vector: NDArray[np.float32], limit: int) -> list[int]:
        """The places of the best texts, best first."""
        parameters: dict[str, Any] = {"text": text, "vector": _literal(vector), "limit": limit}
        return [row[0] for row in self._connection.execute(_HYBRID, parameters).fetchall()]

    def size(self) -> int:
        """Bytes of the table and its indexes."""
        row = self._connection.execute("SELECT pg_total_relation_size('documents')").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Drop everything."""
        self._connection.execute(f"DROP SCHEMA {self._schema} CASCADE".encode())
        self._connection.close()


def _literal(vector: NDArray[np.float32]) -> str:
    return f"[{','.join(map(repr, vector.tolist()))}]"


@contextmanager
def _setup(context: Context) -> Iterator[PostgresServer]:
    context.need("data")
    with postgres_server.started() as server:
        yield server


def _tables(server: PostgresServer, context: Context) -> Iterator[Figures]:
    scores: dict[str, list[dict[str, float]]] = {"Recallite on PostgreSQL": [], "pgvector and tsvector, RRF in SQL": []}
    ours, theirs = scores.values()
    for number, conversation in enumerate(locomo.read(context.need("data"))):
        if number == context.records:
            break
        texts = [turn["text"] for turn in conversation.turns]
        contexts = [turn.get("context") for turn in conversation.turns]
        vectors, owners = context.model.embed_documents(texts, contexts)
        hybrid = PgvectorHybrid(server.address(), f"locomo{number}", vectors.shape[1])
        # Of a long turn the vector of the first part: a row has one.
        firsts = vectors[np.searchsorted(owners, np.arange(len(texts)))]
        hybrid.fill([f"{who}: {text}" for who, text in zip(contexts, texts, strict=True)], firsts)
        query_vectors = context.model.embed([question.text for question in conversation.questions])
        with Memory(server.address(schema=f"ours{number}"), embedder=context.model) as memory:
            places = {id: place for place, id in enumerate(memory.remember_many(conversation.turns))}
            for question, vector in zip(conversation.questions, query_vectors, strict=True):
                hits = memory.recall(question.text, limit=_LIMIT)
                ours.append(_scores([places[hit.id] for hit in hits], question.gold))
                theirs.append(_scores(hybrid.recall(question.text, vector, _LIMIT), question.gold))
        hybrid.close()
        context.model.flush()
    rows: dict[str, dict[str, Any]] = {
        way: {name: fmean(one[name] for one in figures) for name in figures[0]} | {"questions": len(figures)}
        for way, figures in scores.items()
    }
    yield Figures("LoCoMo, development part", rows)


def _scores(ranked: list[int], gold: frozenset[int]) -> dict[str, float]:
    places = list(dict.fromkeys(ranked))
    return {
        "recall@20": recall_at_k(places, gold, _LIMIT),
        "nDCG@20": ndcg_at_k(places, gold, _LIMIT),
        "MRR": reciprocal_rank(places, gold),
    }


CASE = Case(
    "pgvector",
    "quality on LoCoMo beside pgvector with full-text search",
    _setup,
    _tables,
    (10,),
    rounds=1,
    unit="conversations",
)
