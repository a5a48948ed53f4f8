"""python -m benchmarks.servers [--corpus FILE] [--cache DIR]: a recall by each interface, and many clients at a time.

One store of 100,000 lines, made as `recall_cost` makes its own, in a file. Each question is asked as text, in turn, in
an order that rotates: of a `Memory` in this process; of `recallite serve` by HTTP, by `doors.client` and by the
Model Context Protocol at /mcp; and of `recallite mcp` over its standard input. All have to give the same ids. No
process keeps the vectors of questions: each embeds every question itself.

Then 1, 8 and 64 clients, each a thread with one connection, ask the server as fast as it answers; so they do of a
server that answers recalls one by one. The two take turns. Clients and servers share the cores of one machine.

Start times are those of new processes: until the address is printed, and until `/readyz` says that it is ready.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import numpy as np

from benchmarks import corpus
from benchmarks.cached_embedder import CachedTokens
from benchmarks.environment import describe
from benchmarks.recall_cost import Prepared, sessions
from benchmarks.tables import milliseconds, table
from recallite import Memory, Settings
from recallite.embedding import TokenEmbedder, load

__all__ = ["main", "markdown", "measure"]

RESULTS = Path(__file__).resolve().parent / "results" / "servers.json"
CLIENTS = (1, 8, 64)
_LIMIT = 10
_WARM_UP = 20
_ROUNDS = 3
_SECONDS = 5.0
_SETTINGS = Settings(query_cache_size=0)
_JSON = {"Content-Type": "application/json"}


def main() -> None:
    """Measure, save and print; or, with --serve, be one of the servers."""
    options = _arguments()
    if options.serve is not None:
        _serve(options.serve, batch=not options.one_by_one)
        return
    if not options.render:
        run = measure(options.corpus, options.records, options.questions, options.cache, seconds=options.seconds)
        options.out.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    print(markdown(json.loads(options.out.read_text(encoding="utf-8"))))


def measure(path: Path | None, records: int, count: int, cache: Path | None, *, seconds: float) -> dict[str, Any]:
    """Milliseconds of single recalls by interface, recalls a second by number of clients, and seconds to start."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "agent.db"
        questions = _fill(store, path, records, count + _WARM_UP, cache)
        interfaces = asyncio.run(_interfaces(store, questions))
        throughput = _throughput(store, questions, seconds)
        started = [_started(store) for _ in range(_ROUNDS)]
    return {
        **describe(), "records": records, "questions": count, "interfaces": interfaces, "throughput": throughput,
        "start_s": {key: round(median(each[key] for each in started), 2) for key in started[0]},
    }  # fmt: skip


def markdown(run: dict[str, Any]) -> str:
    """The tables of a run."""
    header = ("one recall, from text", "p50 ms", "p95 ms", "more than in process, p50 ms")
    rows = [
        (name, milliseconds(each["p50_ms"]), milliseconds(each["p95_ms"]), milliseconds(each["more_ms"]))
        for name, each in run["interfaces"].items()
    ]
    many = ("clients", "in batches, recalls a second", "p50 ms", "one by one, recalls a second", "p50 ms ", "ratio")
    lines = [
        (clients, f"{each['batch']:,.0f}", milliseconds(each["batch_p50_ms"]), f"{each['single']:,.0f}",
         milliseconds(each["single_p50_ms"]), f"{each['batch'] / each['single']:.2f}")
        for clients, each in run["throughput"].items()
    ]  # fmt: skip
    start = run["start_s"]
    caption = (
        f"{run['records']:,} records, {run['questions']:,} questions, commit {run['commit']}, {run['date']}, "
        f"{run['cores']} cores. `recallite serve` prints its address after {start['address']} s and is ready after "
        f"{start['ready']} s."
    )
    return f"{table(header, rows, left=header[:1])}\n\n{table(many, lines)}\n\n{caption}"


def _fill(store: Path, path: Path | None, records: int, count: int, cache: Path | None) -> list[str]:
    """Make the store; returns questions about what is not in it."""
    lines, others = corpus.lines_and_others(path, records)
    inner = load()
    assert isinstance(inner, TokenEmbedder)
    embedder = CachedTokens(inner, cache)
    prepared = Prepared(embedder, lines, (), 5_000)
    embedder.flush()
    with Memory(store, embedder=prepared, settings=Settings(token_codes=True)) as memory:
        memory.remember_many(sessions(lines))
    return corpus.queries(others, count)


# ── one at a time ──────────────────────────────────────────────────────────────────────────────────────────────


