"""Clients that send too much, too slowly or half, and servers that go on."""

from __future__ import annotations

import select
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx2
import pytest

pytest.importorskip("starlette", reason="the extra server is not installed")

from recallite import Memory
from recallite_server.http.request_checks import Limits
from tests.limits import LAST_RESORT_SECONDS, until
from tests.system.http.serving import serving

SMALL = Limits(max_body_bytes=10_000, max_upload_bytes=20_000, max_wait_seconds=0.3)


@pytest.fixture
def small(on_disk):
    """The address of a server with small limits."""
    with serving(on_disk, limits=SMALL) as address:
        yield address


@pytest.fixture
def http(small):
    with httpx2.Client(base_url=small, verify=False, trust_env=False) as client:
        yield client


def connected(url):
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=LAST_RESORT_SECONDS)


def answer(connection):
    """All that the server says until it closes the connection."""
    pieces = []
    while piece := connection.recv(65_536):
        pieces.append(piece)
    return b"".join(pieces)


HEAD = b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(small, on_disk):
    with connected(small) as connection:
        connection.sendall(HEAD + b"Content-Length: 1073741824\r\n\r\n")
        said = answer(connection)
    assert said.startswith(b"HTTP/1.1 413")
    assert b"1,073,741,824 bytes: at most 10,000 are taken" in said
    assert on_disk.count() == 0


def test_a_body_without_a_length_is_refused_where_it_grows_too_large(http, on_disk):
    sent = []

    def pieces():
        yield b'{"text": "'
        for _ in range(100):
            sent.append(1)
            yield b"x" * 1_000
        yield b'"}'

    refused = http.post("/v1/memories", content=pieces(), headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (413, "InvalidInput")
    assert http.post("/v1/documents", params={"name": "a.md"}, content=b"x" * 20_001).status_code == 413
    assert http.post("/v1/documents", params={"name": "a.md"}, content=b"x" * 15_000).status_code == 201
    assert http.post("/v1/memories", json={"text": "x" * 9_000}).status_code == 201


def test_a_client_that_stops_in_the_middle_of_its_body_is_told_so(small, on_disk):
    with connected(small) as connection:
        connection.sendall(HEAD + b'Content-Length: 100\r\n\r\n{"text": ')
        assert answer(connection).startswith(b"HTTP/1.1 408")
    assert on_disk.count() == 0


def test_a_client_that_goes_in_the_middle_changes_nothing(small, on_disk, http):
    for part in (b"", b'{"text": "half of a memo'):
        with connected(small) as connection:
            connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n" + part)
    assert http.post("/v1/memories", json={"text": "whole"}).status_code == 201
    assert [each.text for each in on_disk.list()] == ["whole"]


def test_slow_clients_hold_up_nobody_else(small, on_disk, http):
    slow = [connected(small) for _ in range(60)]
    try:
        for connection in slow:
            connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        assert http.post("/v1/memories", json={"text": "quick"}).status_code == 201
        assert http.get("/v1/count").json() == 1
    finally:
        for connection in slow:
            connection.close()


def test_who_does_not_take_an_export_is_left(small, on_disk, http):
    on_disk.remember_many([f"{number} " + "word " * 2_000 for number in range(2_000)])
    stalled = [connected(small) for _ in range(6)]
    try:
        for connection in stalled:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.sendall(b"GET /v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert http.get("/v1/count").json() == 2_000
        # Six that stall are left one after the other, so that one who reads gets its turn.
        until(lambda: _exported(http))
    finally:
        for connection in stalled:
            connection.close()


def _exported(http):
    try:
        return http.get("/v1/export", timeout=LAST_RESORT_SECONDS).text.count("word word word") >= 2_000
    except httpx2.TransportError:
        return False


def test_writers_of_one_record_are_each_answered(small, on_disk):
    id = on_disk.remember("zero").id
    statuses = []

    def write(number):
        with httpx2.Client(base_url=small, verify=False, trust_env=False, timeout=LAST_RESORT_SECONDS) as client:
            statuses.append(client.patch(f"/v1/memories/{id}", json={"text": f"text {number}"}).status_code)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 12
    texts = [each.text for each in on_disk.history(id)]
    assert sorted(texts) == sorted(["zero", *(f"text {number}" for number in range(12))])


def test_what_a_memory_says_of_its_files_stays_in_the_log(small, on_disk, http, caplog):
    folder = on_disk.path.rpartition("/")[0]
    on_disk.remember("one")
    receipt = http.post("/v1/memories/forget", json={"scope": "/", "receipt": True})
    assert receipt.json()["receipt"]["complete"] is True
    assert folder not in receipt.text
    on_disk.close()
    answer = http.get("/v1/memories")
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "StoreClosed")
    assert folder not in answer.text


def test_a_head_that_does_not_end_is_left(small, http, monkeypatch):
    from recallite_server.http import connections

    monkeypatch.setattr(connections, "MAX_HEAD_SECONDS", 0.3)
    monkeypatch.setattr(connections, "MAX_SILENT_SECONDS", 0.3)
    silent, half, large = connected(small), connected(small), connected(small)
    with silent, half, large:
        half.sendall(b"GET /v1/count HTTP/1.1\r\nHost: localhost\r\nX-Half:")
        large.sendall(b"GET /v1/count HTTP/1.1\r\nHost: localhost\r\nX-Large: ")
        assert _refused(large)
        for connection in (silent, half):
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    assert http.get("/v1/count").json() == 0


def test_a_blank_line_does_not_keep_a_connection(small, monkeypatch):
    from recallite_server.http import connections

    monkeypatch.setattr(connections, "MAX_HEAD_SECONDS", 0.3)
    with connected(small) as connection:
        connection.sendall(b"GET /v1/count HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while not received.endswith(b"\r\n\r\n0"):
            received += connection.recv(65_536)
        connection.sendall(b"\r\n")
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""


def _refused(connection):
    """Whether the server takes no more of a header that does not end."""
    try:
        for _ in range(1_000):
            connection.sendall(b"x" * 65_536)
    except OSError:
        return True
    return False


@pytest.mark.parametrize("header", ["Host: evil.example", "Authorization: Bearer x", "Recallite-Scope: /a"])
def test_headers_that_may_differ_for_a_proxy_are_refused_twice(small, header):
    with connected(small) as connection:
        name = header.partition(":")[0]
        twice = f"{header}\r\n" if name == "Host" else f"{header}\r\n{name.lower()}: other\r\n"
        connection.sendall(f"GET /v1/count HTTP/1.1\r\nHost: localhost\r\n{twice}Connection: close\r\n\r\n".encode())
        said = answer(connection)
    assert said.startswith(b"HTTP/1.1 400")
    assert f"several {name} headers".encode() in said


def test_what_follows_a_body_is_no_header_and_has_a_size(small, on_disk):
    chunked = HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n" + b'{"text": "green"}'[:16]
    with connected(small) as connection:
        connection.sendall(chunked + b"\r\n1\r\n}\r\n0\r\nRecallite-Scope: /evil\r\nAuthorization: Bearer x\r\n\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 201")
    assert [each.scope for each in on_disk.list()] == ["/"]
    with connected(small) as connection:
        connection.sendall(chunked + b"\r\n0\r\nX-Large: ")
        assert _refused(connection)


def test_blanks_around_a_header_are_not_its_value(small, on_disk):
    on_disk.remember("green", scope="/ada")
    with connected(small) as connection:
        connection.sendall(
            b"GET /v1/count HTTP/1.1\r\nHost: localhost\r\nRecallite-Scope: \t/ada \t\r\nConnection: close\r\n\r\n"
        )
        assert answer(connection).endswith(b"\r\n\r\n1")


def test_idle_connections_make_room_for_others(on_disk):
    with serving(on_disk, limits=Limits(max_connections=8)) as address:
        with httpx2.Client(base_url=address, verify=False, trust_env=False) as other:
            assert other.get("/healthz").status_code == 200  # and its connection stays open
            idle = [connected(address) for _ in range(40)]
            until(lambda: sum(_closed(connection) for connection in idle) == 33)
            assert [_closed(connection) for connection in idle] == [True] * 33 + [False] * 7
            for _ in range(3):
                assert other.get("/healthz").status_code == 200
        for connection in idle:
            connection.close()


def _closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one address of loopback")
def test_the_address_with_most_connections_makes_room(on_disk):
    with serving(on_disk, limits=Limits(max_connections=8)) as address:
        port = int(address.rpartition(":")[2])
        few = [socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)) for _ in range(2)]
        many = [connected(address) for _ in range(20)]
        until(lambda: sum(_closed(connection) for connection in many) == 14)
        assert [_closed(connection) for connection in few] == [False, False]
        for connection in (*few, *many):
            connection.close()


