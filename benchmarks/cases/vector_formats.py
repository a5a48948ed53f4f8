"""HNSW indexes of pgvector over float32, over halves, and over the 8-bit codes that Recallite stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks import exact, postgres_server
from benchmarks.cases.postgres_candidates import connected, literal
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import interleaved, seconds

__all__ = ["CASE"]

_FORMATS = {"vector (float32)": "vector", "halfvec": "halfvec", "halfvec of 8-bit codes": "halfvec"}
_TOP = 10


@contextmanager
def _setup(context: Context) -> Iterator[Any]:
    with postgres_server.started() as server, connected(server.address()) as connection:
        connection.execute("SET maintenance_work_mem = '512MB'; SET max_parallel_maintenance_workers = 0")
        connection.execute("SET hnsw.ef_search = 200; SET enable_seqscan = off")
        yield connection


def _tables(connection: Any, context: Context) -> Iterator[Figures]:
    data = context.dataset
    vectors, queries = np.asarray(data.vectors), data.asked[: context.rounds]
    tenth = exact.tenth_best(vectors, queries)
    codes = np.round(127 * vectors / np.abs(vectors).max(axis=1, keepdims=True))
    rows: dict[str, dict[str, Any]] = {}
    for name, type_ in _FORMATS.items():
        column = f"{type_}({vectors.shape[1]})"
        connection.execute(f"CREATE TEMPORARY TABLE compared (id INT, value {column})".encode())
        with connection.cursor().copy("COPY compared FROM STDIN") as copy:
            for place, vector in enumerate(codes if "codes" in name else vectors):
                copy.write_row((place, literal(vector)))
        index = f"CREATE INDEX compared_near ON compared USING hnsw (value {type_}_cosine_ops)".encode()
        made = seconds(lambda index=index: connection.execute(index))
        (size,) = connection.execute("SELECT pg_relation_size('compared_near')").fetchone()
        query = f"SELECT id FROM compared ORDER BY value <=> %s::{column} LIMIT {_TOP}".encode()
        places: list[list[int]] = []

        def ask(number: int, query: bytes = query, places: list[list[int]] = places) -> None:
            places.append([row[0] for row in connection.execute(query, (literal(queries[number]),))])

        (figures,) = interleaved(Timing(name, {name: ask}, len(queries), warm_up=0)).values()
        rows[name] = {"made in, s": made, "MB": size / 1e6, "p50 ms": figures["p50 ms"]}
        rows[name]["recall@10"] = float(exact.recall(vectors, queries, tenth, places).mean())
        connection.execute("DROP TABLE compared")
    yield Figures("HNSW", rows)


CASE = Case("vector_formats", "pgvector's index over each format", _setup, _tables, records=(20_000,), rounds=50)
