"""transaction(): several calls, one commit."""

from __future__ import annotations

import signal

from recallite import Memory
from tests.unit.core.memory.support import PLAIN, spawn

_KILLED = """
import sys
from recallite import Memory, Settings
memory = Memory(sys.argv[1], settings=Settings(embedder="none"))
with memory.transaction():
    memory.remember_many([f"lost {number}" for number in range(500)])
    print("written", flush=True)
    sys.stdin.readline()
"""


def test_a_process_killed_inside_leaves_nothing(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("kept")
    other = spawn(_KILLED, path)
    assert other.stdout.readline() == "written\n", other.stderr.read()
    other.send_signal(signal.SIGKILL)
    other.communicate()
    with Memory(path, settings=PLAIN) as memory:
        assert [record.text for record in memory.list()] == ["kept"]
        assert memory.store.verify().ok
