"""A memory on PostgreSQL beside one in a file and beside pgvector with full-text search, on the same machine.

All hold the same lines with the same vectors, without detection of changed statements. Ages are given, so that both
stores rank alike. Past 200,000 records the file alone is loaded, and `copy_store` copies it to the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from benchmarks import postgres_server
from benchmarks.cases.pgvector import PgvectorHybrid
from benchmarks.cases.write_cost import POLICIES
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import rates
from recallite import Memory
from recallite.model.records import NewRecord
from recallite_postgres.copy_store import copy_store
from tests.system.postgres.server import PostgresServer

__all__ = ["CASE"]

_LIMIT, _MOST_LOADED, _MANY, _SINGLE, _OPENS, _WARM_UP = 10, 200_000, 1000, 100, 3, 20
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_FILE, _SERVER, _PGVECTOR = "file", "PostgreSQL", "pgvector and tsvector"


@contextmanager
def _setup(context: Context) -> Iterator[PostgresServer]:
    with postgres_server.started() as server:
        yield server


def _tables(server: PostgresServer, context: Context) -> Iterator[Timing | Figures]:
    data, many, single = context.dataset, context.count(_MANY), context.count(_SINGLE) + 1
    records = len(data.lines) - 2 * many - single
    addresses = {_FILE: str(context.folder / "agent.db"), _SERVER: server.address(schema=f"s{records}")}

    def opened(way: str) -> Memory:
        return Memory(addresses[way], embedder=context.model)

    def load(way: str, start: int, stop: int) -> None:
        with opened(way) as memory:
            memory.remember_many(_items(data, start, stop), policy=POLICIES["without"])
            memory.store.catch_up()

    with ExitStack() as stack:
        copied = records > _MOST_LOADED
        calls: dict[str, Callable[[], object]] = {_FILE: lambda: load(_FILE, 0, records)}
        if copied:
            calls[f"{_SERVER}, copied from the file"] = lambda: copy_store(*addresses.values(), verify=False)
        else:
            hybrid = PgvectorHybrid(server.address(), f"pgvector{records}", data.vectors.shape[1])
            stack.callback(hybrid.close)
            calls[_SERVER] = lambda: load(_SERVER, 0, records)
            calls[_PGVECTOR] = lambda: hybrid.fill(data.lines[:records], data.vectors[:records])
        yield Figures("load", rates(calls, records))

        memories = {way: stack.enter_context(opened(way)) for way in addresses}
        for memory in memories.values():
            memory.store.warmup()
        more = _items(data, records, records + many)
        yield Figures(
            "write many",
            rates({way: lambda memory=memory: memory.remember_many(more) for way, memory in memories.items()}, many),
        )
        items = _items(data, records + many, records + many + single)
        writing = {
            way: lambda at, memory=memory: memory.remember(NewRecord(**items[at])) for way, memory in memories.items()
        }
        yield Timing("write one", writing, single - 1, warm_up=1)

        def asked(at: int) -> tuple[str, Any]:
            return data.questions[at % len(data.questions)], data.asked[at % len(data.questions)]

        def recall(memory: Memory, at: int) -> list[str]:
            text, vector = asked(at)
            return [hit.id for hit in memory.recall(text, vector=vector, limit=_LIMIT)]

        ways: dict[str, Callable[[int], Any]] = {
            way: lambda at, memory=memory: recall(memory, at) for way, memory in memories.items()
        }
        if not copied:
            ways[_PGVECTOR] = lambda at: hybrid.recall(*asked(at), _LIMIT)
        yield Timing("recall", ways, context.rounds, _WARM_UP, check=_same_hits)

        rows: dict[str, dict[str, Any]] = {}
        for way, memory in memories.items():
            load(way, records + many + single, len(data.lines))
            hits = memory.recall(*asked(0)[:1], vector=asked(0)[1], limit=_LIMIT)
            rows[way] = {
                f"catch up with {many:,} records, ms": hits.stages["catch_up"],
                "on disk, MB": (memory.store.stats().bytes_on_disk or 0) / 1e6,
            }
        rows[_SERVER]["version"] = postgres_server.version(server)
        if not copied:
            rows[_PGVECTOR] = {"on disk, MB": hybrid.size() / 1e6}
        yield Figures("state", rows)

        def first_recall(way: str) -> None:
            with opened(way) as memory:
                recall(memory, 0)

        opening = {way: lambda _, way=way: first_recall(way) for way in addresses}
        yield Timing("open and recall once", opening, context.count(_OPENS), warm_up=0)


def _items(data: Any, start: int, stop: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"r{place}",
            "text": data.lines[place],
            "vector": np.asarray(data.vectors[place]),
            "created_at": _FIRST + timedelta(seconds=place),
        }
        for place in range(start, stop)
    ]


def _same_hits(answers: dict[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """Count the questions that have the same hits in the same order in both stores."""
    equal = sum(one == other for one, other in zip(answers[_FILE], answers[_SERVER], strict=True))
    return {_SERVER: {"same hits": f"{equal} of {len(answers[_FILE])}"}}


CASE = Case(
    "postgres", "a memory on PostgreSQL beside one in a file, and pgvector", _setup, _tables, records=(10_000, 100_000)
)
