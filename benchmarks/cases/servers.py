"""A recall from text by each interface of one store, and many clients at a time; no process keeps vectors of questions.

Clients and servers share the cores of one machine. Interfaces have to give the same ids; those of the Model Context
Protocol run in an event loop of another thread.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, cast

import httpx2
import numpy as np

from benchmarks import corpus
from benchmarks.at_hand import AtHand
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import same
from recallite import Memory, Settings

__all__ = ["CASE"]

_CLIENTS, _ROUNDS, _SECONDS, _LIMIT = (1, 8, 64), 3, 5, 10
# `recallite serve` answers concurrent recalls in batches; this module can serve without.
_SERVERS = {"in batches": (), "one by one": ("--one-by-one",)}


@contextmanager
def _setup(context: Context) -> Iterator[Path]:
    store = context.folder / "agent.db"
    with Memory(store, embedder=AtHand(context.dataset), settings=Settings(token_codes=True)) as memory:
        memory.remember_many(corpus.sessions(context.dataset.lines))
        memory.store.catch_up()
    yield store


def _tables(store: Path, context: Context) -> Iterator[Timing | Figures]:
    questions = context.dataset.questions
    with ExitStack() as stack:
        for title, interfaces in _interfaces(store, stack).items():
            ways = {
                name: lambda number, ask=ask: ask(questions[number % len(questions)])
                for name, ask in interfaces.items()
            }
            yield Timing(title, ways, context.rounds, check=same)
    with ExitStack() as stack:
        urls = {name: stack.enter_context(_serving(store, *options)) for name, options in _SERVERS.items()}
        rows = {f"{clients}": _throughput(urls, questions, clients, context) for clients in _CLIENTS}
        yield Figures("clients", rows)
    started = [_started(store) for _ in range(context.count(_ROUNDS))]
    figures = {key: {"seconds": round(median(start[key] for start in started), 2)} for key in started[0]}
    yield Figures("start of `recallite serve`", figures)


def _interfaces(store: Path, stack: ExitStack) -> dict[str, dict[str, Callable[[str], list[str]]]]:
    """Functions that ask for ten hits, and functions that ask for those that answer, as tools do, by title."""
    from anyio.from_thread import start_blocking_portal
    from mcp import Client as ProtocolClient
    from mcp import StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    from recallite_server.client import Client

    memory = stack.enter_context(Memory(store))
    memory.store.warmup()
    url = stack.enter_context(_serving(store))
    plain = stack.enter_context(httpx2.Client(base_url=url, trust_env=False))
    client = stack.enter_context(Client(url))
    arguments = ["--db", str(store)]
    command = ["-m", "recallite", *arguments, "mcp", "--token-budget", "100000"]
    portal = stack.enter_context(start_blocking_portal())
    over_http = stack.enter_context(portal.wrap_async_context_manager(httpx2.AsyncClient(trust_env=False)))
    transports: dict[str, Any] = {
        "MCP over HTTP": streamable_http_client(f"{url}/mcp", http_client=over_http),
        "MCP over stdio": StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ)),
    }

    def rest(question: str) -> list[str]:
        answer = plain.post("/v1/recall", json={"query": question, "limit": _LIMIT}).json()
        return [hit["id"] for hit in answer["hits"]]

    def by_protocol(transport: Any) -> Callable[[str], list[str]]:
        session = stack.enter_context(portal.wrap_async_context_manager(ProtocolClient(transport)))

        def ask(question: str) -> list[str]:
            result = portal.call(session.call_tool, "recall", {"query": question, "limit": _LIMIT})
            return [memory_hit["id"] for memory_hit in result.structured_content["results"]]

        return ask

    return {
        "one recall, from text": {
            "in process": lambda question: [hit.id for hit in memory.recall(question, limit=_LIMIT)],
            "HTTP": rest,
            "recallite_server.client": lambda question: [hit.id for hit in client.recall(question, limit=_LIMIT)],
        },
        "what answers, from text": {
            "in process": lambda question: [hit.id for hit in memory.recall(question, limit=_LIMIT, relevant=True)],
            **{name: by_protocol(transport) for name, transport in transports.items()},
        },
    }


def _throughput(urls: dict[str, str], questions: list[str], clients: int, context: Context) -> dict[str, Any]:
    """Recalls a second that clients get from each server, by turns, and the median milliseconds of one."""
    seconds = context.count(_SECONDS)
    runs: dict[str, list[Any]] = {name: [] for name in urls}
    for _ in range(context.count(_ROUNDS)):
        for name, url in urls.items():
            runs[name].append(_ask_at_once(url, questions, clients, seconds))
    figures: dict[str, Any] = {}
    for name, taken in runs.items():
        figures[f"{name}, recalls a second"] = round(median(len(milliseconds) / seconds for milliseconds in taken), 1)
        figures[f"{name}, p50 ms"] = round(float(np.median(np.concatenate(taken))) * 1e3, 2)
    at_once, single = (figures[f"{name}, recalls a second"] for name in urls)
    return {**figures, "ratio": round(at_once / max(single, 0.1), 3)}


def _ask_at_once(url: str, questions: list[str], clients: int, seconds: float) -> Any:
    """Seconds of each recall that clients, a connection each, get answered in a time.

    One thread asks for all of them and parses nothing but the length of an answer: it shares the server's cores.
    """
    host, port = url.removeprefix("http://").split(":")
    requests = [_request(host, question) for question in questions]
    times: list[float] = []
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        begin = time.perf_counter()
        for client in range(clients):
            connection = stack.enter_context(socket.create_connection((host, int(port))))
            connection.sendall(requests[client * 37 % len(requests)])
            selector.register(connection, selectors.EVENT_READ, [client * 37, time.perf_counter(), bytearray()])
        while (now := time.perf_counter()) < begin + seconds:
            for key, _ in selector.select(timeout=begin + seconds - now):
                connection, (step, began, answer) = cast("socket.socket", key.fileobj), key.data
                answer += connection.recv(1 << 18)
                if _is_whole(answer):
                    ended = time.perf_counter()
                    times.append(ended - began)
                    key.data[:] = [step + 1, ended, bytearray()]
                    connection.sendall(requests[(step + 1) % len(requests)])
    return np.array(times)


def _request(host: str, question: str) -> bytes:
    body = json.dumps({"query": question, "limit": _LIMIT}).encode()
    head = f"POST /v1/recall HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _is_whole(answer: bytearray) -> bool:
    """Whether all of an answer has come."""
    head, blank, body = answer.partition(b"\r\n\r\n")
    if blank and not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"the server answered {bytes(head[:80])!r}")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return bool(blank) and length is not None and len(body) >= int(length[1])


@contextmanager
def _serving(store: Path, *options: str) -> Iterator[str]:
    """The address of a server in a process of its own, warm."""
    command = [sys.executable, "-m", "benchmarks.cases.servers", str(store), *options]
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
    from recallite_server.http.app import MemoryApi
    from recallite_server.http.connections import listen, server_of

    with Memory(store) as memory, listen("127.0.0.1", 0) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        server_of(MemoryApi(memory, batch=batch).application).run(sockets=[listener])


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
            url = re.search(r"http://\S+", process.stderr.readline())
            assert url is not None
            address = time.perf_counter() - began
            _until_ready(url[0])
            return {"address printed": address, "ready": time.perf_counter() - began}
        finally:
            process.terminate()


CASE = Case("servers", "what a recall takes by each interface, and how many clients a server answers", _setup, _tables)

if __name__ == "__main__":
    _serve(Path(sys.argv[1]), batch="--one-by-one" not in sys.argv)
