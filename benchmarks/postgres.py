"""python -m benchmarks.postgres --corpus FILE [--cache DIR] [--work DIR]: a memory on PostgreSQL, beside one in a file.

Both hold the same lines with the same vectors, each with an id of its own, so that answers can be compared. The server
is one of the tests' own on this machine, reached by a Unix socket, with fsync; so is the file at full durability. The
two take turns at every figure:

- "load": all records by `remember_many`, vectors given, without detection of changed statements;
- "write many": 1,000 further ones in one call with the default policy; "write one": 100 more, one by one;
- "recall": questions with their vectors, after a warm-up; hits must be the same, with the same order;
- "open, first recall": in a process that has the kernels already, median of three;
- "catch up": what the first recall after 1,000 records of another process's `Memory` spends to take them in.

Past 200,000 records the file alone is loaded so, and `copy_store` copies it to the server ("copy"). With `--wait` all
figures but those of loading are taken after a line from standard input, when the machine is quiet.

Beside the two, up to that size, pgvector with full-text search, fused in SQL as its documentation shows, in the same
server: latency on the same records and questions, and quality on LoCoMo's development part with the same vectors. Its
time to store contains its indexes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks import dataset, saving
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.environment import describe
from benchmarks.pgvector_hybrid import PgvectorHybrid
from benchmarks.quality import locomo
from benchmarks.quality.metrics import ndcg_at_k, recall_at_k, reciprocal_rank
from benchmarks.tables import milliseconds, table
from benchmarks.write_cost import POLICIES
from recallite import Memory
from recallite.embedding import load
from recallite.transfer.copying import copy_store
from tests.system.postgres.server import PostgresServer

__all__ = ["main", "markdown", "measure"]

RESULTS = Path(__file__).resolve().parent / "results" / "postgres.json"
_SIZES = (10_000, 100_000)
_LIMIT = 10
_WARM_UP = 20
_MANY, _SINGLE, _QUESTIONS, _ROUNDS = 1000, 100, 200, 3
_QUALITY_LIMIT = 20
_MOST_LOADED = 200_000
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "maintenance_work_mem": "512MB"}
_ROWS = {
    "load_records_s": "load, records a second",
    "copy_records_s": "copy from the file, records a second",
    "many_records_s": "write many, records a second",
    "write_p50_ms": "write one, p50 ms",
    "write_p95_ms": "write one, p95 ms",
    "recall_p50_ms": "recall, p50 ms",
    "recall_p95_ms": "recall, p95 ms",
    "open_ms": "open, first recall, ms",
    "catch_up_ms": "catch up with 1,000 records, ms",
    "megabytes": "on disk, MB",
}


def main() -> None:
    """Measure, save and print."""
    options = _arguments()
    if not options.render:
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder) if options.work is None else options.work
            sizes = options.records or _SIZES
            for name, found in measure(options.corpus, sizes, options.cache, work, options.data, wait=options.wait):
                saving.write(saving.read(options.out) | {name: found}, options.out)
    print(markdown(saving.read(options.out)))


def measure(
    path: Path | None, sizes: Sequence[int], cache: Path | None, work: Path, data: Path | None, *, wait: bool = False
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and figures of each size, and the quality where there is `data`, with what each was measured with."""
    embedder = CachedEmbedder(load(), None if cache is None else cache / "locomo")
    with _server() as server:
        (version,) = server.execute(
            "SELECT current_setting('server_version') || ', pgvector ' || extversion FROM pg_extension "
            "WHERE extname = 'vector'"
        )[0]
        for records in sizes:
            prepared = dataset.prepare(work / f"records-{records}", path, records, embedder)
            before = []

            def loaded(what: str, before: list[float] = before) -> None:
                if wait:
                    print(f"{what}: go on with Enter", flush=True)
                    sys.stdin.readline()
                before.append(os.getloadavg()[0])

            found = _size(server, prepared, embedder, loaded)
            loads = {"load_before": round(before[0], 1), "load_after": round(os.getloadavg()[0], 1)}
            yield str(records), {**describe(), "postgresql": version, **loads, **found}
        if data is not None:
            yield "quality", {**describe(), **_quality(server, data, embedder)}


