"""Synchronising from processes that are killed anywhere, and from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from recallite import Memory
from tests.unit.connect.sync_support import PLAIN, dump

# Kills itself at the given call of what changes files or ends a transaction.
_KILLED = """
import os, signal, sys
from contextlib import contextmanager
from recallite import Memory, Settings
from recallite.store.sqlite.store import SqliteStore
path, folder, left = sys.argv[1], sys.argv[2], int(sys.argv[3])

def counted(function):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

memory = Memory(path, settings=Settings(embedder="none"))
os.replace, os.fsync, os.unlink = counted(os.replace), counted(os.fsync), counted(os.unlink)
SqliteStore.atomic = counted(SqliteStore.atomic)
memory.transfer.sync(folder)
print("lived")
"""


def exchanged(path, folder):
    with Memory(path, settings=PLAIN) as memory:
        return memory.transfer.sync(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_run_loses_nothing_and_doubles_nothing(tmp_path):
    one, two, folder = tmp_path / "one.db", tmp_path / "two.db", tmp_path / "folder"
    folder.mkdir()
    with Memory(two, settings=PLAIN) as memory:
        memory.remember("The office closes at six", id="office")
    exchanged(two, folder)
    lived = False
    for call in range(1, 40, 3):
        with Memory(one, settings=PLAIN) as memory:
            stored = memory.remember(f"Room {call} is blue")
            if call % 2:
                memory.forget(stored.id)
            memory.remember(f"The office closes at {call}", id="office", on_existing="version")
        with Memory(two, settings=PLAIN) as memory:
            memory.remember(f"Desk {call} is free", id=f"desk-{call}")
        exchanged(two, folder)
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, one, folder, str(call)], stdout=subprocess.PIPE, check=False
        )
        lived = done.stdout == b"lived\n"
        assert lived or done.returncode == -signal.SIGKILL
        if lived:
            break
    assert lived, "the last run makes more calls than were tried"
    for path in (one, two, one, two):
        report = exchanged(path, folder)
    assert (report.sent, report.merged, report.problems) == (0, 0, ())
    with Memory(one, settings=PLAIN) as first, Memory(two, settings=PLAIN) as second:
        assert dump(first) == dump(second)
        assert first.get(f"desk-{call}").text == f"Desk {call} is free"
        assert not any(folder.rglob("*.part"))


def test_the_command(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()

    def recallite(store, *arguments):
        command = [sys.executable, "-m", "recallite", "--db", tmp_path / store, *arguments]
        environment = {**os.environ, "RECALLITE_EMBEDDER": "none"}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    stored = recallite("one.db", "remember", "Anna prefers tea").stdout.strip()
    assert "sent 1" in recallite("one.db", "sync", folder).stderr
    report = json.loads(recallite("two.db", "sync", folder, "--json").stdout)
    assert (report["merged"], len(report["devices"])) == (1, 2)
    assert "Anna prefers tea" in recallite("two.db", "get", stored).stdout
    shown = recallite("one.db", "sync", folder, "--status")
    assert "this device" in shown.stdout
    assert "yes" in shown.stdout
    missing = recallite("one.db", "sync", tmp_path / "unmounted")
    assert missing.returncode == 2
    assert "is no folder" in missing.stderr
