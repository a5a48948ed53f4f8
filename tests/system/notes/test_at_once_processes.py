"""Several threads and processes in one folder, and runs that are killed: nothing is lost, doubled or locked."""

from __future__ import annotations

import random
import signal

from recallite import Workspace
from tests.unit.core.memory.support import WordEmbedder, run_at_once, spawn
from tests.unit.notes.support import config, dump, dump_afresh, write
from tests.unit.notes.test_at_once import fill, folder  # noqa: F401

INDEX = """
import sys
from recallite import Workspace, WorkspaceConfig
from tests.unit.core.memory.support import WordEmbedder
with Workspace(sys.argv[1], embedder=WordEmbedder()) as workspace:
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(3):
        workspace.index(force=True)
"""
KILLED = """
import sys
from recallite import Workspace
from tests.unit.core.memory.support import WordEmbedder
with Workspace(sys.argv[1], embedder=WordEmbedder()) as workspace:
    print("ready", flush=True)
    workspace.index(on_progress=lambda done, total: print(done, flush=True))
    print("end", flush=True)
"""


def test_two_processes_index_one_folder_without_a_locked_database(folder, tmp_path):
    """memweave says `database is locked` with two writers."""
    fill(folder)
    run_at_once(INDEX, str(folder), [()] * 3)
    with Workspace(folder, config(), embedder=WordEmbedder()) as workspace:
        assert workspace.index().files_indexed == 0
        assert dump(workspace) == dump_afresh(folder, tmp_path, WordEmbedder())


def test_an_index_that_is_killed_is_completed_by_the_next(folder, tmp_path):
    fill(folder, 80)
    seeded = random.Random(5)
    for attempt in range(6):
        running = spawn(KILLED, str(folder))
        assert running.stdout.readline() == "ready\n", running.stderr.read()
        for _ in range(seeded.choice((0, 1, 5, 40))):
            if running.stdout.readline() in ("", "end\n"):
                break
        running.send_signal(signal.SIGKILL)
        running.communicate()
        if attempt == 3:  # files go on changing
            write(folder, "memory/n3.md", "# Note\n\nAnother text.\n")
            (folder / "memory/n4.md").unlink()
            (folder / "memory/n5.md").rename(folder / "memory/five.md")
    with Workspace(folder, config(), embedder=WordEmbedder()) as workspace:
        workspace.index()
        assert dump(workspace) == dump_afresh(folder, tmp_path, WordEmbedder())
        assert workspace.status().pending == 0