def markdown(run: dict[str, Any]) -> str:
    """A table for each size, and one of quality."""
    parts = []
    for records, found in run.items():
        if records == "quality":
            continue
        header = (f"{int(records):,} records", "file", "PostgreSQL", "ratio", "pgvector and tsvector")
        ways = [found["file"], found["postgresql store"], found.get("pgvector", {})]
        lines = []
        for key, name in _ROWS.items():
            file, server, pgvector = ("" if key not in way else _shown(key, way[key]) for way in ways)
            ratio = f"{ways[1][key] / ways[0][key]:.2f}" if file and server else ""
            if file or server:
                lines.append((name, file, server, ratio, pgvector))
        parts.append(table(header, lines, left=header[:1]))
        parts.append(
            f"{found['same_hits']} of {found['questions']} questions have the same hits in both stores. PostgreSQL "
            f"{found['postgresql']}, commit {found['commit']}, {found['date']}, {found['cores']} cores, which other "
            f"work shared: load {found['load_before']} before and {found['load_after']} after."
        )
    if quality := run.get("quality"):
        metrics = list(quality["recallite"])
        header = ("LoCoMo, development part", *metrics)
        names = {"recallite": "Recallite on PostgreSQL", "pgvector": "pgvector and tsvector, RRF in SQL"}
        lines = [(shown, *(f"{quality[name][each]:.3f}" for each in metrics)) for name, shown in names.items()]
        parts.append(table(header, lines, left=header[:1]))
        parts.append(f"{quality['questions']} questions, commit {quality['commit']}, {quality['date']}.")
    return "\n\n".join(parts)


def _shown(key: str, value: float) -> str:
    return milliseconds(value) if key.endswith("_ms") else f"{value:,.0f}"


@contextmanager
def _server() -> Iterator[PostgresServer]:
    server = PostgresServer.started(fsync=True, settings=_SETTINGS)
    try:
        server.execute("CREATE EXTENSION vector")
        yield server
    finally:
        server.remove()


def _size(
    server: PostgresServer, data: dataset.Dataset, embedder: CachedEmbedder, loaded: Callable[[str], object]
) -> dict[str, Any]:
    """The figures of the two stores and of pgvector at one size; `loaded` is called once both are loaded."""
    records = len(data.lines) - 2 * _MANY - _SINGLE
    with tempfile.TemporaryDirectory(dir=data.folder) as folder:
        addresses = {"file": str(Path(folder) / "agent.db"), "postgresql store": server.address(schema=f"s{records}")}
        found: dict[str, dict[str, float]] = {way: {} for way in addresses}
        copied = records > _MOST_LOADED
        for way, address in addresses.items():
            if copied and way != "file":
                seconds = _seconds(lambda: copy_store(*addresses.values(), verify=False))
                found[way]["copy_records_s"] = records / seconds
                continue
            with Memory(address, embedder=embedder) as memory:
                seconds = _seconds(
                    lambda memory=memory: memory.remember_many(_items(data, 0, records), policy=POLICIES["without"])
                )
                found[way]["load_records_s"] = records / seconds
        loaded(f"{records:,} records are loaded")
        memories = {way: Memory(address, embedder=embedder) for way, address in addresses.items()}
        for memory in memories.values():
            memory.warmup()
        for way, memory in memories.items():
            more = _items(data, records, records + _MANY)
            found[way]["many_records_s"] = _MANY / _seconds(lambda memory=memory, more=more: memory.remember_many(more))
        _write_one(memories, data, records + _MANY, found)
        same = _recall(memories, data, found)
        _catch_up(memories, addresses, data, records + _MANY + _SINGLE, embedder, found)
        for way, memory in memories.items():
            found[way]["megabytes"] = (memory.stats().bytes_on_disk or 0) / 1e6
            memory.close()
        _open(addresses, data, embedder, found)
    compared = {} if copied else {"pgvector": _pgvector(server, data, records)}
    return {**found, "same_hits": same, "questions": _QUESTIONS, **compared}


def _items(data: dataset.Dataset, start: int, stop: int) -> list[dict[str, Any]]:
    # Times are given: the two are not written at the same moment, and recall weighs age.
    return [
        {
            "id": f"r{place}",
            "text": data.lines[place],
            "vector": np.asarray(data.vectors[place]),
            "created_at": _FIRST + timedelta(seconds=place),
        }
        for place in range(start, stop)
    ]


def _write_one(memories: dict[str, Memory], data: dataset.Dataset, first: int, found: dict[str, Any]) -> None:
    taken: dict[str, list[float]] = {way: [] for way in memories}
    for item in _items(data, first, first + _SINGLE):
        for way, memory in memories.items():
            taken[way].append(_seconds(lambda memory=memory, item=item: memory.remember(**item)) * 1e3)
    for way, each in taken.items():
        found[way] |= _percentiles("write", each)


def _recall(memories: dict[str, Memory], data: dataset.Dataset, found: dict[str, Any]) -> int:
    """How many questions have the same hits in both."""
    taken: dict[str, list[float]] = {way: [] for way in memories}
    same = 0
    for number in range(_WARM_UP + _QUESTIONS):
        place, answers = number % len(data.questions), []
        for way, memory in memories.items():
            began = time.perf_counter()
            hits = memory.recall(data.questions[place], vector=data.asked[place], limit=_LIMIT)
            taken[way].append((time.perf_counter() - began) * 1e3)
            answers.append([hit.id for hit in hits])
        same += number >= _WARM_UP and all(one == other for one, other in pairwise(answers))
    for way, each in taken.items():
        found[way] |= _percentiles("recall", each[_WARM_UP:])
    return same


