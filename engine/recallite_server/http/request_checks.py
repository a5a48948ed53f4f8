"""Everything between a connection and an operation: errors as answers, access, and the checks of every request.

An error is answered as {"error": {"type", "field", "message"}}, without a traceback and without paths of the machine.
A request is checked for its Host, Origin and token, and for the size and pace of its body; it is counted too.
"""

from __future__ import annotations

import asyncio
import difflib
import ipaddress
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from contextlib import nullcontext
from pathlib import PurePath
from time import perf_counter
from typing import Any
from urllib.parse import unquote

import anyio.to_thread
import msgspec
from msgspec import Struct, structs
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response

from recallite.doors.operation import codes_of
from recallite.doors.operations import SCOPE_HEADER
from recallite.errors import (
    AccessDenied,
    InvalidInput,
    InvalidItem,
    RecalliteError,
    ServerError,
    StoreError,
    StoreUnavailable,
    plain,
)
from recallite.memory import Memory
from recallite.model.authority import speaking_as
from recallite.model.records import Hits, Records
from recallite.model.reports import Forgotten, Stats
from recallite.system.messages import shown
from recallite.system.telemetry import logger
from recallite_server.http.access_tokens import Grant, Tokens
from recallite_server.http.connections import MAX_CONNECTIONS
from recallite_server.operations import RecordsAnswer

_log = logger(__name__)
# Of more fields than these only those like a wrong one are named.
_MOST_LISTED = 20
_FIRST = re.compile(r"[ .:,\[]")
# What is said of a failure whose own message names files.
_STORE_SAYS = "the store cannot do this now; the log of the server says why"
# Of a body that is refused the rest is not read.
_BESIDE = {
    401: {"WWW-Authenticate": "Bearer"},
    408: {"Connection": "close"},
    413: {"Connection": "close"},
    503: {"Connection": "close", "Retry-After": "1"},
}


class Refused(HTTPException):
    """A request that is refused before an operation begins; `error` is the class of the error for the client."""

    def __init__(self, status: int, message: str, *, error: type[RecalliteError] = InvalidInput) -> None:
        super().__init__(status, message, _BESIDE.get(status))
        self.error = error


class WrongField(InvalidInput):
    """A request has a field that its operation does not take."""

    def __init__(self, field: str, takes: Collection[str]) -> None:
        known = takes if len(takes) <= _MOST_LISTED else difflib.get_close_matches(field, takes)
        super().__init__(f"there is no field {shown(field)} here: use {', '.join(known) or 'those of /openapi.json'}")
        self.field = field


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON."""
    return Response(
        msgspec.json.encode(value, enc_hook=lambda array: array.tolist()),
        status,
        dict(headers or {}),
        "application/json",
    )


def error_json(
    status: int, fault: RecalliteError, *, field: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """An error as JSON."""
    return json_response({"error": {"field": field, **_as_fields(plain(fault))}}, status, headers)


def _as_fields(fault: RecalliteError) -> dict[str, Any]:
    fields = {"type": type(fault).__name__, "reason": fault.reason, "message": str(fault)}
    if isinstance(fault, InvalidItem):
        of_item = {"position": fault.position, "stored": fault.stored, "label": fault.label}
        return {**fields, **of_item, "item": _as_fields(fault.error)}
    return fields


def error_response(fault: RecalliteError, fields: Collection[str] = ()) -> Response:
    """An error of the engine as JSON; its field is the one that its message begins with."""
    status, first = codes_of(fault).status, _FIRST.split(str(fault), 1)[0]
    field = fault.field if isinstance(fault, WrongField) else first if first in fields else None
    headers = {"Retry-After": "1"} if isinstance(fault, StoreUnavailable) else None
    if isinstance(fault, StoreError):
        _log.error("%s: %s", type(fault).__name__, fault)
        fault = plain(fault)
        fault.args = (_STORE_SAYS,)
    return error_json(status, fault, field=field, headers=headers)


async def _of_engine(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, RecalliteError)
    return error_response(fault, getattr(request.scope.get("route"), "fields", ()))


async def _of_http(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, HTTPException)
    if isinstance(fault, Refused):
        return error_json(fault.status_code, fault.error(fault.detail), headers=fault.headers)
    message = f"{request.method} {shown(request.url.path)} is no operation: /openapi.json lists them"
    return error_json(fault.status_code, ServerError(message), headers=fault.headers)


async def _unexpected(_: Request, fault: Exception) -> Response:
    if isinstance(fault, UnicodeError):
        return error_json(422, InvalidInput("a text holds half of a surrogate pair: send valid Unicode", "text"))
    return error_json(500, ServerError("an unexpected failure: the log of the server has it"))


HANDLERS: dict[Any, Any] = {
    RecalliteError: _of_engine, HTTPException: _of_http, UnicodeError: _unexpected, Exception: _unexpected
}  # fmt: skip
"""The answers to failures, for Starlette."""


def without_folders(value: Any) -> Any:
    """A result with the names of the store's files, and without their folders."""
    if isinstance(value, Hits):
        return value.fields()
    if isinstance(value, Records):
        return RecordsAnswer(value, value.left_out)
    if isinstance(value, list):
        return [*map(without_folders, value)]
    if isinstance(value, Stats):
        return structs.replace(value, path=None if value.path is None else _name(value.path))
    if isinstance(value, Forgotten) and value.receipt is not None:
        files = {_name(path): size for path, size in value.receipt.files.items()}
        receipt = structs.replace(value.receipt, path=_name(value.receipt.path), files=files)
        return structs.replace(value, receipt=receipt)
    return value


