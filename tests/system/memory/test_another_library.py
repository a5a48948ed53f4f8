"""Another SQLite library in the process that has the file open: no acknowledged write is lost without a word."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from recallite import Memory
from recallite.errors import WriteUnknown
from tests.unit.core.memory.support import PLAIN

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove a file that is open")

WRITES = """
import os, sqlite3, sys
from recallite import Memory
from recallite.errors import WriteUnknown
memory = Memory(sys.argv[1], embedder=None)
for number in range(40):
    if number % 7 == 3:
        other = sqlite3.connect(sys.argv[1])
        other.execute("SELECT count(*) FROM record").fetchall()
        other.close()
    try:
        memory.remember(f"acknowledged {number}")
    except WriteUnknown:
        memory.remember(f"acknowledged {number}")
    print(number, flush=True)
os.kill(os.getpid(), 9)
"""


def read_with_sqlite3(path):
    other = sqlite3.connect(path)
    count = other.execute("SELECT count(*) FROM record").fetchone()[0]
    other.close()
    return count


def test_acknowledged_writes_survive_a_kill(path):
    told = subprocess.run(
        [sys.executable, "-c", WRITES, path], capture_output=True, text=True, check=False
    ).stdout.split()
    assert len(told) == 40
    with Memory(path, settings=PLAIN) as memory:
        assert memory.count() == 40
        assert memory.store.verify().problems == ()


def test_readers_and_writers_go_on(path):
    with Memory(path, settings=PLAIN) as memory:
        for number in range(5):
            memory.remember(f"Note {number} about plums")
            assert read_with_sqlite3(path) == number + 1
            assert len(memory.recall("plums")) == number + 1
        assert memory.store.verify().problems == ()
    with Memory(path, settings=PLAIN) as memory:
        assert memory.count() == 5


def test_a_write_that_it_takes_away_is_not_acknowledged(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("Before")
        with pytest.raises(WriteUnknown, match="sqlite3"), memory.transaction():  # noqa: PT012
            memory.remember("Lost")
            read_with_sqlite3(path)
        assert [each.text for each in memory.list()] == ["Before"]
        memory.remember("After")
        assert memory.store.verify().problems == ()
    with Memory(path, settings=PLAIN) as memory:
        assert memory.count() == 2
