"""Procedures (seed 002): rate = 0.9 * rate + 0.1 * outcome, and exact counts."""

from __future__ import annotations

from recallite import Memory
from tests.unit.core.memory.support import PLAIN, run_at_once

_COUNTS = """
import sys
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none", durability="normal", busy_timeout_ms=900_000)) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(100):
        memory.procedures.save("shared", "saved by " + sys.argv[2]) if number % 10 == 0 else None
        memory.procedures.record_outcome("shared", number % 4 == 0)
"""


def test_two_processes_count_every_outcome_and_save_one_procedure(path):
    Memory(path, settings=PLAIN).close()
    run_at_once(_COUNTS, path, [("a",), ("b",)])
    with Memory(path, settings=PLAIN) as memory:
        (shared,) = memory.procedures.list()
        assert (shared.use_count, shared.success_count) == (200, 50)
        assert memory.store.verify().problems == ()
