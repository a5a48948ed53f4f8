"""Documents by URL: from a real server, within limits, and from public addresses only unless they are allowed."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recallite.documents.document import Limits
from recallite.errors import DocumentError
from recallite_documents import fetching
from recallite_documents.fetching import fetch, is_public
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises

LIMITS = Limits(max_bytes=10_000, seconds=LAST_RESORT_SECONDS)


class Site(ThreadingHTTPServer):
    """Answers each path with what `pages` has for it: status, headers, body; `endless` repeats the body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages = {}
        self.asked = []
        self.ending = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """A client that goes away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))
        status, headers, body = self.server.pages.get(self.path, (404, {}, b"not here"))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body == "hang":
            self.server.ending.wait()
            return
        endless = headers.get("X-Endless")
        self.wfile.write(body)
        while endless and not self.server.ending.is_set():
            self.wfile.write(body)

    def log_message(self, format, *arguments):
        """Nothing is printed."""


@contextmanager
def serving():
    with Site() as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield site
        finally:
            site.ending.set()
            site.shutdown()
            thread.join()


@pytest.fixture
def site():
    with serving() as started:
        yield started


def allowed(url, limits=LIMITS):
    return fetch(url, limits, allow_private_addresses=True)


def test_a_document_with_its_type_charset_and_final_url(site):
    site.pages["/guide"] = (302, {"Location": "/real.html#part"}, b"")
    site.pages["/real.html"] = (200, {"Content-Type": 'Text/HTML; charset="ISO-8859-1"'}, b"<p>Gr\xf6\xdfe")
    fetched = allowed(f"{site.url}/guide")
    assert (fetched.data, fetched.url) == (b"<p>Gr\xf6\xdfe", f"{site.url}/real.html")
    assert (fetched.media_type, fetched.charset) == ("text/html", "iso-8859-1")
    assert site.asked[0][1]["Accept-Encoding"] == "identity"
    assert "Cookie" not in site.asked[1][1]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
     "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "::", "::1", "fe80::1%eth0", "fc00::1", "fec0::1",
     "ff02::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1",
     "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
     "192.88.99.1", "192.0.0.192", "3fff::1", "3fff:fff::1", "5f00::1", "2a00::5efe:7f00:1",
     "2a00::200:5efe:a00:1", "168.63.129.16", "100.100.100.200", "fd00:ec2::254"],
)  # fmt: skip
def test_addresses_that_are_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808", "2a00::5efe:808:808", "3ffe::1"],
)
def test_addresses_that_are_public(address):
    assert is_public(address)


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "168.63.129.16", "[::ffff:169.254.169.254]"])
def test_a_metadata_service_is_refused_where_private_addresses_are_allowed(host):
    with raises(DocumentError, "refused", match="where a cloud keeps credentials"):
        allowed(f"http://{host}/latest/meta-data/")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]"])
def test_a_private_address_is_refused_in_every_spelling(site, host):
    with raises(DocumentError, "refused", match="not a public address: allow private addresses if that is meant"):
        fetch(f"http://{host}:{site.server_address[1]}/", LIMITS)
    assert site.asked == []


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(site, monkeypatch):
    """DNS rebinding: the first answer of the resolver is public, the second is not."""
    answers = iter(["203.0.114.7", "127.0.0.1"])
    connected = []

    def resolve(host, port, *arguments, **options):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    def connect(self, host, port, *arguments, **options):
        connected.append(host)
        raise fetching.httpcore2.ConnectError("nobody there")

    monkeypatch.setattr(fetching.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(fetching.httpcore2.SyncBackend, "connect_tcp", connect)
    with raises(DocumentError, "unreadable", match="nobody there"):
        fetch("http://rebinding.example/", LIMITS)
    assert connected == ["203.0.114.7"]


def test_a_redirect_is_checked_like_the_url_itself(site, monkeypatch):
    """The first host is taken for public, what it leads to is not."""
    site.pages["/out"] = (302, {"Location": "http://localhost:1/inside"}, b"")
    monkeypatch.setattr(fetching, "is_public", lambda address: True)
    checked = []

    def once(address):
        checked.append(address)
        return len(checked) == 1

    monkeypatch.setattr(fetching, "is_public", once)
    with raises(DocumentError, "refused", match=r"localhost is at .* not a public address"):
        fetch(f"{site.url}/out", LIMITS)
    assert [path for path, _ in site.asked] == ["/out"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.org/x", "gopher://x/"])
def test_a_redirect_to_another_scheme_is_refused(site, target):
    site.pages["/out"] = (302, {"Location": target}, b"")
    with raises(DocumentError, "refused", match=r"not an http\(s\) URL"):
        allowed(f"{site.url}/out")


def test_five_redirects_are_followed_and_no_more(site):
    for step in range(7):
        site.pages[f"/{step}"] = (301, {"Location": f"/{step + 1}"}, b"")
    site.pages["/7"] = (200, {}, b"there")
    assert allowed(f"{site.url}/2").data == b"there"
    with raises(DocumentError, "refused", match="more than 5 redirects"):
        allowed(f"{site.url}/1")


@pytest.mark.parametrize("headers", [{"Content-Length": "20000"}, {}, {"X-Endless": "yes"}])
def test_more_bytes_than_the_limit_are_not_read(site, headers):
    site.pages["/large"] = (200, headers, b"x" * 20_000)
    with raises(DocumentError, "too_large", match=r"20,000 bytes|more than 10,000 bytes"):
        allowed(f"{site.url}/large")


@pytest.mark.parametrize("body", ["hang", b"drip"])
def test_a_server_that_takes_its_time_is_left(site, body):
    site.pages["/slow"] = (200, {"X-Endless": "yes"}, body)
    with raises(DocumentError, "too_large", match=r"not read within 0\.3 s"):
        allowed(f"{site.url}/slow", Limits(max_bytes=10**12, seconds=0.3))


HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def answering(begin, repeated, end, times):
    """A server of one connection: `begin`, then `repeated` so many times, slowly where there are few, then `end`."""
    leaving = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            with listening.accept()[0] as connection, suppress(OSError):
                connection.recv(65_536)
                connection.sendall(begin)
                for _ in range(times):
                    if leaving.wait(0.02 if times < 10_000 else 0):
                        return
                    connection.sendall(repeated)
                connection.sendall(end)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            leaving.set()
            thread.join()


DRIPPED = {
    "header": (HEAD + b"X-A: ", b"a", b"\r\nContent-Length: 2\r\n\r\nhi"),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", HEAD + b"Content-Length: 2\r\n\r\nhi"),
    "chunk extension": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2;x=", b"a", b"\r\nhi\r\n0\r\n\r\n"),
    "body": (HEAD + b"Content-Length: 200\r\n\r\n", b"a", b""),
}


@pytest.mark.parametrize("part", DRIPPED)
def test_a_server_that_sends_a_byte_now_and_then_is_left_when_time_is_up(part):
    """Dripped without the limit, the document is complete after 200 pieces and is read."""
    with (
        answering(*DRIPPED[part], times=200) as url,
        raises(DocumentError, "too_large", match=r"not read within 0\.3 s"),
    ):
        allowed(url, Limits(max_bytes=10_000, seconds=0.3))


def test_the_time_of_a_fetch_is_one_for_all_its_redirects(site, monkeypatch):
    """Each answer takes two of the five seconds, by a clock of the test's own."""
    clock = [0.0]
    monkeypatch.setattr(fetching.time, "monotonic", lambda: clock[0])
    for step in range(4):
        site.pages[f"/{step}"] = (301, {"Location": f"/{step + 1}"}, b"")
    site.pages["/4"] = (200, {}, b"there")
    get = fetching._get

    def slow(*arguments):
        clock[0] += 2.0
        return get(*arguments)

    monkeypatch.setattr(fetching, "_get", slow)
    with raises(DocumentError, "too_large", match=r"/2 was not read within 5 s"):
        allowed(f"{site.url}/0", Limits(seconds=5.0))


