"""Fetching a document by its URL: within limits, and from public addresses only.

Public addresses are those of the Internet that are no metadata service of a cloud.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import httpcore2
import httpx2
from msgspec import Struct

from recallite._version import __version__
from recallite.documents.document import Limits
from recallite.errors import DocumentError
from recallite.system.messages import shown, without_userinfo

# RFC 6052: an IPv4 address in the last 32 bits, which a gateway connects to. RFC 4291 has the deprecated form in ::/96.
_EMBEDDING = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
# RFC 5214, ISATAP: an IPv4 address in the last 32 bits of an interface identifier that begins with one of these.
_ISATAP = (0x00005EFE, 0x02005EFE)
# Global to some versions of Python: relays of 6to4 (RFC 7526), documentation (RFC 9637), segments (RFC 9602).
_NOT_PUBLIC = tuple(
    map(ipaddress.ip_network, ("192.88.99.0/24", "192.0.0.0/24", "64:ff9b:1::/48", "3fff::/20", "5f00::/16"))
)
# Addresses of credential services of clouds: AWS, Azure, Google and most others; ECS; Alibaba; Oracle; Azure's host,
# which has a public address; AWS over IPv6.
_METADATA = frozenset(map(ipaddress.ip_address, (
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
)))  # fmt: skip


def is_public(address: str) -> bool:
    """Whether an address, as a resolver returns it, is public.

    Not public are private, loopback, link-local, shared, multicast, reserved, documentation and unspecified addresses.
    IPv4 addresses embedded in IPv6 (mapped, compatible, 6to4, Teredo, ISATAP, NAT64) must be public too.
    """
    return all(
        ip.is_global
        and not (ip.is_multicast or ip.is_reserved or (isinstance(ip, IPv6Address) and ip.is_site_local))
        and ip not in _METADATA
        and not any(ip in network for network in _NOT_PUBLIC)
        for ip in _embedded(address)
    )


def is_metadata(address: str) -> bool:
    """Whether an address is, or embeds, the one of a cloud's metadata service. It is always refused."""
    return not _METADATA.isdisjoint(_embedded(address))


def _embedded(address: str) -> list[IPv4Address | IPv6Address]:
    """Return the addresses embedded in this one, else the address itself."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, IPv4Address):
        return [ip]
    if ip.ipv4_mapped is not None:
        return [ip.ipv4_mapped]
    last = IPv4Address(int(ip) & 0xFFFFFFFF)
    if any(ip in network for network in _EMBEDDING) and int(ip) > 1:
        return [last]
    if ip.sixtofour is not None:
        return [ip, ip.sixtofour]
    if ip.teredo is not None:
        return [ip, *ip.teredo]
    return [ip, last] if (int(ip) >> 32) & 0xFFFFFFFF in _ISATAP else [ip]


# Requests, redirects and their limits.

_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
# A body sent in small chunks takes about twice its length; headers take some kilobytes.
_WIRE_FACTOR, _WIRE_BYTES = 2, 1_000_000
_WRITTEN_BYTES = 1024
_ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/markdown,text/plain;q=0.9,*/*;q=0.5"


class FetchedPage(Struct, frozen=True):
    """An answer: the bytes, the final URL, and the declared media type and charset."""

    data: bytes
    url: str
    media_type: str | None
    charset: str | None


class _Budget:
    """The time, and bytes of headers, framing and body, that a fetch may still take, redirects included."""

    def __init__(self, limits: Limits) -> None:
        self._deadline = time.monotonic() + limits.seconds
        self._max_bytes = _WIRE_FACTOR * limits.max_bytes + _WIRE_BYTES
        self._bytes = 0

    def seconds(self) -> float:
        """Return the seconds that are left; TimeoutError if there are none."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def received(self, count: int) -> None:
        """Count received bytes. Raises DocumentError."""
        self._bytes += count
        if self._bytes > self._max_bytes:
            raise DocumentError(f"its server sends more than {self._max_bytes:,} bytes, headers included", "too_large")