def _name(path: str) -> str:
    return PurePath(path).name


GRANT = "recallite.grant"
"""Key, in the scope of ASGI, of the grant of a request that was admitted."""
_BEARER = "bearer "


class Access:
    """Finds what a request may do. Without `tokens_required` one without a token may do everything."""

    def __init__(self, memory: Memory, tokens: Tokens, *, tokens_required: bool) -> None:
        self._memory, self._tokens, self._required = memory, tokens, tokens_required

    def grant(self, authorization: str | None) -> Grant:
        """The grant of a request with this header. Raises Refused (401) without a good token where one is needed."""
        if authorization is None:
            if self._required:
                raise Refused(401, "this server asks for a token: send Authorization: Bearer ...", error=AccessDenied)
            return Grant()
        if authorization[: len(_BEARER)].lower() != _BEARER:
            raise Refused(401, "Authorization is no bearer token: send Authorization: Bearer ...", error=AccessDenied)
        try:
            return self._tokens.grant(authorization[len(_BEARER) :].strip())
        except AccessDenied as fault:
            raise Refused(401, str(fault), error=AccessDenied) from None

    def memory(self, request: HTTPConnection) -> tuple[Memory, str, Grant]:
        """The memory that an admitted request may see, the scope that it is bound to, and what it may do there.

        Raises InvalidInput for a malformed scope in the header.
        """
        grant: Grant = request.scope[GRANT]
        memory = self._memory if grant.scope == "/" else self._memory.scoped(grant.scope, reads=grant.reads)
        narrowed = request.headers.get(SCOPE_HEADER, "/")
        if not narrowed.isascii():
            raise Refused(422, f"{SCOPE_HEADER} is not ASCII: percent-encode it, as UTF-8")
        if narrowed != "/":
            memory = memory.scoped(unquote(narrowed, errors="surrogateescape"))
        return memory, memory.scope, grant


