"""A real HTTP server on this machine that answers as it is told, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import numpy as np

from tests.unit.core.memory.support import WordEmbedder


class Answer(NamedTuple):
    """What is sent back: `body` as JSON unless it is bytes. `hang` keeps the client waiting until the server ends;
    `endless` sends the body again and again."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012
    hang: bool = False
    endless: bool = False


class Asked(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


def said(content: str | None, *, finish: str = "stop", tokens: int | None = None) -> Answer:
    """A chat completion."""
    body: dict[str, Any] = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}]
    }
    return Answer(body if tokens is None else {**body, "usage": {"total_tokens": tokens}})


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Server(ThreadingHTTPServer):
    """Gives the answers of `script` in turn, then `otherwise(request)`; `down` makes it answer 503."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[Answer] = []
        self.otherwise: Callable[[Asked], Answer] = lambda asked: said("yes")
        self.asked: list[Asked] = []
        self.down = False
        self.ending = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def answer(self, asked: Asked) -> Answer:
        with self.lock:
            self.asked.append(asked)
            if self.down:
                return Answer({"error": {"message": "the model is loading"}}, 503)
            if self.script:
                return self.script.pop(0)
        return self.otherwise(asked)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.answer(Asked(self.path, dict(self.headers), json.loads(raw)))
        if answer.hang:
            self.server.ending.wait()
            return
        if answer.endless:
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(answer.body)
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing is printed."""


@contextmanager
def serving() -> Iterator[Server]:
    """A server while the block runs."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.ending.set()
            server.shutdown()
            thread.join()


def embeddings(dimension: int = 16) -> Callable[[Asked], Answer]:
    """Answers with counts of words, in reverse order."""
    embedder = WordEmbedder(dimension=dimension)

    def answer(asked: Asked) -> Answer:
        rows = np.asarray(embedder.embed(asked.body["input"]), np.float64) * 3.0
        data = [{"object": "embedding", "index": place, "embedding": row.tolist()} for place, row in enumerate(rows)]
        return Answer({"object": "list", "data": data[::-1]})

    return answer


def refusing(word: str, dimension: int = 16, status: int = 400) -> Callable[[Asked], Answer]:
    """`embeddings`, but a request with a text that holds `word` is refused as a whole."""
    served = embeddings(dimension)

    def answer(asked: Asked) -> Answer:
        if any(word in text for text in asked.body["input"]):
            return Answer({"error": {"message": "the input is too long"}}, status)
        return served(asked)

    return answer
