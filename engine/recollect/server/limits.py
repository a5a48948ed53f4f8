"""What every request passes first: the checks of Host and Origin, and of the size and pace of its body."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from recollect.server.access import GRANT
from recollect.server.failures import Refused, failed
from recollect.server.tokens import Grant

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

OWN_NAMES = ("localhost", "127.0.0.1", "::1")
_GUARDED = ("/v1/", "/mcp", "/metrics")
_RAW = ("/v1/documents", "/v1/import")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Limits(Struct, frozen=True, kw_only=True):
    """What a client may ask of the server.

    - most_body_bytes, most_upload_bytes: of a JSON body, and of a document or an import
    - most_wait_seconds: how long a client may take for the next piece of a body, or to take the next of an answer
    - most_threads: how many operations run at a time; others wait
    """

    most_body_bytes: int = 16 * 2**20
    most_upload_bytes: int = 64 * 2**20
    most_wait_seconds: float = 30.0
    most_threads: int = 16


class Gate:
    """The application, behind the limits. Nothing is read of a request that has no grant.

    `hosts` are the names under which the server may be asked; None: any. `admit` gives the grant of an Authorization.
    """

    def __init__(
        self,
        application: Application,
        limits: Limits,
        hosts: Collection[str] | None,
        admit: Callable[[str | None], Grant],
    ) -> None:
        self._application, self._limits, self._hosts, self._admit = application, limits, hosts, admit

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        # Routes match the path as it was sent: an id may hold a slash, percent-encoded.
        path = scope.get("raw_path", b"").decode("ascii", "replace").partition("?")[0] or scope["path"]
        scope = {**scope, "path": path}
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        most = self._limits.most_upload_bytes if self._is_upload(scope) else self._limits.most_body_bytes
        answered = self._answering(send)
        try:
            self._check(scope, headers, most)
            if scope["path"].startswith(_GUARDED):
                scope[GRANT] = self._admit(headers.get(b"authorization"))
        except Refused as refusal:
            beside = {"connection": "close", **(refusal.headers or {})}  # the body is not read
            response = failed(refusal.status_code, refusal.error, refusal.detail, headers=beside)
            await response(scope, receive, answered)
            return
        await self._application(scope, self._received(receive, most), answered)

    def _is_upload(self, scope: Message) -> bool:
        return scope["method"] == "POST" and scope["path"] in _RAW

    def _check(self, scope: Message, headers: dict[bytes | str, str], most: int) -> None:
        host = _hostname(headers.get(b"host", ""))
        if self._hosts is not None and host not in self._hosts:
            raise Refused(403, f"this server does not answer for the host {host!r}", error="AccessDenied")
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc.lower() != headers.get(b"host", "").lower():
            raise Refused(403, "pages of other origins may not ask this server", error="AccessDenied")
        length = headers.get(b"content-length", "0")
        if length.isdigit() and int(length) > most:
            raise Refused(413, f"the body has {int(length):,} bytes: at most {most:,} are taken")
        empty = length == "0" and b"transfer-encoding" not in headers
        if scope["method"] in ("POST", "PATCH", "PUT") and not empty and not self._is_upload(scope):
            kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused(415, f"Content-Type is {kind or 'absent'}: send application/json")

    def _received(self, receive: Receive, most: int) -> Receive:
        """The body's pieces, up to a size, each in time."""
        total, ended = 0, False

        async def piece() -> Message:
            nonlocal total, ended
            if ended:  # what follows is only that the client goes, which may take long
                return await receive()
            try:
                async with asyncio.timeout(self._limits.most_wait_seconds):
                    message = await receive()
            except TimeoutError:
                raise Refused(408, "the body came too slowly: send it at once") from None
            if message["type"] == "http.request":
                total, ended = total + len(message.get("body", b"")), not message.get("more_body", False)
                if total > most:
                    raise Refused(413, f"the body has more than {most:,} bytes")
            return message

        return piece

    def _answering(self, send: Send) -> Send:
        """The answer with what every one is given; a client that does not take it is left."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in _HEADERS if each[0] not in given)]
            async with asyncio.timeout(self._limits.most_wait_seconds):
                await send(message)

        return sent


def _hostname(host: str) -> str:
    """The name in a Host header, without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def is_own(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
