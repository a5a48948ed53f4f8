"""Sessions are followed as they are written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from, watch_from
from recallite_connect.importers.claude_code import sessions
from recallite_connect.importers.sources import Sessions
from tests.limits import LAST_RESORT_SECONDS

pytest.importorskip("watchfiles", reason="watchfiles is not installed")


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "projects" / "-home-ada" / "s1.jsonl"
    made.parent.mkdir(parents=True)
    made.write_bytes(typed(1) + typed(2))
    return made


def typed(number):
    said = {"role": "user", "content": f"prompt {number}"}
    return json.dumps({"type": "user", "uuid": f"u{number}", "message": said}).encode() + b"\n"


def append(path, raw):
    with path.open("ab") as stream:
        stream.write(raw)


def ids(entries):
    return [each.record.id for each in entries]


def test_only_new_lines_are_read_and_a_half_one_waits(path):
    found = sessions(path.parent.parent)
    assert ids(found.entries(growing=True)) == ["u1", "u2"]
    append(path, typed(3)[:20])
    assert ids(found.entries(growing=True)) == []
    append(path, typed(3)[20:] + typed(4))
    (third, fourth) = found.entries(growing=True)
    assert (third.record.id, third.record.position, third.line) == ("u3", 2, 3)
    assert (fourth.record.id, fourth.record.position, fourth.line) == ("u4", 3, 4)
    assert ids(found.entries(growing=True)) == []


def test_a_file_that_is_written_anew_is_read_from_its_beginning(path):
    found = sessions(path)
    assert ids(found.entries(growing=True)) == ["u1", "u2"]
    path.write_bytes(typed(9))
    assert ids(found.entries(growing=True)) == ["u9"]


def test_a_longer_file_in_the_place_of_another_is_read_from_its_beginning(path):
    found = sessions(path)
    assert ids(found.entries(growing=True)) == ["u1", "u2"]
    other = path.with_suffix(".new")
    other.write_bytes(typed(700) + typed(800) + typed(900))
    other.replace(path)
    assert ids(found.entries(growing=True)) == ["u700", "u800", "u900"]


def test_a_file_that_cannot_be_read_is_reported_once(path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    found = sessions(path)
    with monkeypatch.context() as patched:
        patched.setattr(sys.modules[Sessions.__module__], "open_regular", refuse)
        assert [each.reason for each in found.entries(growing=True)] == ["it cannot be read: Permission denied"]
        assert list(found.entries(growing=True)) == []
    assert ids(found.entries(growing=True)) == ["u1", "u2"]


def test_a_folder_that_cannot_be_read_is_reported_once(path, refusing_folder):
    found = sessions(path.parents[1])
    assert ids(found.entries(growing=True)) == ["u1", "u2"]
    inner = path.parents[1] / "-home-bob"
    inner.mkdir()
    with refusing_folder(inner):
        told = [(each.path, each.reason) for each in found.entries(growing=True)]
        assert told == [("-home-bob", "it cannot be read: Permission denied")]
        assert list(found.entries(growing=True)) == []
    assert list(found.entries(growing=True)) == []


def test_what_is_written_is_stored_until_stop(memory, path):
    stop = threading.Event()
    counts = []

    def imported(done):
        counts.append(done.created)
        if done.created == 2:
            append(path, typed(3) + typed(4)[:10])
        elif done.created == 3:
            append(path, typed(4)[10:])
            (path.parent / "s2.jsonl").write_bytes(typed(5))
        elif done.created == 5:
            stop.set()

    watchdog = threading.Timer(60, stop.set)
    watchdog.start()
    done = watch_from(memory, "claude-code", path.parent.parent, scope="/live", on_import=imported, stop=stop)
    watchdog.cancel()
    assert (done.created, done.unchanged, done.troubles) == (5, 0, ())
    assert counts[0] == 2
    assert {each.text for each in memory.list(scope="/live")} == {f"prompt {number}" for number in range(1, 6)}
    assert import_from(memory, "claude-code", path.parent.parent).unchanged == 5


def test_ctrl_c_ends_with_the_counts(memory, path):
    def interrupt(done):
        raise KeyboardInterrupt

    assert watch_from(memory, "claude-code", path, on_import=interrupt).created == 2


def test_other_sources_cannot_be_watched(memory, path):
    with pytest.raises(InvalidInput, match="files grow of claude-code, codex"):
        watch_from(memory, "chatgpt", path)


@pytest.mark.skipif(os.name == "nt", reason="a process of Windows is not sent SIGINT alone")
def test_the_command_ends_cleanly_on_ctrl_c(path, tmp_path):
    db = str(tmp_path / "agent.db")
    command = [
        sys.executable,
        "-m",
        "recallite",
        "--db",
        db,
        "import",
        "--from",
        "claude-code",
        "--watch",
        "--json",
    ]
    with subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        told = running.stderr.readline()
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=LAST_RESORT_SECONDS)
    assert told == "2 imported, Ctrl-C ends\n"
    assert running.returncode == 0
    assert json.loads(out)["created"] == 2
    with Memory(db) as stored:
        assert stored.count() == 2