def test_headers_without_end_are_not_read():
    hints = b"HTTP/1.1 103 Early Hints\r\nX: " + b"y" * 1000 + b"\r\n\r\n"
    with (
        answering(b"", hints, HEAD + b"Content-Length: 2\r\n\r\nhi", times=10_000) as url,
        raises(DocumentError, "too_large", match=r"more than 1,020,000 bytes, headers included"),
    ):
        allowed(url, LIMITS)


def test_a_resolver_that_does_not_answer_is_left_when_time_is_up(monkeypatch):
    leaving = threading.Event()
    monkeypatch.setattr(fetching.socket, "getaddrinfo", lambda *arguments, **options: leaving.wait())
    with raises(DocumentError, "too_large", match=r"not read within 0\.3 s"):
        fetch("http://slow.example/", Limits(seconds=0.3))
    leaving.set()


@pytest.mark.parametrize("host", ["a" * 70 + ".com", "a..b"])
@pytest.mark.parametrize("allow", [True, False])
def test_a_host_that_no_name_may_be_says_so(site, host, allow):
    """Python raises UnicodeError for a label of more than 63 characters."""
    with pytest.raises(DocumentError, match=r"cannot be resolved|is not a URL"):
        fetch(f"http://{host}/", LIMITS, allow_private_addresses=allow)
    site.pages["/out"] = (302, {"Location": f"http://{host}/"}, b"")
    with pytest.raises(DocumentError, match=r"cannot be resolved|is not a URL"):
        allowed(f"{site.url}/out")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("{}/nothing", "answered 404"),
        ("{}/packed", "answered in 'gzip', which was not asked for"),
        ("http://127.0.0.1:1/", "cannot be read"),
        ("http://no-such-host.invalid/", "cannot be read"),
        ("http://user:secret@example.org/", "holds a user or a password"),
        ("http:///nothing", "is no"),
        ("http://127.0.0.1:70000/", "is not a URL: its port is 70000"),
        ("http://127.0.0.1:0/", "is not a URL: its port is 0"),
        ("http://exa mple.org/", "is not a URL|cannot be read"),
    ],
)
def test_what_cannot_be_fetched_says_why(site, url, said):
    site.pages["/packed"] = (200, {"Content-Encoding": "gzip"}, b"x")
    with pytest.raises(DocumentError, match=said) as raised:
        allowed(url.format(site.url))
    assert "secret" not in str(raised.value)


def test_proxies_of_the_environment_are_not_used(site, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    site.pages["/"] = (200, {}, b"direct")
    assert allowed(f"{site.url}/").data == b"direct"
