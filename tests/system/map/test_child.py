"""The child process that computes a map: it can be killed, ends with its parent, and is confined."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from recallite import Memory
from recallite.review.map import child as starting
from recallite.review.map.child import Child, MapFailed
from recallite.review.map.map_process import Job
from recallite.review.map.memory_map import MemoryMap
from tests.limits import LAST_RESORT_SECONDS, until
from tests.system.map.support import grouped
from tests.unit.memory.support import WordEmbedder

# A child that computes for ever, once it has its vectors.
ENDLESS = starting._BOOT.replace(
    "from recallite.review.map.map_process",
    "import time, recallite.review.map.layout as layout; layout.lay_out = lambda vectors, method, told: "
    "(told('layout', 0.5), time.sleep(10**6)); from recallite.review.map.map_process",
)


@pytest.fixture
def grown(path):
    with Memory(path, embedder=WordEmbedder()) as opened:
        grouped(opened)
        yield opened


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_killed_child_is_a_failure_and_can_be_started_again(grown, monkeypatch):
    found = MemoryMap(grown)
    with monkeypatch.context() as patched:
        patched.setattr(starting, "_BOOT", ENDLESS)
        found.start("pca")
        until(lambda: found.state().stage == "layout")
        state = found.state()
        assert state.status == "computing"
        assert 0.3 < state.progress < 1
        assert found.start("pca").status == "computing"  # the same
        os.kill(found._child.pid, signal.SIGKILL)
        assert found.wait()
    state = found.state()
    assert state.status == "failed"
    assert state.failure == "the process that computes the map ended with signal 9"
    assert len(found.points()) == 0
    found.start("pca")
    assert found.wait()
    assert found.state().status == "ready"
    assert found.state().failure is None


def test_close_ends_the_child(grown, monkeypatch):
    monkeypatch.setattr(starting, "_BOOT", ENDLESS)
    found = MemoryMap(grown)
    found.start("pca")
    until(lambda: found.state().stage == "layout")
    process = found._child._process
    found.close()
    assert process.returncode is not None
    assert (found.state().status, found.state().failure) == ("failed", "it was stopped")


def test_a_map_that_fails_leaves_the_one_before(grown, monkeypatch):
    found = MemoryMap(grown)
    found.start("pca")
    assert found.wait()
    placed = len(found.points())
    broken = starting._BOOT.replace(
        "from recallite.review.map.map_process",
        "import recallite.review.map.layout as layout; layout.lay_out = None; from recallite.review.map.map_process",
    )
    monkeypatch.setattr(starting, "_BOOT", broken)
    found.start("pca")
    assert found.wait()
    assert found.state().status == "failed"
    assert "TypeError" in found.state().failure
    assert len(found.points()) == placed > 0


def test_the_store_is_not_read_while_the_map_is_computed(grown, monkeypatch):
    """A read transaction that lasts would keep the WAL from being emptied, and a receipt incomplete."""
    monkeypatch.setattr(starting, "_BOOT", ENDLESS)
    found = MemoryMap(grown)
    found.start("pca")
    until(lambda: found.state().stage == "layout")
    assert grown.forget(scope="/groups/1", receipt=True).receipt.complete
    found.close()


PARENT = f"""
import sys, time
import numpy as np
from recallite.review.map import child as starting
from recallite.review.map.map_process import Job
starting._BOOT = {ENDLESS!r}
child = starting.Child()
if sys.argv[1] == "reading":
    child._start()
else:
    child.send(Job("pca", 3, 2), [np.eye(3, 2, dtype=np.float32)])
print(child.pid, flush=True)
if sys.argv[1] == "computing":
    child.result(lambda stage, share: print(stage, flush=True))
time.sleep(10**6)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="without /proc")
@pytest.mark.parametrize("stage", ["reading", "computing"])
def test_the_child_ends_when_its_parent_is_killed(stage):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, stage], stdout=subprocess.PIPE, text=True)
    try:
        pid = int(parent.stdout.readline())
        if stage == "computing":
            assert parent.stdout.readline() == "layout\n"
        assert alive(pid)
    finally:
        parent.kill()
        parent.wait(LAST_RESORT_SECONDS)
        parent.stdout.close()
    until(lambda: not alive(pid))


def test_a_stopped_child_is_not_started():
    child = Child()
    child.end()
    with pytest.raises(MapFailed, match="it was stopped"):
        child.send(Job("pca", 1, 1), [np.ones((1, 1), dtype=np.float32)])


CONFINED = """
import os, socket, subprocess, sys
from recallite.review.map.map_process import _confine
cache, outside = sys.argv[1:]
_confine(cache)
open(os.path.join(cache, "compiled"), "w").close()
print(open(os.path.join(cache, "compiled")).read(), "written")
for attempt in (
    lambda: open(outside, "w"),
    lambda: os.open(outside, os.O_CREAT | os.O_WRONLY),
    lambda: open(os.path.join(cache, "..", "outside"), "a"),
    lambda: socket.create_connection(("127.0.0.1", 9)),
    lambda: subprocess.run(["true"]),
    lambda: os.system("true"),
):
    try:
        attempt()
    except PermissionError as refused:
        print(refused)
"""


def test_the_child_writes_into_its_cache_alone(tmp_path):
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    cache.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CONFINED, str(cache), str(outside)], capture_output=True, text=True, check=True
    )
    said = done.stdout.splitlines()
    assert said[0].strip() == "written"
    assert len(said) == 7, said
    assert not outside.exists()
