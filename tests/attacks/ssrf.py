"""URLs that try to reach what is not public: by spelling, by name, by redirect, by a resolver that changes its mind.

A resolver of our own answers for made-up names; what would be connected to is recorded. A public address leads to a
real server on this machine, which answers with a document or a redirect; any other that is connected to is a leak. A
fetch that ends in anything but a document or a DocumentError is untyped.
"""

from __future__ import annotations

import ipaddress
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

from recallite.documents.document import Limits
from recallite.errors import DocumentError
from recallite_documents import fetching
from tests.attacks.outcome import Outcome

__all__ = ["attack"]

_PUBLIC = "93.184.215.14"
_PRIVATE4 = (
    "127.0.0.1", "10.0.0.7", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "0.0.0.0",
    "192.0.0.192", "168.63.129.16", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.88.99.1",
)  # fmt: skip
_PRIVATE6 = (
    "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "5f00::1",
    "64:ff9b:1::1", "100::1",
)  # fmt: skip
_LIMITS = Limits(max_bytes=10_000, seconds=60.0)


def attack(tries: int, seed: int) -> Outcome:
    """Fetch so many hostile URLs, and now and then a good one, which has to arrive."""
    outcome = Outcome("URLs")
    seeded = random.Random(seed)
    arrived = 0
    with _world() as world:
        for number in range(tries):
            world.begin()
            good = number % 20 == 0
            url = f"http://good-{number}.example/doc" if good else _hostile(seeded, world, number)
            try:
                fetched = fetching.fetch(url, _LIMITS)
            except DocumentError:
                arrived_here = False
            except Exception as fault:
                outcome.fail("untyped", f"{url!r}: {type(fault).__name__}: {fault}")
                arrived_here = False
            else:
                arrived_here = fetched.data == b"a document"
            arrived += good and arrived_here
            if good and not arrived_here:
                outcome.fail("wrong", f"{url!r} did not arrive")
            for address in world.leaks:
                outcome.fail("leak", f"{url!r} connected to {address}")
            outcome.tries += 1
    outcome.figures["good_urls_arrived"] = arrived
    return outcome


class _World:
    """Names and what they resolve to, redirects by path, and addresses that should not have been connected to."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.begin()

    def begin(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.redirects: dict[str, str] = {}
        self.leaks: list[str] = []

    def resolve(self, host: str, port: int, *arguments: Any, **options: Any) -> list[Any]:
        """As getaddrinfo does; each name's last answer is repeated."""
        name = host.decode() if isinstance(host, bytes) else host
        if name in self.answers:
            left = self.answers[name]
            found = left.pop(0) if len(left) > 1 else left[0]
        elif name.endswith(".example"):
            found = [_PUBLIC]
        else:
            found = _system(host)
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port))
            for each in found
        ]

    def connect(self, backend: Any, host: str, port: int, *arguments: Any, **options: Any) -> Any:
        """To the real server for a public address; else it is noted."""
        if host != _PUBLIC:
            self.leaks.append(host)
            raise fetching.httpcore2.ConnectError("refused by the attack")
        return _connect(backend, "127.0.0.1", self.port, *arguments, **options)


_connect = fetching.httpcore2.SyncBackend.connect_tcp
_getaddrinfo = socket.getaddrinfo


def _system(host: Any) -> list[str]:
    """What the system makes of a spelling of an address; no name is asked for."""
    return [str(each[4][0]) for each in _getaddrinfo(host, 80, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)]


