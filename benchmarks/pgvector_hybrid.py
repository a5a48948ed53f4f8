"""What people assemble on PostgreSQL: pgvector and full-text search, fused by reciprocal rank in one statement.

The method is that of `examples/hybrid_search/rrf.py` of https://github.com/pgvector/pgvector-python: the 20 nearest by
cosine, the 20 best by `ts_rank_cd` of the texts that hold all words of the query, fused with k = 60. As the README of
pgvector recommends there are an HNSW index with its default parameters and a GIN index over `to_tsvector`, made after
the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PgvectorHybrid"]

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
        asked: dict[str, Any] = {"text": text, "vector": _literal(vector), "limit": limit}
        return [row[0] for row in self._connection.execute(_HYBRID, asked).fetchall()]

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