def may_write(request: HTTPConnection) -> None:
    """Raise Refused (403) for a request with a token for reading."""
    if request.scope[GRANT].read_only:
        raise Refused(403, "the token is for reading: this changes something", error=AccessDenied)


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_GUARDED = ("/v1/", "/mcp", "/metrics")
_RAW = ("/v1/documents", "/v1/import")
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::\d{1,5})?")
_PIECE_BYTES = 65_536
_BODY = "recallite.body"
_ONCE = ("Host", "Authorization", SCOPE_HEADER)
_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of what a client may ask of the server.

    - max_body_bytes, max_upload_bytes: of a JSON body, and of a document or an import
    - max_wait_seconds: how long a client may take for the next piece of a body, or to take the next of an answer
    - max_threads: how many operations run at a time; others wait
    - max_large_threads: how many whose body is above 64 KiB run at a time, beside these
    - max_bodies_bytes: of all bodies at a time, but for the first 64 KiB of each
    - min_bytes_per_second: the least rate of a body, after the first `max_wait_seconds`
    - max_connections: at a time; fewer if the system allows fewer open files
    """

    max_body_bytes: int = 16 * 2**20
    max_upload_bytes: int = 64 * 2**20
    max_wait_seconds: float = 30.0
    max_threads: int = 16
    max_large_threads: int = 2
    max_bodies_bytes: int = 256 * 2**20
    min_bytes_per_second: int = 16_384
    max_connections: int = MAX_CONNECTIONS


class RequestChecks:
    """The application behind the checks. Under /v1, /mcp and /metrics the token is checked before the body is read.

    `hosts` are the names under which the server may be asked; None: any. `admit` gives the grant of an Authorization.
    `counted` is told the operation of each request, its status, and the seconds that its answer took.
    """

    def __init__(
        self,
        application: Application,
        limits: Limits,
        hosts: Collection[str] | None,
        admit: Callable[[str | None], Grant],
        counted: Callable[[str, int, float], None],
    ) -> None:
        self._application, self._limits, self._hosts = application, limits, hosts
        self._admit, self._counted = admit, counted
        self._bodies_bytes = 0  # of the requests that run

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        began = perf_counter()
        # Routes match the path as it was sent: an id may hold a slash, percent-encoded.
        path = scope.get("raw_path", b"").decode("ascii", "replace").partition("?")[0] or scope["path"]
        scope = {**scope, "path": path}
        answering, body = _Answering(send, self._limits.max_wait_seconds), _Body()
        scope[_BODY] = body
        try:
            refusal = await self._refusal(scope)
            if refusal is None:
                grant: Grant | None = scope.get(GRANT)
                with nullcontext() if grant is None else speaking_as(grant.authority):
                    await self._application(scope, self._received(scope, receive, body), answering)
            else:
                await refusal(scope, receive, answering)
        except (ClientDisconnect, TimeoutError):
            _log.info("a client went, or took no answer for %g s", self._limits.max_wait_seconds)
        except Exception as fault:
            if not answering.complete:
                raise  # the connection is closed, so that nobody takes a part for the whole
            _log.error("an unexpected failure", exc_info=fault)
        finally:
            self._bodies_bytes -= body.counted_bytes
            # Few names, whatever was asked for.
            name = str(getattr(scope.get("route"), "name", "mcp" if path == "/mcp" else "other"))
            self._counted(name, answering.status, perf_counter() - began)

    async def _refusal(self, scope: Message) -> Response | None:
        """The answer to a request that is refused; None where it may be passed on, with its grant."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._check(scope, headers)
            if scope["path"].startswith(_GUARDED):
                authorization = headers.get(b"authorization")
                if authorization is None:
                    scope[GRANT] = self._admit(None)
                else:  # in a thread: another process may hold the store for a while
                    scope[GRANT] = await anyio.to_thread.run_sync(self._admit, authorization)
        except Refused as refusal:
            beside = {"connection": "close", **(refusal.headers or {})}  # the body is not read
            return error_json(refusal.status_code, refusal.error(refusal.detail), headers=beside)
        except RecalliteError as fault:
            return error_response(fault)
        return None

    def _max_bytes(self, scope: Message) -> int:
        return self._limits.max_upload_bytes if self._is_upload(scope) else self._limits.max_body_bytes

    def _is_upload(self, scope: Message) -> bool:
        return scope["method"] == "POST" and scope["path"] in _RAW

    def _check(self, scope: Message, headers: dict[bytes, str]) -> None:
        names = Counter(name for name, _ in scope["headers"])
        for name in _ONCE:
            if names[name.lower().encode()] > 1:
                raise Refused(400, f"the request has several {name} headers")
        host = hostname(headers.get(b"host", ""))
        if self._hosts is not None and host not in self._hosts:
            raise Refused(403, f"this server does not answer for the host {host!r}", error=AccessDenied)
        origin = headers.get(b"origin")
        if origin is not None and origin.partition("://")[2].lower() != headers.get(b"host", "").lower():
            raise Refused(403, "pages of other origins may not ask this server", error=AccessDenied)
        length, most = headers.get(b"content-length", "0"), self._max_bytes(scope)
        if length.isdigit() and int(length) > most:
            raise Refused(413, f"the body has {int(length):,} bytes: at most {most:,} are taken")
        empty = length == "0" and b"transfer-encoding" not in headers
        if scope["method"] in ("POST", "PATCH", "PUT") and not empty and not self._is_upload(scope):
            kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused(415, f"Content-Type is {kind or 'absent'}: send application/json")

    def _received(self, scope: Message, receive: Receive, body: _Body) -> Receive:
        """The body's pieces, up to a size, each in time, as far as all bodies fit in memory."""
        limits, most = self._limits, self._max_bytes(scope)
        began = asyncio.get_running_loop().time()

        async def piece() -> Message:
            if body.ended:  # what follows is only that the client goes, which may take long
                return await receive()
            due = began + limits.max_wait_seconds + body.bytes / limits.min_bytes_per_second
            try:
                async with asyncio.timeout_at(min(due, asyncio.get_running_loop().time() + limits.max_wait_seconds)):
                    message = await receive()
            except TimeoutError:
                raise Refused(408, "the body came too slowly: send it at once") from None
            if message["type"] == "http.request":
                body.bytes += len(message.get("body", b""))
                body.ended = not message.get("more_body", False)
                if body.bytes > most:
                    raise Refused(413, f"the body has more than {most:,} bytes")
                self._count(body)
            return message

        return piece

    def _count(self, body: _Body) -> None:
        """Count what a body has above the first piece. Raises Refused if all together have too much."""
        more = max(body.bytes - _PIECE_BYTES, 0) - body.counted_bytes
        if self._bodies_bytes + more > self._limits.max_bodies_bytes:
            raise Refused(
                503, "the server has too many large bodies at this time: send it again later", error=ServerError
            )
        self._bodies_bytes += more
        body.counted_bytes += more


