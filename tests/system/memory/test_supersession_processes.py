"""One memory in the place of another: what is shown, what is refused, what undoes it."""

from __future__ import annotations

import pytest

from recallite import Memory
from tests.unit.core.memory.support import PLAIN, STORING, run_at_once


@pytest.fixture
def memory():
    with Memory(":memory:", settings=STORING) as memory:
        yield memory


_RIVAL = """
import sys
from recallite import Memory, NewRecord, Settings
from recallite.errors import Conflict
path, me, *olds = sys.argv[1:]
with Memory(path, settings=Settings(embedder="none", durability="normal", busy_timeout_ms=900_000)) as memory:
    new = memory.remember("decided by " + me).id
    print("ready", flush=True)
    sys.stdin.readline()
    for place, old in enumerate(olds):
        try:
            if place % 2:
                memory.supersede(old, new)
            else:
                memory.remember(NewRecord("written by " + me, supersedes=old))
        except Conflict as fault:
            assert fault.reason == "superseded", fault
            (successor,) = memory.get(old).superseded_by
            assert successor in str(fault) and successor != new, fault
"""


def test_of_processes_that_supersede_one_memory_one_does(tmp_path):
    path = str(tmp_path / "agent.db")
    with Memory(path, settings=PLAIN) as memory:
        olds = memory.remember_many([f"statement {number}" for number in range(40)])
        run_at_once(_RIVAL, path, [(number, *olds) for number in range(3)])
        assert all(len(memory.get(old).superseded_by) == 1 for old in olds)
        # Of what was to supersede at once with being written nothing stayed where it was refused.
        assert memory.count(include_superseded=True) == 40 + 3 + 20
        assert memory.count() == 23
        hits = memory.recall("decided written statement", limit=100)
        assert len([hit for hit in hits if not hit.superseded_by]) == 23
        assert memory.store.verify().problems == ()
