"""A store on a file system that cannot be written: it is read, and writes are refused."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from recallite import Memory
from tests.limits import LAST_RESORT_SECONDS
from tests.unit.core.memory.support import PLAIN, STORING

# In a name space of its own, since permissions do not bind root.
_MOUNTED = ("unshare", "--map-root-user", "--mount", "sh", "-c",
            'mount --bind "$0" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"')  # fmt: skip


def _may_mount():
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    return subprocess.run([*_MOUNTED, "/tmp", "/tmp", "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not _may_mount(), reason="nothing can be mounted read-only here")

READS = """
import subprocess, sys
from pathlib import Path
from recallite import Memory, Settings, errors
WRITES = '''
import sys
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none")) as memory:
    memory.remember("The lamp of the hall is green")
    print("written", flush=True)
    sys.stdin.read()
'''
source, mounted = map(Path, sys.argv[1:])
with Memory(mounted / "agent.db", settings=Settings(embedder="none")) as memory:
    def found():
        return sorted(hit.text for hit in memory.recall("lamp", limit=20))
    print(found(), memory.count(), len(memory.list()), memory.history(memory.list()[0].id)[0].text)
    print(memory.store.verify().ok, memory.store.stats().notes[-1])
    for write in (
        lambda: memory.remember("lost"), lambda: memory.remember_many(["lost", "too"]), memory.store.rebuild,
        lambda: memory.forget(scope="/"), memory.store.vacuum, memory.store.purge_expired,
    ):
        try:
            write()
        except errors.StoreError as fault:
            assert fault.reason == "read_only" and "was opened for reading only" in str(fault), fault
        else:
            raise AssertionError("it was written")
    memory.store.backup(source.parent / "backup.db")
    writer = subprocess.Popen([sys.executable, "-c", WRITES, source / "agent.db"], stdin=subprocess.PIPE, stdout=-1)
    writer.stdout.readline()  # it has the same folder, and may write there
    print(found())
    writer.communicate()
    print(found())
"""


@pytest.fixture
def folders(tmp_path):
    """A folder for a store, with characters that mean something in a URI, and where it is mounted."""
    made = tmp_path / "a store #1 é", tmp_path / "read only?x=y"
    for folder in made:
        folder.mkdir()
    return made


def read(source, mounted):
    process = subprocess.run(
        [*_MOUNTED, source, mounted, sys.executable, "-c", READS, source, mounted],
        capture_output=True, text=True, timeout=LAST_RESORT_SECONDS, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "after a kill"])
def test_a_store_is_read_and_not_written(folders, tmp_path, closed):
    source, mounted = folders
    with Memory(tmp_path / "agent.db", settings=STORING) as memory:
        memory.remember("The lamp of the attic is blue")
        memory.remember("The lamp of the cellar is red")
        if not closed:
            for ending in ("", "-wal"):
                shutil.copyfile(tmp_path / f"agent.db{ending}", source / f"agent.db{ending}")
    if closed:
        shutil.copyfile(tmp_path / "agent.db", source / "agent.db")
    old = ["The lamp of the attic is blue", "The lamp of the cellar is red"]
    now = [*old, "The lamp of the hall is green"]
    assert read(source, mounted) == [
        f"{old} 2 2 {old[1]}", "True the store is where nothing can be written: it is open for reading only",
        str(now), str(now),
    ]  # fmt: skip
    with Memory(tmp_path / "backup.db", settings=PLAIN) as backup:
        assert backup.count() == 2


def test_a_store_that_another_process_writes_is_read(folders):
    source, mounted = folders
    with Memory(source / "agent.db", settings=STORING) as memory:
        memory.remember("The lamp of the attic is blue")
        assert read(source, mounted)[-1] == str(["The lamp of the attic is blue", "The lamp of the hall is green"])
        assert memory.count() == 2


def test_the_command_line_reads_it(folders):
    source, mounted = folders
    with Memory(source / "agent.db", settings=PLAIN) as memory:
        memory.remember("The lamp of the attic is blue")
    command = [*_MOUNTED, source, mounted, sys.executable, "-m", "recallite", "--db", mounted / "agent.db"]
    told = subprocess.run([*command, "recall", "lamp"], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout.count("attic"), told.stderr) == (0, 1, "")
    refused = subprocess.run([*command, "remember", "lost"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "was opened for reading only" in refused.stderr) == (3, True)
