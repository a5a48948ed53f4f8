"""recallite workspace index, add, files, status, watch."""

from __future__ import annotations

import os
import signal

from tests.limits import LAST_RESORT_SECONDS, until
from tests.unit.conftest import start
from tests.unit.notes.support import write
from tests.unit.notes.test_workspace import folder  # noqa: F401


def test_watch_tells_each_run_until_it_is_interrupted(folder, tmp_path):
    config = write(tmp_path, "w.toml", "[sync]\nwatch_debounce_ms = 20\n")
    running = start("workspace", "watch", "-w", folder, "--config", config, "--json", db=tmp_path / "m.db",
                    RECALLITE_EMBEDDER="none")  # fmt: skip
    try:
        first = running.stdout.readline()
        assert b'"files_indexed":2' in first
        write(folder, "c.md", "New.")
        assert b'"files_indexed":1' in running.stdout.readline()
    finally:
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=LAST_RESORT_SECONDS)
    assert running.returncode == 130
    assert os.fsencode(folder) in err


def test_an_interrupted_index_is_completed_by_the_next(folder, tmp_path, run):
    for each in range(300):
        write(folder, f"memory/n{each}.md", f"# Note {each}\n\nText {each}.\n")
    running = start("workspace", "index", "-w", folder, db=tmp_path / "m.db", RECALLITE_EMBEDDER="none")
    until(lambda: (folder / ".recallite" / "index.db-wal").exists() or running.poll() is not None)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=LAST_RESORT_SECONDS)
    done = run("workspace", "index", "-w", folder, "--json")
    assert (done.code, done.json["files_scanned"]) == (0, 302)
    assert len(run("workspace", "files", "-w", folder, "--json").json) == 302
