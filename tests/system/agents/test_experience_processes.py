"""Experience (seed 002): tool patterns by task type, error recoveries by tool, tips worded as the seed words them."""

from __future__ import annotations

from recallite import Memory
from tests.unit.core.memory.support import PLAIN, run_at_once

_RUNS = """
import sys
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none", durability="normal", busy_timeout_ms=900_000)) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(100):
        memory.experience.record(task_type="query", tools=["x"], success=number % 2 == 0, steps=number, tokens=1)
"""


def test_two_processes_count_every_run(path):
    Memory(path, settings=PLAIN).close()
    run_at_once(_RUNS, path, [(), ()])
    with Memory(path, settings=PLAIN) as memory:
        (tip,) = memory.experience.tips("query")
        assert (tip.runs, tip.success_rate, tip.avg_steps, tip.avg_tokens) == (200, 0.5, 49.5, 1.0)