class _Stream(httpcore2.NetworkStream):
    """A connection that shares the time limit of the fetch among its steps.

    A limit for each step would let a server hold the fetch by sending a byte now and then.
    """

    def __init__(self, stream: httpcore2.NetworkStream, budget: _Budget) -> None:
        self._stream = stream
        self._budget = budget

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return at most this many bytes, as soon as there are any."""
        data = self._stream.read(max_bytes, self._budget.seconds())
        self._budget.received(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # The stream beneath applies its timeout to each part that the socket takes.
        for begin in range(0, len(buffer), _WRITTEN_BYTES):
            self._stream.write(buffer[begin : begin + _WRITTEN_BYTES], self._budget.seconds())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._budget.seconds()), self._budget)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Network(httpcore2.NetworkBackend):
    """Connects to public addresses only, unless private ones are allowed, and never to a cloud's metadata service.

    The name is resolved once, and the connection goes to the address that was checked: a second answer of the resolver
    cannot redirect it (DNS rebinding).
    """

    def __init__(self, budget: _Budget, *, allow_private_addresses: bool) -> None:
        self._backend = httpcore2.SyncBackend()
        self._budget = budget
        self._allow_private_addresses = allow_private_addresses

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:  # fmt: skip
        """Connect to the first allowed address of the host that answers."""
        addresses = _resolved(host, port, self._budget)
        where = f"{host} is at {', '.join(addresses)}"
        if any(map(is_metadata, addresses)):
            raise DocumentError(f"{where}, where a cloud keeps credentials of its machines", "refused")
        allowed = [address for address in addresses if self._allow_private_addresses or is_public(address)]
        if not allowed:
            raise DocumentError(
                f"{where}, which is not a public address: allow private addresses if that is meant", "refused"
            )
        while True:
            address, seconds = allowed.pop(0), self._budget.seconds()
            try:
                stream = self._backend.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if not allowed:
                    raise
            else:
                return _Stream(stream, self._budget)


def _resolved(host: str, port: int, budget: _Budget) -> list[str]:
    """Return the addresses of a host, resolved in a thread because a resolver has no timeout."""
    answered: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answered.put(list(dict.fromkeys(str(answer[4][0]) for answer in answers)))
        except Exception as reason:
            answered.put(reason)

    threading.Thread(target=resolve, daemon=True).start()
    try:
        addresses = answered.get(timeout=budget.seconds())
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(addresses, (OSError, UnicodeError, OverflowError)):  # an invalid label or port
        raise httpcore2.ConnectError(f"the name {shown(host)} cannot be resolved: {addresses}") from addresses
    if isinstance(addresses, Exception):
        raise addresses
    return addresses


def fetch(url: str, limits: Limits, *, allow_private_addresses: bool = False) -> FetchedPage:
    """Fetch the document at an http(s) URL, after at most five redirects, each checked like the URL itself.

    The time limit covers everything: names, connections, headers and body. Proxies of the environment are not used.

    Raises DocumentError.
    """
    backend = _Network(_Budget(limits), allow_private_addresses=allow_private_addresses)
    target = _checked(url, None)
    with httpcore2.ConnectionPool(network_backend=backend, max_keepalive_connections=0) as pool:
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                answer = _get(pool, target, limits.max_bytes)
            except (httpcore2.TimeoutException, TimeoutError):
                raise DocumentError(f"{target} was not read within {limits.seconds:g} s", "too_large") from None
            except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as reason:
                raise DocumentError(f"{target} cannot be read: {type(reason).__name__}: {reason}") from reason
            except OSError as reason:
                raise DocumentError(f"{target} cannot be read: {reason}") from reason
            if isinstance(answer, FetchedPage):
                return answer
            target = _checked(answer, target)
    raise DocumentError(f"{url} has more than {_MOST_REDIRECTS} redirects", "refused")


def _checked(url: str, base: httpx2.URL | None) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url) if base is None else base.join(url)
    except (httpx2.InvalidURL, ValueError) as reason:
        raise DocumentError(
            f"{shown(without_userinfo(url))} is not a URL: {without_userinfo(str(reason))}", "refused"
        ) from None
    name = shown(without_userinfo(str(parsed)))
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise DocumentError(f"{name} is not an http(s) URL", "refused")
    if parsed.port is not None and not 0 < parsed.port < 65_536:  # the system would reduce it modulo 65,536
        raise DocumentError(f"{name} is not a URL: its port is {parsed.port}", "refused")
    if parsed.userinfo:
        # Not shown: it may be a secret.
        raise DocumentError(
            "the URL holds a user or a password: they would be stored as the document's source", "refused"
        )
    return parsed.copy_with(fragment=None)


def _get(pool: httpcore2.ConnectionPool, url: httpx2.URL, max_bytes: int) -> FetchedPage | str:
    """Return the document, or the target of a redirect."""
    headers: dict[bytes | str, bytes | str] = {
        "Host": url.netloc.decode("ascii"),
        "User-Agent": f"recallite/{__version__}",
        "Accept": _ACCEPT,
        # Compressed content could expand without limit.
        "Accept-Encoding": "identity",
    }
    address = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    with pool.stream("GET", address, headers=headers) as response:
        stated = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        if response.status in _REDIRECTS and "location" in stated:
            return stated["location"]
        if not 200 <= response.status < 300:
            raise DocumentError(f"{url} answered {response.status}")
        if stated.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            raise DocumentError(f"{url} answered in {shown(stated['content-encoding'])}, which was not asked for")
        if stated.get("content-length", "").isdecimal() and int(stated["content-length"]) > max_bytes:
            raise DocumentError(f"{url} has {int(stated['content-length']):,} bytes: limit {max_bytes:,}", "too_large")
        body = bytearray()
        for piece in response.iter_stream():
            body += piece
            if len(body) > max_bytes:
                raise DocumentError(f"{url} has more than {max_bytes:,} bytes", "too_large")
    media_type, _, parameters = stated.get("content-type", "").partition(";")
    charset = next((value.strip("\"' ") for value in parameters.lower().split("charset=")[1:]), None)
    return FetchedPage(bytes(body), str(url), media_type.strip().lower() or None, charset)
