"""Writers of several processes: none is refused while another compares, and a killed one keeps nobody waiting."""

from __future__ import annotations

import os
import random
import sys

import pytest

from recallite import Memory
from recallite.store.sqlite.store import SqliteStore
from recallite.system.turnstile import Turnstile, is_present
from tests.limits import LAST_RESORT_SECONDS, until
from tests.unit.core.memory.support import PLAIN, spawn

COMPARING = """
import sys
from recallite import Memory
from tests.unit.core.memory.support import PLAIN
memory = Memory(sys.argv[1], settings=PLAIN)
print("ready", flush=True)
sys.stdin.readline()
print(memory.store.catch_up(), flush=True)
"""
WAITING = """
import sys
from recallite.store.sqlite.store import SqliteStore
with SqliteStore(sys.argv[1]).atomic():
    print("wrote", flush=True)
"""
FORKING = """
import os, sys, time
from recallite.system.turnstile import Turnstile, is_present
gate, apart = Turnstile(sys.argv[1]), os.pipe()
with gate.waiting():
    child = os.fork()
    if not child:
        os.read(apart[0], 1)
        os._exit(0)
print(is_present(sys.argv[1]))
os.write(apart[1], b".")
os.waitpid(child, 0)
"""


def test_no_writer_is_refused_while_another_process_compares(tmp_path):
    path, draw = tmp_path / "agent.db", random.Random(5)
    facts = [f"Grace{draw.randrange(40)} has {draw.randrange(900)} sheep" for _ in range(400)]
    with Memory(path, settings=PLAIN) as memory:
        memory._engine.comparing.stop()
        memory.remember_many(facts)
        comparing = spawn(COMPARING, path)
        assert comparing.stdout.readline() == "ready\n"
        comparing.stdin.write("\n")
        comparing.stdin.flush()
        written = 0
        while memory.store.stats().to_compare:
            written += 1
            memory.remember(f"The harbour master notes ship {written}")
        assert int(comparing.communicate(timeout=LAST_RESORT_SECONDS)[0]) > 0
        assert written > 3
        assert memory.store.verify().problems == ()
        assert memory.store.stats().superseded > 20
    assert sorted(os.listdir(tmp_path)) == ["agent.db"]


def test_a_process_that_is_killed_while_it_waits_holds_nobody_up(tmp_path):
    path = str(tmp_path / "agent.db")
    store = SqliteStore(path)
    try:
        gate = Turnstile(f"{path}-turn", path)
        with store.atomic():
            waiting = spawn(WAITING, path)
            until(lambda: not gate.is_free())
            waiting.kill()
            waiting.wait(LAST_RESORT_SECONDS)
            assert gate.is_free()
            assert not os.path.exists(f"{path}-turn")
        waiting.communicate()
    finally:
        store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_forked_child_is_not_taken_for_its_parent_that_waited(tmp_path):
    place = str(tmp_path / "agent.db-turn")
    forking = spawn(FORKING, place)
    out, err = forking.communicate(timeout=LAST_RESORT_SECONDS)
    assert (out, err, is_present(place)) == ("False\n", "", False)
