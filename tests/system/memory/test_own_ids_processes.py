"""Ids of the caller's own: stored once, replaced, versioned, and refused."""

from __future__ import annotations

from recallite import Memory
from tests.unit.core.memory.support import PLAIN, run_at_once

_PUTS = """
import sys
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none")) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(100):
        memory.remember(f"{sys.argv[2]} {number}", id=f"k{number % 10}", on_existing="version")
"""


def test_two_processes_put_the_same_ids(path):
    Memory(path, settings=PLAIN).close()
    run_at_once(_PUTS, path, [("a",), ("b",)])
    with Memory(path, settings=PLAIN) as memory:
        assert memory.count() == 10
        for number in range(10):
            texts = [each.text for each in memory.history(f"k{number}")]
            assert sorted(texts) == sorted(f"{name} {n}" for name in "ab" for n in range(number, 100, 10))
        assert memory.store.verify().ok
