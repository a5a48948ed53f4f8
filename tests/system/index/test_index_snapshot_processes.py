"""The index snapshot: the same answers as from the store, ignored where anything differs, deleted with what it held."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recallite import Memory
from tests.limits import LAST_RESORT_SECONDS
from tests.unit.core.index.test_index_snapshot import FAST, PLAIN, answers, expected, small, stored  # noqa: F401
from tests.unit.core.memory.support import scored, spawn

_READER = """
import os, sys
from recallite import Memory, Settings
os.environ["RECALLITE_LOW_MEMORY"] = sys.argv[2]
settings = Settings(embedder="none", durability="normal")
with Memory(sys.argv[1], settings=settings) as memory:
    memory.recall("apple")
    assert memory.store.stats().index["origin"] == "snapshot"
    print("ready", flush=True)
    sys.stdin.readline()
    hits = memory.recall("unique7 apple berry", limit=30, profile={"half_life_days": 0})
    print([(hit.id, round(hit.score, 5)) for hit in hits])
"""


@pytest.mark.parametrize("low_memory", ["0", "1"])
@pytest.mark.parametrize("what", ["snapshot", "database"])
def test_a_file_that_is_truncated_under_a_reader_does_not_end_it(stored, low_memory, what):
    """A page of a mapped file that is not there any more is SIGBUS, and no process survives that."""
    with Memory(stored, settings=PLAIN) as memory:
        right = repr(scored(memory.recall("unique7 apple berry", limit=30, profile={"half_life_days": 0})))
    reader = spawn(_READER, stored, low_memory)
    assert reader.stdout.readline() == "ready\n", reader.stderr.read()
    os.truncate(f"{stored}-index" if what == "snapshot" else stored, 100)
    out, err = reader.communicate("\n", timeout=LAST_RESORT_SECONDS)
    if what == "snapshot":
        assert (out.strip(), reader.returncode) == (right, 0), err
    else:
        assert reader.returncode == 1
        assert "recallite.errors.StoreCorrupt" in err


def test_a_process_killed_while_it_writes_does_no_harm(stored):
    code = (
        "import os, signal, sys\n"
        "from recallite import Memory, Settings\n"
        "from recallite.index import snapshot as snapshot\n"
        "snapshot._SMALLEST = 10\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.unlink(sys.argv[1] + '-index')\n"
        "memory = Memory(sys.argv[1], settings=Settings(embedder='none', durability='normal'))\n"
        "memory.recall('apple')\n"
        "memory.close()\n"
    )
    process = spawn(code, stored)
    process.communicate(timeout=LAST_RESORT_SECONDS)
    assert process.returncode == -9
    assert not Path(f"{stored}-index").exists()
    part = Path(f"{stored}-index-part")
    assert part.exists()
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
    assert not Path(f"{stored}-index").exists(), "another process may be writing"
    os.utime(part, (0, 0))
    with Memory(stored, settings=FAST) as memory:
        memory.recall("apple")
    assert Path(f"{stored}-index").exists()


def test_processes_that_use_and_replace_it_at_once(stored):
    code = (
        "import os, sys\n"
        "from recallite import Memory, Settings\n"
        "from recallite.index import snapshot as snapshot\n"
        "snapshot._SMALLEST, snapshot._FAR_BEHIND = 10, 0\n"
        "for number in range(8):\n"
        "    settings = Settings(embedder='none', durability='normal', busy_timeout_ms=900_000)\n"
        "    with Memory(sys.argv[1], settings=settings) as memory:\n"
        "        memory.recall('apple')\n"
        "        memory.remember_many([f'apple {sys.argv[2]} {number} {each}' for each in range(5)])\n"
        "        assert len(memory.recall(f'{sys.argv[2]} {number}', mode='keyword', limit=100)) >= 5\n"
    )
    processes = [spawn(code, stored, name) for name in ("first", "second")]
    for process in processes:
        _, errors = process.communicate(timeout=LAST_RESORT_SECONDS)
        assert process.returncode == 0, errors
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
        assert memory.count() == 180
