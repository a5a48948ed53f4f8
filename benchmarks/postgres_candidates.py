"""python -m benchmarks.postgres_candidates --address URL --corpus FILE --cache DIR: candidates from a server.

A memory of 100,000 records on a PostgreSQL server with pgvector, made as `ways` makes its own, is asked by the index in
memory and by the server's indexes, in turn, without a filter and with filters by scope that keep 10 %, 1 % and 0.1 %.
Told are recall@10 against the exact nearest vectors (`mode="vector"`), how many of the ten hits of a plain recall both
ways share, and times. Beside them stands what pgvector finds by itself with LIMIT 10, with and without iterative scans.

`--formats` copies so many vectors into tables of their own and compares indexes of float32 (`vector`), of `halfvec` and
of the 8-bit codes that Recallite stores: seconds to make, bytes and recall@10.

The schema of the address is made by the first run, and asked again by the next; drop it to measure writing again.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from rich.console import Console

from benchmarks import dataset, exact, saving, ways
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.dataset import Dataset
from benchmarks.environment import describe
from benchmarks.latency.figures import percentiles
from benchmarks.tables import milliseconds, table
from recallite import Memory, Settings
from recallite.embedding import load
from recallite.store.postgres.address import parse_address

__all__ = ["main", "markdown", "measure"]

RESULTS = Path(__file__).resolve().parent / "results" / "postgres_candidates.json"
RECORDS, QUESTIONS, TOP = 100_000, 100, 10
_WARM_UP = 5
_UNTIL = datetime(2026, 11, 1, tzinfo=UTC)
_FILTERS = {"none": "", "10 %": "10 %", "1 %": "1 %", "0.1 %": "0.1 %"}
_FORMATS = {
    "vector (float32)": ("vector({dimension})", "vector_cosine_ops"),
    "halfvec": ("halfvec({dimension})", "halfvec_cosine_ops"),
    "halfvec of 8-bit codes": ("halfvec({dimension})", "halfvec_cosine_ops"),
}


def main() -> None:
    """Measure, save and print."""
    options = saving.arguments(_parser())
    if not options.render:
        console = Console(stderr=True)
        with tempfile.TemporaryDirectory() as temporary:
            embedder = CachedEmbedder(load("default"), options.cache)
            folder = (options.work or Path(temporary)) / f"records-{options.records}"
            folder.mkdir(exist_ok=True)
            data = dataset.prepare(folder, options.corpus, options.records, embedder, saving.progress(console))
            saved = {
                **saving.read(options.out),
                "command": "python -m benchmarks.postgres_candidates --address URL --corpus FILE --cache DIR",
                **describe(),
                "load_before": round(os.getloadavg()[0], 1),
                **measure(options.address, data, options.questions, console.log),
            }
            saving.write(saved, options.out)
            if options.formats:
                saved["formats"] = formats(options.address, data, options.formats, options.questions, console.log)
                saving.write(saved, options.out)
    print(markdown(saving.read(options.out)))


def measure(address: str, data: Dataset, questions: int, log: Callable[[str], None] = print) -> dict[str, Any]:
    """The figures of both ways by filter, and what making the indexes took."""
    found: dict[str, Any] = {"records": len(data.lines), "questions": questions, "made": _prepared(address, data, log)}
    by_memory = Memory(address, settings=Settings(query_cache_size=0, candidates="memory"))
    by_server = Memory(address, settings=Settings(query_cache_size=0, candidates="server"))
    with by_memory, by_server:
        by_memory.warmup()
        for name, kept in _FILTERS.items():
            fields = {"scope": ways._SCOPES[kept]} if kept else {}
            pair = {"memory": by_memory, "server": by_server}
            found.setdefault("filters", {})[name] = _compared(pair, data, kept, fields, questions)
            found["filters"][name]["pgvector"] = _alone(address, data, kept, fields, questions)
            log(f"{name}: {found['filters'][name]}")
    return found


def _prepared(address: str, data: Dataset, log: Callable[[str], None]) -> dict[str, Any]:
    """Write the records where there are none, and make the indexes where they are missing."""
    made: dict[str, Any] = {}
    with Memory(address, settings=Settings(query_cache_size=0, candidates="server")) as memory:
        if not memory.count():
            began = time.perf_counter()
            memory.remember_many(ways.items(data, _UNTIL))
            made["write_s"] = round(time.perf_counter() - began, 1)
            log(f"written in {made['write_s']} s")
        before = memory.stats().index["indexes"]
        began = time.perf_counter()
        memory.warmup()
        if not before:
            made["indexes_s"] = round(time.perf_counter() - began, 1)
        stats = memory.stats()
        made |= {"index_bytes": stats.index["indexes"], "bytes": stats.bytes_on_disk, "database": stats.database}
        made["vector_extension"] = stats.vector_extension
        log(f"indexes: {made}")
    return made


def _compared(
    pair: dict[str, Memory], data: Dataset, kept: str, fields: dict[str, Any], questions: int
) -> dict[str, Any]:
    """recall@10 and times of each way, and the hits that both share."""
    nearest: dict[str, list[list[int]]] = {name: [] for name in pair}
    hits: dict[str, list[set[str]]] = {name: [] for name in pair}
    elapsed: dict[str, list[float]] = {name: [] for name in pair}
    for number in range(_WARM_UP + questions):
        place = (number - _WARM_UP) % questions
        text, vector = data.questions[place], data.asked[place]
        for name in sorted(pair, reverse=bool(number % 2)):
            memory = pair[name]
            began = time.perf_counter()
            found = memory.recall(text, vector=vector, limit=TOP, count_access=False, **fields)
            taken = (time.perf_counter() - began) * 1e3
            if number < _WARM_UP:
                continue
            elapsed[name].append(taken)
            hits[name].append({hit.id for hit in found})
            near = memory.recall(text, vector=vector, limit=TOP, mode="vector", count_access=False, **fields)
            nearest[name].append([hit.metadata["line"] for hit in near])
    shared = [len(one & other) / max(1, len(one)) for one, other in zip(*hits.values(), strict=True)]
    figures: dict[str, Any] = {
        name: {
            **percentiles(elapsed[name]),
            "recall_at_10": round(float(data.recall(nearest[name], kept).mean()), 4),
            "hits": round(float(np.mean([len(each) for each in hits[name]])), 2),
        }
        for name in pair
    }
    return {**figures, "shared_hits_at_10": round(float(np.mean(shared)), 4)}


def _alone(address: str, data: Dataset, kept: str, fields: dict[str, Any], questions: int) -> dict[str, Any]:
    """What pgvector returns for LIMIT 10 without and with iterative scans, at its own ef_search of 40."""
    scope = fields.get("scope", "/")
    within = "" if scope == "/" else "AND (s.path = %(scope)s OR s.path LIKE %(below)s)"
    query = (
        "SELECT (r.metadata::json->>'line')::int FROM vector_packed p JOIN vector v ON v.id = p.id "
        f"JOIN record r ON r.id = v.record_id JOIN scope s ON s.id = r.scope_id WHERE p.embedder_id = 1 {within} "
        f"ORDER BY packed_codes(p.value, {data.asked.shape[1]})::halfvec({data.asked.shape[1]}) "
        f"<=> %(asked)s::halfvec({data.asked.shape[1]}) LIMIT {TOP}"
    )
    found: dict[str, Any] = {}
    with _connected(address) as connection:
        # Where a filter admits few, PostgreSQL would not ask the index.
        connection.execute("SET enable_sort = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
        for name in ("off", "relaxed_order", "strict_order"):
            connection.execute(f"SET hnsw.iterative_scan = {name}")
            places, elapsed = [], []
            for vector in data.asked[:questions]:
                bound = {"scope": scope, "below": f"{scope}/%", "asked": _text(vector)}
                began = time.perf_counter()
                places.append([row[0] for row in connection.execute(query, bound)])
                elapsed.append((time.perf_counter() - began) * 1e3)
            found[name] = {
                **percentiles(elapsed),
                "recall_at_10": round(float(data.recall(places, kept).mean()), 4),
                "hits": round(float(np.mean(list(map(len, places)))), 2),
            }
    return found


def formats(
    address: str, data: Dataset, count: int, questions: int, log: Callable[[str], None] = print
) -> dict[str, Any]:
    """Indexes of the first `count` vectors in each format: seconds to make, bytes, milliseconds and recall@10."""
    vectors = np.asarray(data.vectors[:count])
    tenth = exact.tenth_best(vectors, data.asked[:questions])
    codes = np.round(127 * vectors / np.abs(vectors).max(axis=1, keepdims=True))
    found: dict[str, Any] = {"records": count}
    with _connected(address) as connection:
        connection.execute("SET search_path = public")  # a memory has a table `vector`, whose rows are a type
        for name, (type, operators) in _FORMATS.items():
            column = type.format(dimension=vectors.shape[1])
            connection.execute(f"CREATE TEMPORARY TABLE compared (id INT, value {column})".encode())
            rows = codes if "codes" in name else vectors
            with connection.cursor().copy("COPY compared FROM STDIN") as copy:
                for place, vector in enumerate(rows):
                    copy.write_row((place, _text(vector)))
            connection.execute("SET maintenance_work_mem = '512MB'; SET max_parallel_maintenance_workers = 0")
            began = time.perf_counter()
            connection.execute(f"CREATE INDEX compared_near ON compared USING hnsw (value {operators})".encode())
            made_s = time.perf_counter() - began
            (size,) = connection.execute("SELECT pg_relation_size('compared_near')").fetchone() or (0,)
            connection.execute("SET hnsw.ef_search = 200; SET enable_seqscan = off")
            query = f"SELECT id FROM compared ORDER BY value <=> %s::{column} LIMIT {TOP}".encode()
            places, elapsed = [], []
            for vector in data.asked[:questions]:
                began = time.perf_counter()
                places.append([row[0] for row in connection.execute(query, (_text(vector),))])
                elapsed.append((time.perf_counter() - began) * 1e3)
            found[name] = {
                "made_s": round(made_s, 1), "bytes": size, **percentiles(elapsed),
                "recall_at_10": round(float(exact.recall(vectors, data.asked, tenth, places).mean()), 4),
            }  # fmt: skip
            log(f"{name}: {found[name]}")
            connection.execute("DROP TABLE compared")
    return found


def _connected(address: str) -> psycopg.Connection[Any]:
    parsed = parse_address(address)
    connection = psycopg.connect(**parsed.parameters, autocommit=True)  # type: ignore[arg-type]
    connection.execute("SELECT set_config('search_path', %s, false)", (f"{parsed.schema}, public",))
    connection.execute("SET jit = off")
    with suppress(psycopg.Error):
        connection.execute("LOAD 'vector'")
    return connection


def _text(vector: Sequence[float] | np.ndarray[Any, Any]) -> str:
    return f"[{','.join(f'{value:.6g}' for value in vector)}]"


def markdown(saved: dict[str, Any]) -> str:
    """The tables: both ways by filter, and the formats."""
    rows = []
    for name, found in saved["filters"].items():
        memory, server, alone = found["memory"], found["server"], found["pgvector"]
        rows.append([
            name,
            f"{memory['recall_at_10']:.3f}", f"{server['recall_at_10']:.3f}", f"{found['shared_hits_at_10']:.3f}",
            f"{milliseconds(memory['p50_ms'])} / {milliseconds(memory['p95_ms'])}",
            f"{milliseconds(server['p50_ms'])} / {milliseconds(server['p95_ms'])}",
            *(f"{alone[way]['recall_at_10']:.3f} ({alone[way]['hits']:.1f})" for way in ("off", "relaxed_order")),
        ])  # fmt: skip
    head = [
        "filter keeps", "recall@10, memory", "recall@10, server", "shared hits@10", "memory p50 / p95, ms",
        "server p50 / p95, ms", "pgvector alone (hits)", "with iterative scan (hits)",
    ]  # fmt: skip
    parts = [table(head, rows, left=head[:1])]
    made = saved["made"]
    sizes = ", ".join(f"`{name}` {size / 1e6:.0f} MB" for name, size in sorted(made["index_bytes"].items()))
    seconds = f", made in {made['indexes_s']:.0f} s" if "indexes_s" in made else ""
    parts.append(f"{saved['records']:,} records, {made['bytes'] / 1e6:.0f} MB in all; of these {sizes}{seconds}.")
    if compared := saved.get("formats"):
        lines = [
            [name, f"{each['made_s']:.0f}", f"{each['bytes'] / 1e6:.0f}", milliseconds(each["p50_ms"]),
             f"{each['recall_at_10']:.3f}"]
            for name, each in compared.items() if name != "records"
        ]  # fmt: skip
        columns = [f"HNSW of {compared['records']:,}", "made in, s", "MB", "p50, ms", "recall@10"]
        parts.append(table(columns, lines, left=columns[:1]))
    parts.append(
        f"{saved['processor']}, {saved['cores']} cores for client and server, load {saved['load_before']:.0f} when the "
        f"run began, {saved['questions']} questions each, {made['database']}, {made['vector_extension']}, commit "
        f"{saved['commit']}, {saved['date']}."
    )
    return "\n\n".join(parts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres_candidates", description=__doc__)
    parser.add_argument("--address", help="postgresql://..., with schema=NAME for a schema of its own")
    parser.add_argument("--records", type=int, default=RECORDS, help=f"how many ({RECORDS:,})")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help=f"how many are asked ({QUESTIONS})")
    parser.add_argument("--formats", type=int, default=0, help="compare formats of so many vectors (0: do not)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    return parser


if __name__ == "__main__":
    main()
