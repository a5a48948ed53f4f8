"""The Model Context Protocol at /mcp."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from recallite.errors import ServerError
from recallite.system.logs import logger
from recallite_server.http.failures import Refused

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from recallite.memory import Memory
    from recallite_server.http.access import Access

_log = logger(__name__)
GRANTED = "recallite.granted"
"""Key, in the scope of ASGI, of the memory of a request, and whether it is only read."""


class MemoryProtocol:
    """The ASGI application of the protocol; it answers while `run` does."""

    def __init__(self, memory: Memory, access: Access) -> None:
        self._memory, self._access = memory, access
        self._running = anyio.Event()
        self._manager: StreamableHTTPSessionManager | None = None

    async def run(self) -> None:
        """Answer until cancelled. The SDK is imported meanwhile, which takes a second: the server waits for nothing."""
        try:
            tools = await anyio.to_thread.run_sync(importlib.import_module, "recallite_server.http.granted_tools")
        except Exception as fault:
            _log.error("the Model Context Protocol is not answered: its SDK cannot be imported", exc_info=fault)
            self._running.set()
            return
        manager = tools.session_manager(self._memory)
        async with manager.run():
            self._manager = manager
            self._running.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for what its token allows."""
        if scope["method"] != "POST":  # no request has a session that could be listened to
            raise Refused(405, "send requests of the protocol by POST")
        memory, _, grant = self._access.memory(HTTPConnection(scope))
        await self._running.wait()
        if self._manager is None:
            raise Refused(503, "the server's log says why it does not answer the protocol", error=ServerError)
        await self._manager.handle_request({**scope, GRANTED: (memory, grant.read_only)}, receive, send)
