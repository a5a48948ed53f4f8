"""Exports as answers, written as fast as clients take them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recallite.doors.calls import MEDIA_TYPES
from recallite.memory import Memory
from recallite.system.logs import logger

_log = logger(__name__)
_PIECE_CHARS = 65_536
_PIECES = 4
MAX_EXPORTS = 4
"""Most exports that are written at a time: slow clients hold up other exports alone."""


class _Pieces(io.TextIOBase):
    """A text file whose pieces are sent on as they are written, from a thread; it waits while nobody takes them."""

    def __init__(self, to: MemoryObjectSendStream[bytes]) -> None:
        self._to, self._kept, self._chars = to, list[str](), 0

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self._kept.append(text)
        self._chars += len(text)
        if self._chars >= _PIECE_CHARS:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self._kept:
            anyio.from_thread.run(self._to.send, "".join(self._kept).encode())
            self._kept, self._chars = [], 0


class Export(Response):
    """An export as an answer, written as fast as the client takes it.

    If it fails in the middle the connection is broken, so that nobody takes a part for the whole.
    """

    def __init__(self, memory: Memory, options: Mapping[str, Any], limiter: anyio.CapacityLimiter) -> None:
        super().__init__(media_type=MEDIA_TYPES[options.get("format", "jsonl")])
        del self.headers["content-length"]
        self._memory, self._options, self._limiter = memory, {"format": "jsonl", **options}, limiter

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Write it."""
        to, pieces = anyio.create_memory_object_stream[bytes](_PIECES)

        def write() -> None:
            file = _Pieces(to)
            self._memory.transfer.export(cast("io.TextIOWrapper", file), **self._options)
            file.flush()

        async def run() -> None:
            async with to:
                await anyio.to_thread.run_sync(write, limiter=self._limiter)

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        complete = False
        # When the client has gone the pieces are closed first, which ends the thread that writes them.
        async with anyio.create_task_group() as group, pieces:

            async def leave() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(run)
            group.start_soon(leave)
            try:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                complete = True
            except TimeoutError:
                _log.info("a client does not take its export")
            group.cancel_scope.cancel()
        if complete:
            await send({"type": "http.response.body", "body": b""})