def test_bodies_have_one_budget(on_disk):
    limits = Limits(max_upload_bytes=400_000, max_bodies_bytes=500_000)
    with serving(on_disk, limits=limits) as address, httpx2.Client(base_url=address, trust_env=False) as http:
        head = b"POST /v1/documents?name=a.md HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\n\r\n"
        unfinished = connected(address)
        unfinished.sendall(head + b"x" * 390_000)
        document = {"params": {"name": "b.md"}, "content": b"word " * 60_000}
        until(lambda: http.post("/v1/documents", **document).status_code == 503)
        assert http.post("/v1/memories", json={"text": "small ones are taken"}).status_code == 201
        unfinished.close()
        until(lambda: http.post("/v1/documents", **document).status_code == 201)


def test_a_body_has_a_least_rate(on_disk):
    def sent(address):
        with connected(address) as connection:
            connection.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
            with suppress(OSError):
                while not _answered(connection):  # each piece comes in time
                    connection.sendall(b" ")
            try:
                return answer(connection)
            except ConnectionResetError:  # by a piece that met the closed end, which drops the answer
                return b""

    with serving(on_disk, limits=Limits(max_wait_seconds=0.3)) as address:
        answers = (sent(address) for _ in range(5))
        assert next(filter(None, answers), b"").startswith(b"HTTP/1.1 408")


def test_large_questions_leave_threads_for_small_ones(on_disk, monkeypatch):
    under_way, go_on = threading.Semaphore(0), threading.Event()

    def slow(*_, **__):
        under_way.release()
        go_on.wait(LAST_RESORT_SECONDS)
        return []

    monkeypatch.setattr(Memory, "_recall", slow)
    limits = Limits(max_threads=2, max_large_threads=1)
    with (
        serving(on_disk, limits=limits) as address,
        httpx2.Client(base_url=address, trust_env=False, timeout=LAST_RESORT_SECONDS) as http,
        ThreadPoolExecutor(4) as pool,
    ):
        large = [pool.submit(http.post, "/v1/recall/batch", json={"queries": ["word " * 20_000]}) for _ in range(4)]
        assert under_way.acquire(timeout=LAST_RESORT_SECONDS)
        assert http.get("/v1/count").json() == 0
        go_on.set()
        assert [answer.result().status_code for answer in large] == [200] * 4


def _answered(connection):
    return bool(select.select([connection], [], [], 0.1)[0])
