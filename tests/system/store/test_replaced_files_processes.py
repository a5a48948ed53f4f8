"""A file that is replaced while several processes have it open: all go on with the one that is there."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from recallite import Memory, restore_store
from tests.unit.core.memory.support import PLAIN, STORING, Other, spawn

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not replace a file that is open")


def exchanged(source, path):
    shutil.copyfile(source, f"{path}.new")
    os.replace(f"{path}.new", path)


def restored(source, path):
    restore_store(source, path, settings=PLAIN, discard_old=True)


REPLACEMENTS = pytest.mark.parametrize("replace", [shutil.copyfile, exchanged, restored])
TEXTS = "sorted(record.text for record in memory.list(limit=None))"


def texts(path):
    with Memory(path, settings=PLAIN) as memory:
        assert memory.store.verify().ok
        return sorted(record.text for record in memory.list(limit=None))


@pytest.fixture
def shared(path, tmp_path):
    """A store that two processes have open, in whose log both have written, and an older backup."""
    with Memory(path, settings=STORING) as memory:
        memory.remember("the lamp is blue")
        backup = memory.store.backup(tmp_path / "backup.db")
        with Other(path) as other:
            memory.remember_many([f"the chair {number} is red" for number in range(30)])
            assert other("memory.remember('the door is white').text") == "the door is white"
            assert len(memory.recall("chair", limit=50)) == other("len(memory.recall('chair', limit=50))") == 30
            yield memory, other, backup


@REPLACEMENTS
@pytest.mark.parametrize("first", ["this", "the other", "a third"])
def test_each_process_goes_on_with_the_file_that_is_there(shared, path, replace, first):
    memory, other, backup = shared
    replace(backup, path)
    if first == "a third":
        assert texts(path) == ["the lamp is blue"]
    elif first == "the other":
        assert other("[hit.text for hit in memory.recall('chair lamp')]") == ["the lamp is blue"]
    memory.remember("the desk is green")
    assert other("memory.remember('the sofa is grey').text") == "the sofa is grey"
    now = ["the desk is green", "the lamp is blue", "the sofa is grey"]
    assert sorted(record.text for record in memory.list()) == other(TEXTS) == texts(path) == now
    assert sorted(hit.text for hit in memory.recall("desk lamp sofa chair")) == now


@REPLACEMENTS
def test_a_process_that_ends_without_a_look_takes_nothing_away(shared, path, replace):
    memory, other, backup = shared
    replace(backup, path)
    memory.remember("the desk is green")
    assert other("memory.close()") is None
    memory.remember("the sofa is grey")
    memory.close()
    assert texts(path) == ["the desk is green", "the lamp is blue", "the sofa is grey"]


_KILLED = """
import os, sys
from recallite import Memory, Settings
memory = Memory(sys.argv[1], settings=Settings(embedder="none"))
memory.remember_many([f"the chair {number} is red" for number in range(30)])
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("replace", [shutil.copyfile, exchanged])
def test_the_log_that_a_killed_process_left_is_not_applied_to_a_backup(path, tmp_path, replace):
    with Memory(path, settings=STORING) as memory:
        memory.remember("the lamp is blue")
        backup = memory.store.backup(tmp_path / "backup.db")
        memory.remember("the door is white")
    spawn(_KILLED, path).communicate()
    assert os.path.getsize(f"{path}-wal")
    replace(backup, path)
    assert texts(path) == ["the lamp is blue"]


def test_the_log_that_a_killed_process_left_is_applied_to_its_own_file(path):
    with Memory(path, settings=STORING) as memory:
        memory.remember("the lamp is blue")
    spawn(_KILLED, path).communicate()
    assert len(texts(path)) == 31
