"""Fetches a document by its URL: within limits, and from public addresses only."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2
from msgspec import Struct

from recollect._version import __version__
from recollect.checks import shown
from recollect.errors import DocumentRefused, DocumentTooLarge, DocumentUnreadable
from recollect.knowledge.addresses import is_public
from recollect.knowledge.loaded import Limits

__all__ = ["Fetched", "fetch"]

_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/markdown,text/plain;q=0.9,*/*;q=0.5"


class Fetched(Struct, frozen=True):
    """What a server sent: bytes, the URL that they came from in the end, and the media type and charset it stated."""

    data: bytes
    url: str
    media_type: str | None
    charset: str | None


class _PublicOnly(httpcore2.NetworkBackend):
    """Connects to public addresses only: the name is resolved once, and what was checked is what is connected to, so
    that no second answer of the resolver can lead elsewhere.
    """

    def __init__(self) -> None:
        self._backend = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """A connection to the first address of the host that is public and answers."""
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as reason:
            raise httpcore2.ConnectError(f"the name {host} cannot be resolved: {reason}") from reason
        addresses = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
        public = [address for address in addresses if is_public(address)]
        if not public:
            raise DocumentRefused(
                f"{host} is at {', '.join(addresses)}, which is no public address: "
                "give allow_private_addresses=True if it is meant"
            )
        for address in public[:-1]:
            try:
                return self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return self._backend.connect_tcp(public[-1], port, timeout, local_address, socket_options)


def fetch(url: str, limits: Limits, *, allow_private_addresses: bool = False) -> Fetched:
    """The document at an http(s) URL, after at most five redirects, each checked like the URL itself.

    Proxies of the environment are not used. Raises DocumentRefused, DocumentTooLarge and DocumentUnreadable.
    """
    backend = None if allow_private_addresses else _PublicOnly()
    deadline = time.monotonic() + limits.seconds
    at = _checked(url, None)
    with httpcore2.ConnectionPool(network_backend=backend, max_keepalive_connections=0) as pool:
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                answer = _get(pool, at, limits, deadline)
            except (httpcore2.TimeoutException, TimeoutError):
                raise DocumentTooLarge(f"{at} was not read within {limits.seconds:g} s") from None
            except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as reason:
                raise DocumentUnreadable(f"{at} cannot be read: {type(reason).__name__}: {reason}") from reason
            except (ssl.SSLError, OSError) as reason:
                raise DocumentUnreadable(f"{at} cannot be read: {reason}") from reason
            if isinstance(answer, Fetched):
                return answer
            at = _checked(answer, at)
    raise DocumentRefused(f"{url} leads on through more than {_MOST_REDIRECTS} redirects")


def _checked(url: str, base: httpx2.URL | None) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url) if base is None else base.join(url)
    except (httpx2.InvalidURL, ValueError) as reason:
        raise DocumentRefused(f"{shown(url)} is no URL: {reason}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise DocumentRefused(f"{shown(str(parsed))} is no http(s) URL")
    if parsed.userinfo:
        # Not shown: it may be a secret.
        raise DocumentRefused("the URL holds a user or a password: they would be stored as the document's source")
    return parsed.copy_with(fragment=None)


def _get(pool: httpcore2.ConnectionPool, url: httpx2.URL, limits: Limits, deadline: float) -> Fetched | str:
    """The document, or where a redirect leads."""
    left = max(deadline - time.monotonic(), 0.001)
    headers: dict[bytes | str, bytes | str] = {
        "Host": url.netloc.decode("ascii"),
        "User-Agent": f"recollect/{__version__}",
        "Accept": _ACCEPT,
        # What is packed could expand without end.
        "Accept-Encoding": "identity",
    }
    address = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), left)
    with pool.stream("GET", address, headers=headers, extensions={"timeout": timeouts}) as response:
        stated = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        if response.status in _REDIRECTS and "location" in stated:
            return stated["location"]
        if not 200 <= response.status < 300:
            raise DocumentUnreadable(f"{url} answered {response.status}")
        if stated.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            raise DocumentUnreadable(f"{url} answered in {shown(stated['content-encoding'])}, which was not asked for")
        if stated.get("content-length", "").isdecimal() and int(stated["content-length"]) > limits.max_bytes:
            raise DocumentTooLarge(f"{url} has {int(stated['content-length']):,} bytes: limit {limits.max_bytes:,}")
        body = bytearray()
        for piece in response.iter_stream():
            body += piece
            if len(body) > limits.max_bytes:
                raise DocumentTooLarge(f"{url} has more than {limits.max_bytes:,} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError
    media_type, _, parameters = stated.get("content-type", "").partition(";")
    charset = next((value.strip("\"' ") for value in parameters.lower().split("charset=")[1:]), None)
    return Fetched(bytes(body), str(url), media_type.strip().lower() or None, charset)