async def _interfaces(store: Path, questions: Sequence[str]) -> dict[str, dict[str, float]]:
    from mcp import Client as ProtocolClient
    from mcp import StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    from recallite.doors.client import Client

    async with AsyncExitStack() as held:
        memory = held.enter_context(Memory(store, settings=_SETTINGS))
        memory.warmup()
        url = held.enter_context(_serving(store))
        plain = held.enter_context(httpx2.Client(base_url=url, trust_env=False))
        client = held.enter_context(Client(url))
        settings = store.with_name("settings.toml")
        settings.write_text("query_cache_size = 0\n", encoding="utf-8")
        given = ["--db", str(store), "--settings", str(settings)]
        command = ["-m", "recallite", *given, "mcp", "--token-budget", "100000"]
        stdio = await held.enter_async_context(
            ProtocolClient(StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ)))
        )
        over_http = await held.enter_async_context(httpx2.AsyncClient(trust_env=False))
        protocol = await held.enter_async_context(
            ProtocolClient(streamable_http_client(f"{url}/mcp", http_client=over_http))
        )

        async def in_process(question: str) -> list[str]:
            return [hit.id for hit in memory.recall(question, limit=_LIMIT)]

        async def rest(question: str) -> list[str]:
            answer = plain.post("/v1/recall", json={"query": question, "limit": _LIMIT}).json()
            return [hit["id"] for hit in answer["hits"]]

        async def by_client(question: str) -> list[str]:
            return [hit.id for hit in client.recall(question, limit=_LIMIT)]

        def by_protocol(asked: Any) -> Callable[[str], Any]:
            async def ask(question: str) -> list[str]:
                found = await asked.call_tool("recall", {"query": question, "limit": _LIMIT})
                return [each["id"] for each in found.structured_content["results"]]

            return ask

        ways = {
            "in process": in_process, "HTTP": rest, "recallite.doors.client": by_client,
            "MCP over HTTP": by_protocol(protocol), "MCP over stdio": by_protocol(stdio),
        }  # fmt: skip
        times: dict[str, list[float]] = {name: [] for name in ways}
        names = list(ways)
        for place, question in enumerate(questions):
            found = {}
            for step in range(len(names)):
                name = names[(place + step) % len(names)]
                began = time.perf_counter()
                found[name] = await ways[name](question)
                times[name].append((time.perf_counter() - began) * 1e3)
            if len({*map(tuple, found.values())}) != 1:
                raise SystemExit(f"the answers differ on {question!r}: {found}")
    kept = {name: np.array(each[_WARM_UP:]) for name, each in times.items()}
    return {
        name: {
            "p50_ms": round(float(median(each)), 3),
            "p95_ms": round(float(np.quantile(each, 0.95)), 3),
            "more_ms": round(float(median(each - kept["in process"])), 3),
        }
        for name, each in kept.items()
    }


# ── many at a time ─────────────────────────────────────────────────────────────────────────────────────────────


def _throughput(store: Path, questions: Sequence[str], seconds: float) -> dict[str, dict[str, float]]:
    with ExitStack() as held:
        urls = {
            "batch": held.enter_context(_serving(store)),
            "single": held.enter_context(_serving(store, "--one-by-one")),
        }
        found: dict[str, dict[str, float]] = {}
        for clients in CLIENTS:
            runs: dict[str, list[np.ndarray]] = {name: [] for name in urls}
            for turn in range(_ROUNDS * 2):
                name = list(urls)[turn % 2]
                runs[name].append(_hammer(urls[name], questions, clients, seconds))
            found[str(clients)] = {
                key: value
                for name, each in runs.items()
                for key, value in (
                    (name, round(median(len(times) / seconds for times in each), 1)),
                    (f"{name}_p50_ms", round(float(np.median(np.concatenate(each))) * 1e3, 2)),
                    (f"{name}_p95_ms", round(float(np.quantile(np.concatenate(each), 0.95)) * 1e3, 2)),
                )
            }
    return found


def _hammer(url: str, questions: Sequence[str], clients: int, seconds: float) -> np.ndarray:
    """The seconds of each recall that clients got answered in a time."""
    times: list[list[float]] = [[] for _ in range(clients)]
    start = threading.Barrier(clients)
    host = url.removeprefix("http://")

    def ask(place: int) -> None:
        connection = http.client.HTTPConnection(host)
        start.wait()
        ends = time.perf_counter() + seconds
        for step in range(sys.maxsize):
            question = questions[(place * 37 + step) % len(questions)]
            began = time.perf_counter()
            body = json.dumps({"query": question, "limit": _LIMIT})
            connection.request("POST", "/v1/recall", body, _JSON)
            answer = connection.getresponse()
            answer.read()
            ended = time.perf_counter()
            if answer.status != 200:
                raise SystemExit(f"the server answered {answer.status}")
            if ended > ends:
                break
            times[place].append(ended - began)
        connection.close()

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.array([each for one in times for each in one])


# ── servers ────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _serving(store: Path, *options: str) -> Iterator[str]:
    """The address of a server in a process of its own, warm."""
    command = [sys.executable, "-m", "benchmarks.servers", "--serve", str(store), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            _until_ready(url)
            yield url
        finally:
            process.terminate()


def _serve(store: Path, *, batch: bool) -> None:
    """Be a server until told to end; prints its address."""
    from recallite.doors.http.app import MemoryApi
    from recallite.doors.http.running import listen, server_of

    with Memory(store, settings=_SETTINGS) as memory, listen("127.0.0.1", 0) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        server_of(MemoryApi(memory, batch=batch)).run(sockets=[listener])


def _until_ready(url: str) -> None:
    with httpx2.Client(base_url=url, trust_env=False, timeout=60.0) as client:
        while client.get("/readyz").status_code != 200:
            time.sleep(0.01)


def _started(store: Path) -> dict[str, float]:
    """Seconds until a new server has printed its address, and until it is ready."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "recallite", "--db", str(store), "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found is not None
            address = time.perf_counter() - began
            _until_ready(found[0])
            return {"address": address, "ready": time.perf_counter() - began}
        finally:
            process.terminate()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description="Recall by each interface.")
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a line a record; synthetic ones without it")
    parser.add_argument("--records", type=int, default=100_000, help="how many lines are stored")
    parser.add_argument("--questions", type=int, default=200, help="how many questions are asked")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="how long clients ask, each of three times")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--render", action="store_true", help="print the saved result and stop")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--one-by-one", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
