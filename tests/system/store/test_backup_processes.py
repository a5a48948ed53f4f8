"""A backup is whole or not there, names the disk that is full, and disturbs no other one to the same place."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from tests.unit.core.store.test_backup import parts, texts

_KILLED = """
import os, signal, sys
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none")) as memory:
    memory.store.backup(sys.argv[2], on_progress=lambda done, total: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_a_killed_backup_left_goes_with_the_next(on_disk, tmp_path):
    on_disk.remember("one")
    place = tmp_path / "copies"
    place.mkdir()
    target = place / "copy.db"
    subprocess.run([sys.executable, "-c", _KILLED, on_disk.path, str(target)], check=False, timeout=120)
    (part,) = parts(place)
    assert stat.S_IMODE((place / part).stat().st_mode) == 0o600
    on_disk.store.backup(place / "other.db")
    assert parts(place) == [part]  # it may be a running backup's, as far as its name goes
    on_disk.store.backup(target)
    assert parts(place) == []
    assert texts(target) == ["one"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of file size")
def test_a_full_disk_is_named_by_the_target(on_disk, tmp_path):
    """SQLite writes the copy through a limit of file size, which it tells as a disk that is full or fails."""
    for each in range(300):
        on_disk.remember(f"fact {each} " * 50)
    code = (
        "import resource, signal, sys\n"
        "from recallite import Memory, Settings\n"
        "memory = Memory(sys.argv[1], settings=Settings(embedder='none'))\n"
        "memory.recall('fact', limit=1)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "try:\n    memory.store.backup(sys.argv[2])\n"
        "except Exception as fault:\n    print(type(fault).__name__, fault)\n"
    )
    target = tmp_path / "target" / "copy.db"
    target.parent.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, on_disk.path, str(target)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("Store"), done
    assert str(target) in done.stdout
    assert on_disk.path not in done.stdout
    assert os.listdir(target.parent) == []
