"""Consolidation (seed 002): COMPRESS, REPLAY, one transaction, idempotent per trigger, a row that says what it did."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from recallite.agents.consolidation import Consolidator
from recallite.model.settings import Consolidation
from tests.unit.core.memory.support import PLAIN, Other, run_at_once


def log(memory, number, **fields):
    return [memory.episodes.log(f"episode number {n}", **fields) for n in range(number)]


def importance(memory, agent=None):
    return {record.text: record.importance for record in memory.episodes.list(agent=agent, limit=None)}


def test_a_locked_store_leaves_the_cycle_to_the_next_episode(path, monkeypatch):
    settings = Settings(embedder="none", busy_timeout_ms=20, consolidation=Consolidation(threshold=2))
    with Memory(path, settings=settings) as memory:
        memory.episodes.log("one")
        write = Consolidator._write
        with Other(path) as other, monkeypatch.context() as patched:
            patched.setattr(
                Consolidator,
                "_write",
                lambda *arguments: (
                    other("memory._engine.store._writer.connection.execute('BEGIN IMMEDIATE') is not None")
                    and write(*arguments)
                ),
            )
            memory.episodes.log("two")
            other("memory._engine.store._writer.connection.execute('ROLLBACK') is not None")
        assert memory.consolidator.cycles() == []
        memory.episodes.log("three")
        assert [cycle.replayed for cycle in memory.consolidator.cycles()] == [3]


_LOGS = """
import sys
from recallite import Memory, Settings
from recallite.model.settings import Consolidation
settings = Settings(
    embedder="none", durability="normal", busy_timeout_ms=900_000, consolidation=Consolidation()
)
with Memory(sys.argv[1], settings=settings) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(50):
        memory.episodes.log(f"{sys.argv[2]} {number}", agent="ada", importance=1.0)
"""


def test_two_processes_that_log_run_each_cycle_once(path):
    Memory(path, settings=PLAIN).close()
    run_at_once(_LOGS, path, [("a",), ("b",)])
    with Memory(path, settings=PLAIN) as memory:
        cycles = memory.consolidator.cycles("ada", limit=100)
        assert all(cycle.replayed >= 10 for cycle in cycles)
        assert sum(cycle.replayed for cycle in cycles) > 90
        oldest = memory.episodes.list(agent="ada", limit=1)[0]
        assert oldest.importance == pytest.approx(0.95 ** len(cycles), abs=1e-9)
        assert memory.store.verify().problems == ()
