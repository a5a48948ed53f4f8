"""Sessions (seed 002) and their search (seed 003): stored as they are said, restored, shared, searched, ended."""

from __future__ import annotations

import json
import signal

from recallite import Memory
from tests.unit.core.agents.test_sessions import MESSAGES
from tests.unit.core.memory.support import PLAIN, run, run_at_once, spawn


def test_a_session_is_restored_by_its_id_in_the_next_process(path):
    with Memory(path, settings=PLAIN) as memory:
        session = memory.sessions.open("my-project", agent="ada", provider="anthropic")
        assert [session.append(message) for message in MESSAGES] == [0, 1, 2, 3, 4]
    code = """
import sys, json
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none")) as memory:
    session = memory.sessions.open("my-project", agent="ada")
    print(json.dumps([session.messages(), session.provider, session.agent]))
"""
    assert json.loads(run(code, path)) == [MESSAGES, "anthropic", "ada"]


_APPENDS = """
import sys
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none", durability="normal", busy_timeout_ms=900_000)) as memory:
    session = memory.sessions.open("shared", agent="ada")
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(200):
        session.append("user", f"{sys.argv[2]} {number}")
"""


def test_two_processes_on_one_session_lose_no_message(path):
    Memory(path, settings=PLAIN).close()
    run_at_once(_APPENDS, path, [("a",), ("b",)])
    with Memory(path, settings=PLAIN) as memory:
        (info,) = memory.sessions.list()
        assert info.messages == 400
        said = [message["content"] for message in memory.sessions.open("shared", agent="ada").messages()]
        for name in "ab":
            assert [text for text in said if text.startswith(name)] == [f"{name} {number}" for number in range(200)]
        assert memory.store.verify().problems == ()


_POPS = """
import sys
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none")) as memory:
    session = memory.sessions.open("shared")
    print("ready", flush=True)
    sys.stdin.readline()
    while (message := session.pop()) is not None:
        memory.sessions.open(sys.argv[2]).append(message)
"""


def test_two_processes_that_pop_get_every_message_once(path):
    said = [{"role": "user", "content": f"message {number}"} for number in range(120)]
    with Memory(path, settings=PLAIN) as memory:
        memory.sessions.open("shared").extend(said)
    run_at_once(_POPS, path, [("a",), ("b",)])
    with Memory(path, settings=PLAIN) as memory:
        popped = [memory.sessions.open(name).messages() for name in "ab"]
        assert memory.sessions.open("shared").messages() == []
        assert sorted(popped[0] + popped[1], key=said.index) == said
        for each in popped:
            assert each == sorted(each, key=said.index, reverse=True)
        assert memory.store.verify().problems == ()


_KILLED = """
import sys
from recallite import Memory, Settings
memory = Memory(sys.argv[1], settings=Settings(embedder="none"))
session = memory.sessions.open("s")
for number in range(10**6):
    session.append("user", f"message {number}")
    print(number, flush=True)
"""


def test_every_message_whose_append_returned_survives_a_kill(path):
    process = spawn(_KILLED, path)
    for _ in range(20):
        last = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    rest = process.communicate()[0].split("\n")
    said = [last, *(int(line) for line in rest[:-1])]
    with Memory(path, settings=PLAIN) as memory:
        kept = [message["content"] for message in memory.sessions.open("s").messages()]
        assert kept[: said[-1] + 1] == [f"message {number}" for number in range(said[-1] + 1)]
        assert memory.store.verify().problems == ()
