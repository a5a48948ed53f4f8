"""The application of the resident process, without a process: what waits for what."""

from __future__ import annotations

import asyncio
import json
import socket
import threading

import httpx2
import pytest

from recallite import Memory, Settings
from recallite_server.hooks.running import HOOKS_PATH
from recallite_server.warm import asking, proxy, service
from tests.limits import LAST_RESORT_SECONDS

pytest.importorskip("starlette", reason="the extra server is not installed")


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('embedder = "none"\n')
    return str(path)


async def opened(client, path, settings):
    headers = asking.store_headers(str(path), settings, create=True)
    return (await client.get("/v1/count", headers=headers)).status_code


def of_hook(event, host):
    """The header of a hook's request."""
    return {asking.HOOK: asking.in_header("\0".join((event, host, "", "", "", "/")))}


async def within(main):
    """Run something that must end by itself, with a client of the application."""
    application = service.Service("", lambda: None)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(application), base_url="http://localhost") as client:
        async with asyncio.timeout(LAST_RESORT_SECONDS):
            await main(client)
            for name in {path for path, _ in application._stores}:
                await client.post("/warm/close", headers=asking.store_headers(name))


def test_a_store_that_opens_slowly_holds_up_no_other_and_is_closed_once_it_is_open(tmp_path, settings, monkeypatch):
    may_open, open_store = threading.Event(), service._opened

    def slowly(path, settings):
        if path.endswith("slow.db"):
            assert may_open.wait(LAST_RESORT_SECONDS)
        return open_store(path, settings)

    monkeypatch.setattr(service, "_opened", slowly)

    async def main(client):
        slow = asyncio.create_task(opened(client, tmp_path / "slow.db", settings))
        await asyncio.sleep(0)
        assert await opened(client, tmp_path / "quick.db", settings) == 200
        headers = asking.store_headers(str(tmp_path / "slow.db"))
        closing = asyncio.create_task(client.post("/warm/close", headers=headers))
        await asyncio.sleep(0)
        may_open.set()
        await slow
        left = (await closing).json()["stores"]
        assert [store["path"] for store in left] == [str(tmp_path / "quick.db")]

    asyncio.run(within(main))


@pytest.mark.parametrize("host", ["gemini-cli", "cursor", "opencode"])
def test_turns_that_came_with_the_call_are_kept_before_it_is_answered(tmp_path, settings, monkeypatch, host):
    path = tmp_path / "agent.db"
    Memory(path, settings=Settings(embedder="none")).close()
    payload = {"session_id": "s1", "cwd": str(tmp_path), "prompt": "The staging host is called heron"}
    call = json.dumps(payload)

    async def main(client):
        headers = asking.store_headers(str(path), settings) | of_hook("turn", host)
        answer = await client.post(HOOKS_PATH, content=call, headers=headers)
        assert (answer.status_code, answer.content) == (200, b"")
        assert (await client.get("/v1/count", headers=headers)).json() == 1
        monkeypatch.setattr("recallite_server.hooks.turns._given", lambda event: 1 / 0)
        assert (await client.post(HOOKS_PATH, content=call, headers=headers)).status_code == 503

    asyncio.run(within(main))


def test_a_hook_that_gives_up_while_the_store_opens_loses_no_turn(tmp_path, settings, monkeypatch):
    path, opening = tmp_path / "agent.db", threading.Event()
    Memory(path, settings=Settings(embedder="none")).close()
    open_store = service._opened
    monkeypatch.setattr(service, "_opened", lambda *names: (opening.set(), open_store(*names))[1])
    payload = {"session_id": "s1", "cwd": str(tmp_path), "prompt": "The staging host is called heron"}
    call = json.dumps(payload).encode()

    async def receive():
        return {"type": "http.disconnect"} if opening.is_set() else {"type": "http.request", "body": call}

    async def send(message):
        pass

    async def main(client):
        headers = asking.store_headers(str(path), settings) | of_hook("turn", "gemini-cli")
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": HOOKS_PATH, "headers": raw}
        await client._transport.app(scope, receive, send)
        assert (await client.get("/v1/count", headers=headers)).json() == 1

    asyncio.run(within(main))


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