@contextmanager
def _world() -> Iterator[_World]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            to = world.redirects.get(self.path)
            self.send_response(200 if to is None else 302)
            self.send_header("Content-Type", "text/plain")
            if to is not None:
                self.send_header("Location", to.encode().decode("latin-1"))  # headers are bytes
            self.end_headers()
            self.wfile.write(b"a document")

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        world = _World(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        with (
            patch.object(fetching.socket, "getaddrinfo", world.resolve),
            patch.object(
                fetching.httpcore2.SyncBackend,
                "connect_tcp",
                lambda backend, *given, **named: world.connect(backend, *given, **named),
            ),
        ):
            yield world
        server.shutdown()
        thread.join()


def _hostile(seeded: random.Random, world: _World, number: int) -> str:
    """A URL that leads to an address that is not public, by one of the ways known."""
    way = seeded.randrange(8)
    spelled = _spelled(seeded)
    port = seeded.choice(("", ":80", ":8080", ":0", ":65536", ":99999999999", ":-1", ":80 "))
    if way <= 2:
        scheme, path = (
            seeded.choice(("http", "HTTP", "https", "hTTp")),
            seeded.choice(("", "latest/meta-data/", "?q", "%00")),
        )
        return f"{scheme}://{spelled}{port}/{path}"
    if way == 3:
        return seeded.choice(
            (
                f"http://good.example@{spelled}/", f"http://{spelled}#@good.example/",
                f"http://{spelled}\\@good.example/",
                f"http://good.example\\@{spelled}/", f"http://{spelled}/..//good.example", f"//{spelled}/",
                f"http:{spelled}/",
                f"http:///{spelled}/", f"http://good.example%00.{spelled}/", f"http://[{spelled}]/",
                f"http://{spelled}%2f@good.example/",
                f"http://good.example\r\nHost: {spelled}/", f"http://{spelled}%20/", f" http://{spelled}/",
                f"http://{spelled}\t/",
            )
        )  # fmt: skip
    if way == 4:
        scheme = seeded.choice(
            ("file", "gopher", "ftp", "data", "dict", "ldap", "jar", "netdoc", "javascript", "ws", "unix")
        )
        return f"{scheme}://{seeded.choice((spelled, '/etc/passwd', 'localhost/etc/passwd'))}"
    name = f"evil-{number}.example"
    private = seeded.choice((*_PRIVATE4, *_PRIVATE6, _embedded(seeded, seeded.choice(_PRIVATE4))))
    if way == 5:  # a name that leads there, alone, or after a public address that does not answer
        world.answers[name] = [seeded.choice(([private], [private, private], [private, "10.9.8.7"]))]
        return f"http://{name}/"
    if way == 6:  # rebinding: what was checked is public, what is asked for next is not
        world.answers[name] = [[_PUBLIC], [private]]
        world.redirects["/again"] = f"http://{name}/again"
        return f"http://{name}/again"
    target = seeded.choice(
        (f"http://{spelled}/", f"//{spelled}/", "file:///etc/passwd", f"http://{name}/in", f"HTTP://{spelled}:80/x")
    )
    world.answers[name] = [[private]]
    hops = seeded.randrange(1, 8)
    for hop in range(hops):
        world.redirects[f"/hop{hop}"] = f"/hop{hop + 1}" if hop + 1 < hops else target
    return "http://redirecting.example/hop0"


def _spelled(seeded: random.Random) -> str:
    """An address that is not public, as URLs can spell it."""
    address = seeded.choice(_PRIVATE4)
    parts = [int(part) for part in address.split(".")]
    whole = int(ipaddress.IPv4Address(address))
    return seeded.choice(
        (
            address, str(whole), hex(whole), f"0{whole:o}", ".".join(map(hex, parts)),
            ".".join(f"0{part:o}" for part in parts),
            f"{parts[0]}.{whole & 0xFFFFFF}", f"{parts[0]}.{parts[1]}.{whole & 0xFFFF}", f"{address}.",
            str(whole + 2**32),
            f"[{_embedded(seeded, address)}]", f"[{seeded.choice(_PRIVATE6)}]", f"[{seeded.choice(_PRIVATE6)}%25eth0]",
            "".join(chr(0xFF10 + int(digit)) if digit.isdigit() else seeded.choice("．。｡") for digit in address),
            "".join("⓪①②③④⑤⑥⑦⑧⑨"[int(digit)] if digit.isdigit() else digit for digit in address),
            address.replace(".", "%2e"), "localhost", "LOCALHOST", "localhost.", "ⓛocalhost",
            f"{address}:80:80", "0", "127.1",
        )
    )  # fmt: skip


def _embedded(seeded: random.Random, address: str) -> str:
    """An IPv6 address that holds an IPv4 one."""
    value = int(ipaddress.IPv4Address(address))
    high, low = f"{value >> 16:x}", f"{value & 0xFFFF:x}"
    return seeded.choice(
        (
            f"::ffff:{address}", f"::ffff:{high}:{low}", f"::{high}:{low}", f"64:ff9b::{high}:{low}",
            f"2002:{high}:{low}::1",
            f"2001:0:4136:e378:8000:63bf:{~value >> 16 & 0xFFFF:x}:{~value & 0xFFFF:x}", f"2a00::5efe:{high}:{low}",
            f"2a00::200:5efe:{high}:{low}", f"::ffff:0:{high}:{low}",
        )
    )  # fmt: skip
