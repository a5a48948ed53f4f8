"""A network between a client and a server that a test can stall, and cut at a byte of its choice."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote, urlencode

_CHUNK_BYTES = 65_536


class _Cut(NamedTuple):
    text: bytes
    when: str
    server_notices: bool


class Proxy:
    """Listens on a port of 127.0.0.1 and passes bytes to a Unix socket and back, until it is told otherwise."""

    def __init__(self, upstream: Path) -> None:
        self._upstream = upstream
        self._passing = threading.Event()
        self._passing.set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._refuses = False
        self._cut: _Cut | None = None
        self._answered: dict[socket.socket, _Cut] = {}
        self._deaf: set[socket.socket] = set()
        self._happened = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self.cut()
        self._passing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def address(self, *, user: str = "postgres", database: str = "postgres", **parameters: str) -> str:
        """A `postgresql://` address through the proxy."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"postgresql://{quote(user)}@127.0.0.1:{self.port}/{quote(database)}{query}"

    def refuse(self) -> None:
        """Close every new connection, until `mend`."""
        self._refuses = True

    def cut(self) -> None:
        """Close every connection."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                _close(end)

    def mend(self) -> None:
        """Let connections be made, and bytes pass."""
        self._refuses = False
        self._passing.set()

    def stall(self) -> None:
        """Keep every byte, as a network does that lost its route; connections stay."""
        self._passing.clear()

    def cut_at(
        self, text: bytes, *, when: Literal["before", "during", "after"], server_notices: bool = True
    ) -> threading.Event:
        """Cut the next connection whose client sends `text`; the event says that it happened.

        "before" the server gets it, "during" what it does then, or "after" it has answered: the client gets no answer.
        Unless the `server_notices`, its end of the connection stays open.
        """
        self._happened = threading.Event()
        self._cut = _Cut(text, when, server_notices)
        return self._happened

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                if self._refuses:
                    raise ConnectionRefusedError
                server.connect(str(self._upstream))
            except OSError:
                _close(client)
                server.close()
                continue
            pair = (client, server)
            self._pairs.append(pair)
            for source, target in (pair, pair[::-1]):
                threading.Thread(target=self._pump, args=(source, target, source is client), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK_BYTES):
                self._passing.wait()
                if from_client and self._cut is not None and self._cut.text in chunk:
                    cut, self._cut = self._cut, None
                    self._carry_out(cut, chunk, source, target)
                    return
                if target in self._deaf:
                    return
                if target in self._answered:
                    self._end(target, source, self._answered.pop(target))
                    return
                target.sendall(chunk)
        for end in (source, target):
            _close(end)

    def _carry_out(self, cut: _Cut, chunk: bytes, client: socket.socket, server: socket.socket) -> None:
        if cut.when == "after":
            self._answered[client] = cut
        elif cut.when == "during":  # its answer may be faster than the cut
            self._deaf.add(client)
        if cut.when != "before":
            server.sendall(chunk)
        if cut.when != "after":
            self._end(client, server, cut)

    def _end(self, client: socket.socket, server: socket.socket, cut: _Cut) -> None:
        _close(client)
        if cut.server_notices:
            _close(server)
        self._happened.set()


def _close(end: socket.socket) -> None:
    """Close a socket, also for the thread that waits for its bytes."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
