"""The Model Context Protocol at /mcp: the tools of `recollect mcp`, for what the token of each request allows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from recollect.mcp.server import Context, MemoryServer, offered
from recollect.tools.action import DocumentAccess

if TYPE_CHECKING:
    from recollect.mcp.actions import ServerTool
    from recollect.memory import Memory
    from recollect.server.access import Access

_GRANTED = "recollect.granted"
_MOST_BODY_BYTES = 4 * 2**20


class _GrantedServer(MemoryServer):
    """A server whose memory and tools are those of the request's token."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(lambda: nullcontext(memory))
        self._read_only = {each.name: each for each in offered(True, None, DocumentAccess())}

    def memory_for(self, context: Context) -> Memory:
        return _granted(context)[0]

    def tools_for(self, context: Context) -> dict[str, ServerTool]:
        return self._read_only if _granted(context)[1] else self._tools


def _granted(context: Context) -> tuple[Memory, bool]:
    """The memory of a request, and whether it is only read."""
    assert context.request is not None
    found: tuple[Memory, bool] = context.request.scope[_GRANTED]
    return found


class MemoryProtocol:
    """The ASGI application of the protocol. No request has a session: any may be the last."""

    def __init__(self, memory: Memory, access: Access) -> None:
        self._access = access
        self._manager = StreamableHTTPSessionManager(
            app=_GrantedServer(memory).server(), json_response=True, stateless=True,
            max_request_body_size=_MOST_BODY_BYTES,
        )  # fmt: skip

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The time in which it answers."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for what its token allows."""
        memory, _, grant = self._access.memory(HTTPConnection(scope))
        await self._manager.handle_request({**scope, _GRANTED: (memory, grant.read_only)}, receive, send)
