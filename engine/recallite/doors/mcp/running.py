"""Running the server: over standard input and output, or over HTTP."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from recallite.doors.mcp.server import MemoryServer
from recallite.errors import InvalidInput
from recallite.model.checks import is_loopback

PATH = "/mcp"
_MOST_BODY_BYTES = 4 * 2**20

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


def run_stdio(memory: MemoryServer) -> None:
    """Answer one host until its end of the pipe is closed."""

    async def answer() -> None:
        server = memory.server()
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(answer)


def run_http(memory: MemoryServer, host: str, port: int, token: str | None) -> None:
    """Answer hosts at http://HOST:PORT/mcp until the process is told to end.

    Raises InvalidInput without a token, unless the address is this machine's own.
    """
    import uvicorn

    uvicorn.run(http_application(memory, host, token), host=host, port=port, log_level="warning", access_log=False)


def http_application(memory: MemoryServer, host: str, token: str | None) -> Application:
    """The ASGI application: the server behind the check of Host, Origin and the token."""
    local = is_loopback(host)
    if not local and token is None:
        raise InvalidInput(f"{host} can be reached by others: give a token (RECALLITE_MCP_TOKEN or --token-file)")
    # A page in a browser may send requests to this machine's own address, and cannot know a token.
    names = ["127.0.0.1", "localhost", "[::1]"]
    guard = TransportSecuritySettings(
        enable_dns_rebinding_protection=local,
        allowed_hosts=[address for name in names for address in (name, f"{name}:*")],
        allowed_origins=[address for name in names for address in (f"http://{name}", f"http://{name}:*")],
    )
    application: Application = memory.server().streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, max_request_body_size=_MOST_BODY_BYTES,
        transport_security=guard, host=host,
    )  # fmt: skip
    return application if token is None else _with_token(application, token)


def _with_token(application: Application, token: str) -> Application:
    """The application for those who send this token."""
    expected = f"Bearer {token}".encode()

    async def answer(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        if hmac.compare_digest(header, expected):
            await application(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"error": "send the token as Authorization: Bearer"}'})

    return answer
