"""`recallite serve`, `inspect` and `token`, as a person starts them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx2
import pytest

pytest.importorskip("starlette", reason="the extra server is not installed")

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_cli.run import run
from recallite_server.http.access_tokens import Tokens
from recallite_server.http.connections import listen
from tests.limits import LAST_RESORT_SECONDS
from tests.unit.core.memory.support import PLAIN

BROWSER = f"{sys.executable} -c pass"


@contextmanager
def running(*arguments):
    """The address that a server printed, and its process."""
    environment = {**os.environ, "RECALLITE_EMBEDDER": "none", "BROWSER": BROWSER}
    with subprocess.Popen(
        [sys.executable, "-m", "recallite", *arguments], stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            line = process.stderr.readline()
            found = re.search(r"http://\S+", line)
            assert found, line + process.stderr.read()
            yield found[0], process
        finally:
            process.kill()


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(path, by):
    with running("--db", path, "serve", "--port", "0") as (url, process):
        assert httpx2.post(f"{url}v1/memories", json={"text": "one"}, trust_env=False).status_code == 201
        process.send_signal(by)
        process.wait(LAST_RESORT_SECONDS)
        said = process.stderr.read()
    assert "Traceback" not in said
    assert by != signal.SIGINT or said.endswith("Interrupted: the server has ended; what was written is stored\n")
    with Memory(path, settings=PLAIN) as memory:
        assert memory.count() == 1
        assert memory.store.verify().ok


def test_what_was_acknowledged_survives_kill_9(path):
    with running("--db", path, "serve", "--port", "0") as (url, process):
        with httpx2.Client(base_url=url, trust_env=False) as client:
            ids = [client.post("/v1/memories", json={"text": f"fact {n}"}).json()["id"] for n in range(20)]
        process.kill()
        process.wait(LAST_RESORT_SECONDS)
    with Memory(path, settings=PLAIN) as memory:
        assert memory.get(ids).keys() == set(ids)


def test_a_store_is_inspected_with_a_token_of_its_own(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("one")
    with running("inspect", path, "--no-browser") as (page, _):
        address, _, secret = page.partition("#token=")
        assert secret.startswith("rct_")
        with httpx2.Client(base_url=address, trust_env=False) as client:
            assert client.get("/v1/count").status_code == 401
            assert client.get("/v1/count", headers={"Authorization": f"Bearer {secret}"}).json() == 1
            assert client.get("/").headers["content-type"].startswith("text/html")
    with Memory(path, settings=PLAIN) as memory:
        assert Tokens(memory).list() == []


def test_a_token_is_made_listed_and_revoked(path, monkeypatch, capsys):
    monkeypatch.setenv("RECALLITE_EMBEDDER", "none")
    create = [
        "create",
        "--scope",
        "/a",
        "--read-only",
        "--expires",
        "30d",
        "--name",
        "x",
        "--reads",
        "/h",
        "--reads",
        "/i",
    ]
    assert run(["--db", path, "token", *create]) == 0
    printed = capsys.readouterr()
    secret = printed.out.strip()
    assert secret.startswith("rct_")
    assert secret not in printed.err
    assert run(["--db", path, "token", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(each["scope"], each["reads"], each["name"]) for each in listed] == [("/a", ["/h", "/i"], "x")]
    assert listed[0]["secret"] is None
    with running("--db", path, "serve", "--port", "0", "--require-tokens") as (url, _):
        asked = {"headers": {"Authorization": f"Bearer {secret}"}, "trust_env": False}
        assert httpx2.get(f"{url}v1/count", **asked).json() == 0
        assert httpx2.post(f"{url}v1/memories", json={"text": "x"}, **asked).status_code == 403
        assert run(["--db", path, "token", "revoke", listed[0]["id"], "--yes"]) == 0
        assert httpx2.get(f"{url}v1/count", **asked).status_code == 401
    assert run(["--db", path, "token", "revoke", listed[0]["id"], "--yes"]) == 1
    assert "token list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--host", "0.0.0.0"], "token create"),
        (["serve", "--require-tokens"], "token create"),
        (["serve", "--port", "70000"], "--port"),
        (["serve", "--host", "no.such.host.invalid", "--port", "0", "--require-tokens"], "token create"),
        (["token", "create", "--expires", "soon"], "30d"),
        (["token", "create", "--scope", "a"], "scope"),
        (["inspect", "none.db", "--no-browser"], "there is no store"),
    ],
)
def test_what_cannot_be_started_is_told(path, monkeypatch, capsys, arguments, says):
    monkeypatch.setenv("RECALLITE_EMBEDDER", "none")
    monkeypatch.chdir(os.path.dirname(path))
    assert run(["--db", path, *arguments]) == 2
    assert says in capsys.readouterr().err


def test_a_port_that_is_taken_is_told():
    with listen("127.0.0.1", 0) as taken, pytest.raises(InvalidInput, match="give another port"):
        listen("127.0.0.1", taken.getsockname()[1])


def test_two_servers_on_one_store(path):
    started = ("--db", path, "serve", "--port", "0")
    with running(*started) as (one, _), running(*started) as (two, _), httpx2.Client(trust_env=False) as client:
        for n in range(5):
            client.post(f"{one}v1/memories", json={"text": f"first {n}"})
            client.post(f"{two}v1/memories", json={"text": f"second {n}"})
        for url in (one, two):
            found = client.post(f"{url}v1/recall", json={"query": "first second", "limit": 20}).json()
            assert len(found["hits"]) == 10
            assert client.get(f"{url}v1/count").json() == 10
