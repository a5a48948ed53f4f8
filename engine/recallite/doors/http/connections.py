"""Connections of the server: the head of a request has a size and a time, and what nobody takes is not kept."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 65_536
"""The most bytes of the request line and the headers."""
MAX_HEAD_SECONDS = 30.0
"""Longest time that a connection may take to send them."""


class LimitedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn by httptools, which has neither limit."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._ends: asyncio.TimerHandle | None = None
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless it is the rest of a head that is too large."""
        if self._ends is not None:
            if self._head_bytes > MAX_HEAD_BYTES:
                self._abort()
                return
            self._head_bytes += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of this request."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._stop()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._stop()
        self._head_bytes = 0
        self._ends = self.loop.call_later(MAX_HEAD_SECONDS, self._abort)

    def _stop(self) -> None:
        if self._ends is not None:
            self._ends.cancel()
            self._ends = None

    def _abort(self) -> None:
        self._stop()
        self.transport.abort()