class _Body:
    """The body of a request as far as it has come, and how much of it is counted among all bodies."""

    def __init__(self) -> None:
        self.bytes = self.counted_bytes = 0
        self.ended = False


def is_large(scope: Message) -> bool:
    """Whether a request has a large body: what it asks for may take long."""
    body: _Body = scope[_BODY]
    return body.bytes > _PIECE_BYTES


class _Answering:
    """Sends an answer with the headers that every one has; a client that does not take it in time is left."""

    def __init__(self, send: Send, max_wait_seconds: float) -> None:
        self._send, self._max_wait_seconds = send, max_wait_seconds
        self.status = 499  # no answer was begun: the client had gone
        self.complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            present = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(header for header in _HEADERS if header[0] not in present)]
        body = message.get("body", b"")
        # In pieces: what is sent at once is kept for as long as the client does not take it.
        while len(body) > _PIECE_BYTES:
            await self._sent({**message, "body": body[:_PIECE_BYTES], "more_body": True})
            body = body[_PIECE_BYTES:]
        await self._sent({**message, "body": body} if body else message)
        self.complete = message["type"] == "http.response.body" and not message.get("more_body", False)

    async def _sent(self, message: Message) -> None:
        async with asyncio.timeout(self._max_wait_seconds):
            await self._send(message)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def hostname(host: str) -> str:
    """The name in a Host header, without the port; "" if it is none."""
    match = _HOST.fullmatch(host)
    return "" if match is None else (match[1] or match[2]).lower()
