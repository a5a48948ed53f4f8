"""Clients that send too much, too slowly or half, and servers that go on."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import httpx2
import pytest

pytest.importorskip("fastapi", reason="the extra server is not installed")

from recallite.doors.http.request_checks import Limits
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
    from recallite.doors.http import connections

    monkeypatch.setattr(connections, "MAX_HEAD_SECONDS", 0.3)
    silent, half, large = connected(small), connected(small), connected(small)
    with silent, half, large:
        half.sendall(b"GET /v1/count HTTP/1.1\r\nHost: localhost\r\nX-Half:")
        large.sendall(b"GET /v1/count HTTP/1.1\r\nHost: localhost\r\nX-Large: ")
        assert _refused(large)
        for connection in (silent, half):
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    assert http.get("/v1/count").json() == 0


def _refused(connection):
    """Whether the server takes no more of a header that does not end."""
    try:
        for _ in range(1_000):
            connection.sendall(b"x" * 65_536)
    except OSError:
        return True
    return False


def test_several_hosts_are_refused(small):
    with connected(small) as connection:
        connection.sendall(
            b"GET /v1/count HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        )
        assert answer(connection).startswith(b"HTTP/1.1 400")
