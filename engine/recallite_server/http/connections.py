"""Connections of a server: they have a number, a head has a size and a time, and what nobody takes is not kept."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from functools import partial
from itertools import count
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from recallite.errors import InvalidInput
from recallite.system.processes import raise_file_limit

MAX_CONNECTIONS = 1_000
"""The most connections at a time, unless the system allows fewer open files."""
MAX_HEAD_BYTES = 65_536
"""The most bytes of the request line and the headers."""
MAX_HEAD_SECONDS = 30.0
"""Longest time that a connection may take to send them."""
MAX_SILENT_SECONDS = 10.0
"""Longest time that a new connection may take to send a first byte."""
# Files of the store and its threads, and connections that are accepted before others are closed.
_OTHER_FILES = 256
_BACKLOG = 128
_GRACE_SECONDS = 5
_UNTAKEN_MILLISECONDS = 30_000
# Longer than clients keep a connection that they do not use: httpx, for one, 5 s.
_KEEP_ALIVE_SECONDS = 30
_turns = count()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens: connections that come before the server does wait.

    Raises InvalidInput if the address cannot be bound.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux: the system drops a client that does not take what was sent
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNTAKEN_MILLISECONDS)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as fault:
        listener.close()
        raise InvalidInput(f"{host}:{port} cannot be used ({fault.strerror or fault}): give another port") from None
    return listener


class LimitedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn by httptools, which has no limit but of requests that run.

    A connection above `max_connections` takes the place of one that waits for its client: of the address that has the
    most, first of those that never sent a request, the one that has waited longest.
    """

    def __init__(self, *arguments: Any, max_connections: int = MAX_CONNECTIONS, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._max_connections = max_connections
        self._ends: asyncio.TimerHandle | None = None
        self._unparsed_bytes = 0  # since the head began, or the last piece of the body
        self._turn = next(_turns)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait(MAX_SILENT_SECONDS)
        if len(self.connections) > self._max_connections:
            self._to_close().abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless it is the rest of a head, or of what follows a body, that is too large."""
        if self._unparsed_bytes > MAX_HEAD_BYTES:
            self.abort()
            return
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._waits and self._ends is None:  # a blank line: it ends uvicorn's wait, and begins no request
            self._wait(MAX_HEAD_SECONDS)

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of this request."""
        super().on_message_begin()
        self._wait(MAX_HEAD_SECONDS)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, as h11 does: without blanks at its ends, and none that follows the body."""
        if self._ends is not None:
            super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._stop()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._turn = next(_turns)
        super().on_response_complete()

    def abort(self) -> None:
        """Close the connection at once."""
        self._stop()
        self.connections.discard(self)
        self.transport.abort()

    def _to_close(self) -> LimitedProtocol:
        """The connection that is closed for this one; itself if all are being answered."""
        others = [other for other in self.connections if isinstance(other, LimitedProtocol)]
        counts = Counter(other._address for other in others)
        return max(
            (other for other in others if other is not self and other._waits),
            key=lambda other: (counts[other._address], other.cycle is None, -other._turn),
            default=self,
        )

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def _waits(self) -> bool:
        """Whether it waits for a request of its client."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _wait(self, seconds: float) -> None:
        self._stop()
        self._unparsed_bytes = 0
        self._ends = self.loop.call_later(seconds, self.abort)

    def _stop(self) -> None:
        if self._ends is not None:
            self._ends.cancel()
            self._ends = None


def server_of(application: Any, max_connections: int = MAX_CONNECTIONS) -> uvicorn.Server:
    """The server that runs an application. The process may open as many files as the system lets it from now on."""
    files = raise_file_limit()
    most = min(max_connections, max(files - _OTHER_FILES, files // 2))
    config = uvicorn.Config(
        application, log_level="warning", access_log=False, server_header=False, date_header=False, ws="none",
        timeout_graceful_shutdown=_GRACE_SECONDS, timeout_keep_alive=_KEEP_ALIVE_SECONDS, backlog=_BACKLOG,
        http=cast("type[asyncio.Protocol]", partial(LimitedProtocol, max_connections=most)),
    )  # fmt: skip
    return uvicorn.Server(config)
