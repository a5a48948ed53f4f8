"""What the resident process answers, without a process: what waits for what."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import tempfile
import threading
from contextlib import suppress

import pytest

from recallite import Memory, Settings
from recallite_server.warm import asking, proxy, service
from tests.limits import LAST_RESORT_SECONDS, until


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('embedder = "none"\n')
    return str(path)


@pytest.fixture
def ask():
    """Asks a service that answers in a thread, as its clients do."""
    with tempfile.TemporaryDirectory(prefix="warm") as folder:
        path, answering = os.path.join(folder, "a.socket"), service.Service("")

        async def serve():
            async with await asyncio.start_unix_server(answering.connected, path):
                await answering.run()

        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        until(lambda: os.path.exists(path))
        yield lambda *request, **options: asking.Link(path).ask(*request, **options)
        asking.Link(path).ask("stop")
        thread.join(LAST_RESORT_SECONDS)
        assert not thread.is_alive()


def of_hook(event, host):
    """The field of a hook's request."""
    return {asking.HOOK: asking.in_field("\0".join((event, host, "", "", "", "/")))}


def test_a_store_that_opens_slowly_holds_up_no_other_and_is_closed_once_it_is_open(
    ask, tmp_path, settings, monkeypatch
):
    opening, may_open, open_store = threading.Event(), threading.Event(), service._opened

    def slowly(path, settings):
        if path.endswith("slow.db"):
            opening.set()
            assert may_open.wait(LAST_RESORT_SECONDS)
        return open_store(path, settings)

    monkeypatch.setattr(service, "_opened", slowly)
    slow, quick = (
        asking.store_fields(str(tmp_path / f"{name}.db"), settings, create=True) for name in ("slow", "quick")
    )
    left = []

    def open_slowly():
        with suppress(asking.Unanswered):  # it was closed before it was counted
            ask("count", fields=slow)

    threads = [
        threading.Thread(target=open_slowly),
        threading.Thread(target=lambda: left.extend(json.loads(ask("close", fields=slow))["stores"])),
    ]
    threads[0].start()
    assert opening.wait(LAST_RESORT_SECONDS)
    assert ask("count", fields=quick) == b"0"
    threads[1].start()
    may_open.set()
    for thread in threads:
        thread.join(LAST_RESORT_SECONDS)
    assert [store["path"] for store in left] == [str(tmp_path / "quick.db")]


@pytest.mark.parametrize("host", ["gemini-cli", "cursor", "opencode"])
def test_turns_that_came_with_the_call_are_kept_before_it_is_answered(ask, tmp_path, settings, monkeypatch, host):
    path = tmp_path / "agent.db"
    Memory(path, settings=Settings(embedder="none")).close()
    payload = {"session_id": "s1", "cwd": str(tmp_path), "prompt": "The staging host is called heron"}
    call = json.dumps(payload).encode()
    fields = asking.store_fields(str(path), settings) | of_hook("turn", host)
    assert ask("hook", call, fields) == b""
    until(lambda: ask("count", fields=fields) == b"1")
    monkeypatch.setattr("recallite_server.hooks.turns._given", lambda event: 1 / 0)
    with pytest.raises(asking.Unanswered, match="not kept"):
        ask("hook", call, fields)


def test_a_hook_that_gives_up_while_the_store_opens_loses_no_turn(ask, tmp_path, settings, monkeypatch):
    path, opening, may_open = tmp_path / "agent.db", threading.Event(), threading.Event()
    Memory(path, settings=Settings(embedder="none")).close()
    open_store = service._opened

    def slowly(*names):
        opening.set()
        assert may_open.wait(LAST_RESORT_SECONDS)
        return open_store(*names)

    monkeypatch.setattr(service, "_opened", slowly)
    payload = {"session_id": "s1", "cwd": str(tmp_path), "prompt": "The staging host is called heron"}
    fields = asking.store_fields(str(path), settings) | of_hook("turn", "gemini-cli")

    connections = []
    connect = asking.connect
    monkeypatch.setattr(asking, "connect", lambda *to: (connections.append(connect(*to)), connections[-1])[1])

    def give_up():
        assert opening.wait(LAST_RESORT_SECONDS)
        connections[0][0].shutdown(socket.SHUT_RDWR)
        may_open.set()

    threading.Thread(target=give_up).start()
    with pytest.raises(asking.Unanswered):
        ask("hook", json.dumps(payload).encode(), fields)
    until(lambda: ask("count", fields=fields) == b"1")


def test_a_host_that_writes_faster_than_it_is_answered_is_not_held_up(monkeypatch):
    ours, theirs = socket.socketpair()

    class Server:
        """A server that takes no line while its answers are not read."""

        def __init__(self):
            self._answers = ours.makefile("rb")

        def write(self, line):
            ours.sendall(line)

        def read(self):
            return self._answers.readline()

    lines = 200
    long = "x" * 50_000
    request = b"".join(
        json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": long}).encode() + b"\n"
        for id in range(lines)
    )

    def echo():
        with theirs, theirs.makefile("rb") as asked:
            for line in asked:
                theirs.sendall(json.dumps({"id": json.loads(line)["id"], "result": long}).encode() + b"\n")
                if json.loads(line)["id"] == lines - 1:
                    return

    answering = threading.Thread(target=echo, daemon=True)
    answering.start()

    class Stream:
        """Standard input and output of a host."""

        def __init__(self):
            self.buffer, self.written = self, []

        def __iter__(self):
            return iter(request.splitlines(keepends=True))

        def write(self, line):
            self.written.append(json.loads(line)["id"])

        def flush(self):
            pass

    output = Stream()
    monkeypatch.setattr(proxy.sys, "stdin", Stream())
    monkeypatch.setattr(proxy.sys, "stdout", output)
    conversation = proxy.Proxy(None, [], {}, lambda: False)
    monkeypatch.setattr(conversation, "_connected", Server)
    running = threading.Thread(target=conversation.run, daemon=True)
    running.start()
    running.join(LAST_RESORT_SECONDS)
    assert not running.is_alive()
    assert output.written == [*range(lines)]
