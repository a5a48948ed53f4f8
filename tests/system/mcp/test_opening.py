"""How conversations begin: what a thin process answers before anything is loaded is what the server would.

`python -m tests.system.mcp.test_opening` writes `opening.json` anew, as after a change of the tools.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from contextlib import nullcontext

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from recallite_server.mcp.server import MemoryServer, converse
from recallite_server.warm.proxy import _Opening
from recallite_server.warm.quick import quick_start
from recallite_tools.action import DocumentAccess
from tests.limits import LAST_RESORT_SECONDS

FILE = Path(str(importlib.resources.files("recallite_server.mcp") / "opening.json"))
CLIENT = {"capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def request(id, method, params=None):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def handshake(version):
    return request("hello", "initialize", {**CLIENT, "protocolVersion": version})


class Host:
    """Lines of a host, and the answers to them."""

    def __init__(self, messages):
        self.messages, self.answers, self.answered = messages, [], asyncio.Event()
        self._wanted = sum("id" in message for message in messages)

    async def __aiter__(self):
        for message in self.messages:
            yield json.dumps(message)
        await self.answered.wait()

    async def write(self, line):
        self.answers.append(json.loads(line))
        if len(self.answers) == self._wanted:
            self.answered.set()

    async def flush(self):
        pass


def of_server(*messages, **options):
    """The results of the server itself."""

    async def main():
        host = Host(messages)
        server = MemoryServer(nullcontext, **options)
        await asyncio.wait_for(converse(server, host, host), LAST_RESORT_SECONDS)
        return [answer["result"] for answer in host.answers]

    return asyncio.run(main())


def opening():
    """What the file should hold."""
    hello, listed = of_server(
        handshake("none that there is"), INITIALIZED, request(1, "tools/list"), documents=DocumentAccess.of((), True)
    )
    del hello["protocolVersion"], hello["serverInfo"]["version"]
    return {"versions": [*HANDSHAKE_PROTOCOL_VERSIONS], "initialize": hello, **listed}


def written(value):
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def test_the_file_holds_what_the_server_answers():
    assert FILE.read_text("utf-8") == written(opening()), "run python -m tests.system.mcp.test_opening"


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "2099-01-01"])
@pytest.mark.parametrize(
    ("options", "of_process"),
    [
        ({}, {}),
        ({"read_only": True}, {"read_only": True}),
        ({"tools": ["recall", "fetch", "recall"]}, {"tools": ["recall", "fetch", "recall"]}),
        ({"documents": DocumentAccess.of((), True)}, {"folders": [], "urls": True}),
    ],
)
def test_a_thin_process_answers_as_the_server(version, options, of_process):
    thin = _Opening(of_process)
    mine = [json.loads(thin.answer(message)) for message in (handshake(version), request(7, "tools/list"))]
    theirs = of_server(handshake(version), INITIALIZED, request(7, "tools/list"), **options)
    assert [answer["result"] for answer in mine] == theirs
    assert [answer["id"] for answer in mine] == ["hello", 7]


@pytest.mark.parametrize(
    "message",
    [
        request(1, "tools/list"),  # nobody has begun
        request(1, "ping"),
        {**handshake("2025-06-18"), "id": True},
        {**handshake("2025-06-18"), "jsonrpc": "1.0"},
        request(1, "initialize", {"protocolVersion": "2025-06-18"}),
        request(1, "initialize", {**CLIENT, "protocolVersion": 7}),
        {"jsonrpc": "2.0", "method": "initialize", "params": {**CLIENT, "protocolVersion": "2025-06-18"}},
        {},
    ],
)
def test_what_is_no_such_question_is_left_to_the_server(message):
    assert _Opening({}).answer(message) == b""


def test_the_handshake_is_answered_while_nothing_can_be_loaded(tmp_path, monkeypatch):
    """The full command never comes: the package that it needs waits until nobody can send it more."""
    monkeypatch.setenv("RECALLITE_WARM", "0")
    (tmp_path / "msgspec.py").write_text("import os, sys\nsys.stdin.buffer.read()\nos._exit(0)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process = subprocess.Popen(
        [*quick_start(), "--db", str(tmp_path / "agent.db"), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        for message in (handshake("2025-06-18"), INITIALIZED, request(2, "tools/list")):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        hello, listed = (json.loads(process.stdout.readline())["result"] for _ in range(2))
        assert hello["protocolVersion"] == "2025-06-18"
        assert "recall" in [tool["name"] for tool in listed["tools"]]
    finally:
        process.kill()
        process.communicate()


def test_options_that_the_server_refuses_end_the_process_with_its_code(tmp_path, monkeypatch):
    monkeypatch.setenv("RECALLITE_WARM", "0")
    ran = subprocess.run(
        [sys.executable, "-m", "recallite", "--db", str(tmp_path / "agent.db"), "mcp", "--tools", "no_such_tool"],
        input=b"".join(json.dumps(each).encode() + b"\n" for each in (handshake("2025-06-18"), request(2, "ping"))),
        capture_output=True, timeout=LAST_RESORT_SECONDS,
    )  # fmt: skip
    assert ran.returncode == 2
    assert b"'no_such_tool' is no tool" in ran.stderr


if __name__ == "__main__":
    FILE.write_text(written(opening()), "utf-8")
