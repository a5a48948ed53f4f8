"""Candidates of a recall from the index in memory and from the server's indexes, without and with filters by scope.

recall@10 is against the exact nearest vectors (`mode="vector"`). Beside both stands what pgvector finds by itself with
LIMIT 10, with and without iterative scans. With `--address` the schema is written by the first run and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
import psycopg

from benchmarks import postgres_server
from benchmarks.cases.filters import SCOPES, items
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import seconds
from recallite import Memory
from recallite.recall.request import recall_arguments
from recallite_postgres.address import parse_address

__all__ = ["CASE", "connected", "literal"]

_TOP, _WARM_UP = 10, 5
_ALONE = {"pgvector alone": "off", "with iterative scan": "relaxed_order"}


@contextmanager
def _setup(context: Context) -> Iterator[str]:
    if context.address is not None:
        yield context.address
        return
    with postgres_server.started() as server:
        yield server.address(schema="candidates")


def _tables(address: str, context: Context) -> Iterator[Timing | Figures]:
    data = context.dataset
    yield Figures("indexes of the server", _made(address, data))
    with ExitStack() as stack:
        memories = {way: stack.enter_context(Memory(_by(address, way))) for way in ("memory", "server")}
        memories["memory"].store.warmup()
        connections = {way: stack.enter_context(connected(address)) for way in _ALONE}
        for way, connection in connections.items():
            connection.execute(f"SET hnsw.iterative_scan = {_ALONE[way]}".encode())
            # For a filter that admits few, PostgreSQL would not ask the index.
            connection.execute("SET enable_sort = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
        for share, scope in {"no filter": None, **SCOPES}.items():
            fields = {} if scope is None else {"scope": scope}
            ways: dict[str, Callable[[int], Any]] = {
                **{way: _recalling(memory, data, fields) for way, memory in memories.items()},
                **{way: _asking(connection, data, scope) for way, connection in connections.items()},
            }
            check = _checking(memories, data, "" if scope is None else share, fields)
            yield Timing(f"filter keeps: {share}", ways, context.rounds, _WARM_UP, check)


def _by(address: str, candidates: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}candidates={candidates}"


def _made(address: str, data: Any) -> dict[str, dict[str, Any]]:
    """Write the records if there are none, and make the indexes that are missing."""
    with Memory(_by(address, "server")) as memory:
        if not memory.count():
            memory.remember_many(items(data))
            memory.store.catch_up()
        before = memory.store.stats().index["indexes"]
        made = seconds(memory.store.warmup)
        stats = memory.store.stats()
    rows: dict[str, dict[str, Any]] = {name: {"MB": size / 1e6} for name, size in stats.index["indexes"].items()}
    rows["all tables and indexes"] = {"MB": (stats.bytes_on_disk or 0) / 1e6}
    if not before:
        rows["all indexes"] = {"made in, s": made}
    return {**rows, f"{stats.database}, {stats.vector_extension}": {}}


def _recalling(memory: Memory, data: Any, fields: dict[str, Any], **options: Any) -> Callable[[int], Any]:
    def recall(number: int) -> Any:
        place = number % len(data.questions)
        text, vector = data.questions[place], data.asked[place]
        return memory.recall(
            text, vector=vector, limit=_TOP, **recall_arguments({"purpose": "inspect", **fields, **options})
        )

    return recall


def _asking(connection: Any, data: Any, scope: str | None) -> Callable[[int], list[int]]:
    """Places of the lines nearest to a question, by pgvector alone at its own ef_search of 40."""
    within = "" if scope is None else "AND (s.path = %(scope)s OR s.path LIKE %(below)s)"
    dimension = data.asked.shape[1]
    query = (
        "SELECT (r.metadata::json->>'line')::int FROM vector v "
        f"JOIN record r ON r.id = v.record_id JOIN scope s ON s.id = r.scope_id WHERE v.embedder_id = 1 {within} "
        f"ORDER BY halves(v.value, {dimension})::halfvec({dimension}) "
        f"<=> %(asked)s::halfvec({dimension}) LIMIT {_TOP}"
    )

    def ask(number: int) -> list[int]:
        vector = literal(data.asked[number % len(data.questions)])
        return [row[0] for row in connection.execute(query, {"scope": scope, "below": f"{scope}/%", "asked": vector})]

    return ask


def _checking(
    memories: dict[str, Memory], data: Any, share: str, fields: dict[str, Any]
) -> Callable[[dict[str, list[Any]]], Mapping[str, Mapping[str, Any]]]:
    def check(answers: dict[str, list[Any]]) -> dict[str, dict[str, Any]]:
        hits = {way: [{hit.id for hit in answer} for answer in answers[way]] for way in memories}
        pairs = zip(*hits.values(), strict=True)
        shared = float(np.mean([len(one & other) / max(1, len(one)) for one, other in pairs]))
        rounds = range(_WARM_UP, _WARM_UP + len(answers["memory"]))
        nearest_by_way = {way: answers[way] for way in _ALONE}
        for way, memory in memories.items():
            nearest = _recalling(memory, data, fields, mode="vector")
            nearest_by_way[way] = [[hit.metadata["line"] for hit in nearest(number)] for number in rounds]
        # Figures of the first questions are exact: rounds begin past those of the warm-up.
        order = [number % len(data.questions) for number in rounds]
        return {
            way: {
                "recall@10": float(
                    np.mean([_recall(data, at, one, share) for at, one in zip(order, answer, strict=True)])
                ),
                "hits": float(np.mean([len(one) for one in answer])),
                **({"shared hits@10": shared} if way == "server" else {}),
            }
            for way, answer in nearest_by_way.items()
        }

    return check


def _recall(data: Any, place: int, places: list[int], share: str) -> float:
    return data.recall(place, places, share)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A connection in the schema of an address."""
    parsed = parse_address(address)
    with psycopg.connect(**parsed.parameters, autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute("SELECT set_config('search_path', %s, false)", (f"{parsed.schema}, public",))
        connection.execute("SET jit = off")
        with suppress(psycopg.Error):
            connection.execute("LOAD 'vector'")
        yield connection


def literal(vector: Any) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(f'{value:.6g}' for value in vector)}]"


CASE = Case("postgres_candidates", "candidates from a server's indexes", _setup, _tables, rounds=50)
