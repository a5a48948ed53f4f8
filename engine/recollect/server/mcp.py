"""The Model Context Protocol at /mcp."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from recollect.memory import Memory
    from recollect.server.access import Access

GRANTED = "recollect.granted"
"""Where the scope of ASGI has the memory of a request, and whether it is only read."""


class MemoryProtocol:
    """The ASGI application of the protocol; it answers while `run` does."""

    def __init__(self, memory: Memory, access: Access) -> None:
        self._memory, self._access = memory, access
        self._running = anyio.Event()
        self._manager: StreamableHTTPSessionManager

    async def run(self) -> None:
        """Answer until cancelled. The SDK is imported meanwhile, which takes a second: the server waits for nothing."""
        tools = await anyio.to_thread.run_sync(importlib.import_module, "recollect.server.granted_tools")
        self._manager = tools.session_manager(self._memory)
        async with self._manager.run():
            self._running.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for what its token allows."""
        memory, _, grant = self._access.memory(HTTPConnection(scope))
        await self._running.wait()
        await self._manager.handle_request({**scope, GRANTED: (memory, grant.read_only)}, receive, send)
