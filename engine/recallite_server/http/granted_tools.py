"""The tools of `recallite mcp` for requests over HTTP, each for what its token allows."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from recallite.doors.tools.action import DocumentAccess
from recallite_server.http.app import GRANTED
from recallite_server.mcp.server import Context, MemoryServer, offered

if TYPE_CHECKING:
    from recallite.doors.tools.server_tools import ServerTool
    from recallite.memory import Memory

_MOST_BODY_BYTES = 4 * 2**20


class _GrantedServer(MemoryServer):
    """A server whose memory and tools are those of the request's token."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(lambda: nullcontext(memory))
        self._read_only = {tool.name: tool for tool in offered(True, None, DocumentAccess())}

    def memory_for(self, context: Context) -> Memory:
        return _granted(context)[0]

    def tools_for(self, context: Context) -> dict[str, ServerTool]:
        return self._read_only if _granted(context)[1] else self._tools


def _granted(context: Context) -> tuple[Memory, bool]:
    """The memory of a request, and whether it is only read."""
    assert context.request is not None
    granted: tuple[Memory, bool] = context.request.scope[GRANTED]
    return granted


def session_manager(memory: Memory) -> StreamableHTTPSessionManager:
    """The manager that answers requests of the protocol. No request has a session: any may be the last."""
    return StreamableHTTPSessionManager(
        app=_GrantedServer(memory).server(), json_response=True, stateless=True, max_request_body_size=_MOST_BODY_BYTES
    )
