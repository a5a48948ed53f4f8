"""Running the server: over standard input and output, or over HTTP."""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import anyio
import mcp_types as types
import msgspec
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from msgspec import Struct
from pydantic import ValidationError

from recallite.errors import InvalidInput
from recallite.model.checks import is_loopback
from recallite_server.mcp.server import MemoryServer

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

PATH = "/mcp"
_MOST_BODY_BYTES = 4 * 2**20

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


def run_stdio(memory: MemoryServer) -> None:
    """Answer one host until it closes its end of one of the pipes."""
    # A thread waits for input, which nothing else ends.
    anyio.run(partial(converse, memory, left=lambda: os._exit(1)))


async def converse(
    memory: MemoryServer, lines: Any = None, answers: Any = None, *, left: Callable[[], object] = lambda: None
) -> None:
    """Answer the lines of one host, by default those of standard input, until they end.

    `left` is called when nobody takes the answers; the memory is closed then.
    """
    server = memory.server()
    async with stdio_server(lines, answers) as (incoming, outgoing):
        try:
            await server.run(_Readable(incoming, outgoing), outgoing, server.create_initialization_options())
        except anyio.get_cancelled_exc_class():
            left()
            raise


class _Readable:
    """The messages of a host. Lines that are none are answered, which the SDK does not do."""

    def __init__(self, incoming: ReadStream[SessionMessage | Exception], outgoing: WriteStream[SessionMessage]) -> None:
        self._incoming, self._outgoing = incoming, outgoing

    async def receive(self) -> SessionMessage | Exception:
        while isinstance(item := await self._incoming.receive(), Exception):
            await self._outgoing.send(SessionMessage(_refusal(item)))
        return item

    async def aclose(self) -> None:
        await self._incoming.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Request(Struct):
    id: int | str | None = None


def _refusal(fault: Exception) -> types.JSONRPCError:
    """The answer to a line that is no message, with the id of the request if it can be read."""
    errors = fault.errors(include_url=False) if isinstance(fault, ValidationError) else []
    id, code, message = None, types.INVALID_REQUEST, "the line is no request of JSON-RPC 2.0"
    if errors and errors[0]["type"] == "json_invalid":
        code, message = types.PARSE_ERROR, "the line is not JSON, or is nested too deep"
        with suppress(ValueError, TypeError, RecursionError, msgspec.MsgspecError):
            # Python reads what the SDK refuses: half of a character, as of a text that was cut within an emoji.
            request_id = msgspec.convert(json.loads(errors[0]["input"]), _Request).id
            str(request_id).encode()
            id = request_id
            if r"\ud" in str(errors[0]["input"]).lower():
                message = "a text has half of a character (a lone surrogate): send the whole"
    elif requests := [error["input"] for error in errors if isinstance(error["input"], dict)]:
        with suppress(msgspec.MsgspecError):
            id = msgspec.convert(requests[0], _Request).id
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=message))


def run_http(memory: MemoryServer, host: str, port: int, token: str | None) -> None:
    """Answer hosts at http://HOST:PORT/mcp until the process is told to end.

    Raises InvalidInput without a token, unless the address is this machine's own, and if it cannot be bound.
    """
    from recallite_server.http.connections import listen, server_of

    application = http_application(memory, host, token)
    with listen(host, port) as listener:
        server_of(application).run(sockets=[listener])


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