def _catch_up(
    memories: dict[str, Memory],
    addresses: dict[str, str],
    data: dataset.Dataset,
    first: int,
    embedder: CachedEmbedder,
    found: dict[str, Any],
) -> None:
    for way, memory in memories.items():
        with Memory(addresses[way], embedder=embedder) as other:
            other.remember_many(_items(data, first, first + _MANY), policy=POLICIES["without"])
        hits = memory.recall(data.questions[0], vector=data.asked[0], limit=_LIMIT)
        found[way]["catch_up_ms"] = hits.stages["catch_up"]


def _open(addresses: dict[str, str], data: dataset.Dataset, embedder: CachedEmbedder, found: dict[str, Any]) -> None:
    taken: dict[str, list[float]] = {way: [] for way in addresses}
    for _ in range(_ROUNDS):
        for way, address in addresses.items():
            began = time.perf_counter()
            with Memory(address, embedder=embedder) as memory:
                memory.recall(data.questions[0], vector=data.asked[0], limit=_LIMIT)
                taken[way].append((time.perf_counter() - began) * 1e3)
    for way, each in taken.items():
        found[way]["open_ms"] = median(each)


def _pgvector(server: PostgresServer, data: dataset.Dataset, records: int) -> dict[str, float]:
    hybrid = PgvectorHybrid(server.address(), f"pgvector{records}", data.vectors.shape[1])
    seconds = _seconds(lambda: hybrid.fill(data.lines[:records], data.vectors[:records]))
    taken = [
        _seconds(lambda place=place: hybrid.recall(data.questions[place], data.asked[place], _LIMIT)) * 1e3
        for place in range(_WARM_UP + _QUESTIONS)
    ]
    size = hybrid.size()
    hybrid.close()
    return {"load_records_s": records / seconds, "megabytes": size / 1e6, **_percentiles("recall", taken[_WARM_UP:])}


def _quality(server: PostgresServer, data: Path, embedder: CachedEmbedder) -> dict[str, Any]:
    """recall@20, nDCG@20 and MRR on LoCoMo's turns, each conversation a store of its own."""
    scores: dict[str, list[tuple[float, float, float]]] = {"recallite": [], "pgvector": []}
    for number, conversation in enumerate(locomo.read(data)):
        texts = [turn["text"] for turn in conversation.turns]
        contexts = [turn.get("context") for turn in conversation.turns]
        vectors, owners = embedder.embed_documents(texts, contexts)
        hybrid = PgvectorHybrid(server.address(), f"locomo{number}", vectors.shape[1])
        # Of a long turn the vector of the first part: a row has one.
        firsts = vectors[np.searchsorted(owners, np.arange(len(texts)))]
        hybrid.fill([f"{who}: {text}" for who, text in zip(contexts, texts, strict=True)], firsts)
        asked = embedder.embed([question.text for question in conversation.questions])
        with Memory(server.address(schema=f"ours{number}"), embedder=embedder) as memory:
            ids = memory.remember_many(conversation.turns)
            places = {id: place for place, id in enumerate(ids)}
            for question, vector in zip(conversation.questions, asked, strict=True):
                ours = [places[hit.id] for hit in memory.recall(question.text, limit=_QUALITY_LIMIT)]
                scores["recallite"].append(_scores(ours, question.gold))
                scores["pgvector"].append(_scores(hybrid.recall(question.text, vector, _QUALITY_LIMIT), question.gold))
        hybrid.close()
        embedder.flush()
    names = (f"recall@{_QUALITY_LIMIT}", f"nDCG@{_QUALITY_LIMIT}", "MRR")
    figures = {
        way: dict(zip(names, (mean(column) for column in zip(*each, strict=True)), strict=True))
        for way, each in scores.items()
    }
    return {**figures, "questions": len(scores["recallite"])}


def _scores(ranked: list[int], gold: frozenset[int]) -> tuple[float, float, float]:
    found = list(dict.fromkeys(ranked))
    return (
        recall_at_k(found, gold, _QUALITY_LIMIT),
        ndcg_at_k(found, gold, _QUALITY_LIMIT),
        reciprocal_rank(found, gold),
    )


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _percentiles(name: str, taken_ms: Sequence[float]) -> dict[str, float]:
    return {f"{name}_p{share}_ms": float(np.percentile(taken_ms, share)) for share in (50, 95)}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres", description="A memory on PostgreSQL.")
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a line a record; synthetic ones without it")
    parser.add_argument("--records", type=int, action="append", help="a size; may be given again (10,000 and 100,000)")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--work", type=Path, help="folder for the prepared data, kept (temporary)")
    parser.add_argument("--data", type=Path, help="folder with LoCoMo, for the quality")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--wait", action="store_true", help="load, then wait for a line from standard input")
    parser.add_argument("--render", action="store_true", help="print the saved result and stop")
    return parser.parse_args()


if __name__ == "__main__":
    main()
