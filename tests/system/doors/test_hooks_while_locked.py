"""While another process holds the write lock, hooks show the same, and turns are kept until they can be stored."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from recallite import Memory, Settings
from recallite.errors import StoreError
from recallite_server.hooks import kept, turns
from recallite_server.hooks.events import answer
from recallite_server.hooks.projects import USER, project_of
from recallite_server.warm.quick import command, quick_start
from tests.limits import until
from tests.system.doors.hooking import Session, repository, texts

HOSTS = ("gemini-cli", "cursor", "opencode")
SETTINGS = Settings(embedder="none", busy_timeout_ms=20)


def keeps_turns(memory):
    return bool(kept.KeptTurns(memory).names())


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "agent.db", settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def project(tmp_path):
    return repository(tmp_path / "orchard", "https://github.com/grace/orchard.git")


@contextmanager
def locked(path):
    """Hold the write lock as another process does."""
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def said(memory, folder, prompt, response="", *, host="gemini-cli", moment="1", session="s1"):
    payload = {"session_id": session, "cwd": str(folder), "prompt": prompt, "prompt_response": response,
               "timestamp": moment}  # fmt: skip
    return answer(memory, "turn", host, payload, None)


def stored(memory):
    return [record.text for record in memory.list(order="oldest", limit=None)]


def files(folder):
    return sorted(path for path in Path(folder).rglob("*.turn") if path.is_file())


def test_prompts_and_briefings_are_the_same_and_write_nothing(memory, project):
    memory.remember("The press stands in the barn", scope=project_of(str(project)).scope)
    memory.remember("Always answer in one sentence.", scope=USER)

    def shown(name):
        begun, asked = Session(memory, project, f"{name} begins"), Session(memory, project, f"{name} asks")
        return begun.fires("SessionStart"), asked.fires("UserPromptSubmit", prompt="Where does the press stand?")

    expected = shown("free")
    assert all(expected)
    before = memory.store.stats().sequence, memory.sessions.list()
    with locked(memory.path):
        assert shown("locked") == expected
    assert (memory.store.stats().sequence, memory.sessions.list()) == before


def test_what_was_shown_is_known_to_the_next_hook(memory, project):
    memory.remember("The press stands in the barn", scope=project_of(str(project)).scope)
    with locked(memory.path):
        session = Session(memory, project, "s1")
        asks = {"prompt": "Where does the press stand?"}
        assert texts(session.fires("UserPromptSubmit", **asks)) == ["The press stands in the barn"]
        assert session.fires("UserPromptSubmit", **asks) == ""
        session.fires("SessionStart", source="compact")
        assert session.fires("UserPromptSubmit", **asks) == ""  # it was in the briefing


def test_where_nothing_can_be_noted_it_is_shown_again(memory, project, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    memory.remember("The press stands in the barn", scope=project_of(str(project)).scope)
    session = Session(memory, project, "s1")
    for _ in range(2):
        assert texts(session.fires("UserPromptSubmit", prompt="Where does the press stand?"))


@pytest.mark.parametrize("host", HOSTS)
def test_turns_are_kept_and_stored_later_in_order_and_once(memory, project, host):
    with locked(memory.path):
        for number in range(3):
            said(memory, project, f"Row {number} bears quinces", f"Noted: row {number}.", host=host, moment=f"{number}")
        said(memory, project, "Row 2 bears quinces", "Noted: row 2.", host=host, moment="2")  # told twice
    assert (stored(memory), keeps_turns(memory)) == ([], True)
    said(memory, project, "Row 3 bears medlars", host=host, moment="3")
    expected = [text for number in range(3) for text in (f"Row {number} bears quinces", f"Noted: row {number}.")]
    assert stored(memory) == [*expected, "Row 3 bears medlars"]
    assert not keeps_turns(memory)


def test_a_transcript_is_read_again_later(memory, project):
    session = Session(memory, project, "s1")
    session.user("Row 4 bears pears")
    with locked(memory.path):
        session.fires("Stop")
    assert (stored(memory), keeps_turns(memory)) == ([], True)
    Session(memory, project, "s2").has("Row 5 bears plums")  # the turn of another session
    assert stored(memory) == ["Row 4 bears pears", "Row 5 bears plums"]


def test_a_crash_after_a_turn_was_stored_stores_it_once(memory, project, monkeypatch):
    with monkeypatch.context() as crash:
        crash.setattr(kept.Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(OSError("the machine stopped")))
        said(memory, project, "Row 6 bears figs")
    assert (stored(memory), keeps_turns(memory)) == (["Row 6 bears figs"], True)
    said(memory, project, "Row 7 bears figs", moment="2")
    assert (stored(memory), keeps_turns(memory)) == (["Row 6 bears figs", "Row 7 bears figs"], False)


def test_a_full_disk_in_the_middle_loses_none_of_the_turns(memory, project, monkeypatch):
    session, remember, calls = Session(memory, project, "s1"), Memory.remember, []

    def full(self, *arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise StoreError("the disk is full", "full")
        return remember(self, *arguments, **options)

    monkeypatch.setattr(Memory, "remember", full)
    session.has("Row 8 bears cherries", "I planted two of them.")
    assert (stored(memory), keeps_turns(memory)) == ([], True)
    session.has("Row 9 bears apples")
    assert stored(memory) == ["Row 8 bears cherries", "I planted two of them.", "Row 9 bears apples"]


def test_what_is_kept_is_private_and_redacted(memory, project, tmp_path):
    secret = "ghp_" + "Zq7" * 12
    with locked(memory.path):
        said(memory, project, f"The token of the press is {secret}")
    (path,) = files(os.environ["XDG_DATA_HOME"])
    assert secret not in path.read_text("utf-8")
    if sys.platform != "win32":
        assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]


def test_an_encrypted_store_keeps_turns_encrypted(tmp_path, project):
    try:
        memory = Memory(tmp_path / "sealed.db", settings=SETTINGS, key="an orchard wall")
    except StoreError:
        pytest.skip("the ciphers are not installed")
    with memory:
        with locked_by_another_handle(memory):
            said(memory, project, "Row 10 bears walnuts")
        (path,) = files(os.environ["XDG_DATA_HOME"])
        assert b"walnuts" not in path.read_bytes()
        said(memory, project, "Row 11 bears hazels", moment="2")
        assert stored(memory) == ["Row 10 bears walnuts", "Row 11 bears hazels"]


@contextmanager
def locked_by_another_handle(memory):
    with Memory(memory.path, settings=SETTINGS, key="an orchard wall") as other, other.transaction():
        yield


def test_a_damaged_file_keeps_nothing_back(memory, project):
    with locked(memory.path):
        said(memory, project, "Row 12 bears sloes")
        said(memory, project, "Row 13 bears sloes", moment="2")
    first, second = files(os.environ["XDG_DATA_HOME"])
    first.write_bytes(first.read_bytes()[:40])
    said(memory, project, "Row 14 bears sloes", moment="3")
    assert stored(memory) == ["Row 13 bears sloes", "Row 14 bears sloes"]
    assert not second.exists()


def test_more_than_may_be_kept_is_refused_and_stored_at_once_if_possible(memory, project, monkeypatch):
    monkeypatch.setattr(kept, "_MOST_TURNS", 2)
    with locked(memory.path):
        for number in range(2):
            said(memory, project, f"Row {number} bears grapes", moment=f"{number}")
        with pytest.raises(StoreError, match="locked"):
            said(memory, project, "Row 2 bears grapes", moment="2")
    assert len(files(os.environ["XDG_DATA_HOME"])) == 2
    said(memory, project, "Row 3 bears grapes", moment="3")
    assert sorted(stored(memory)) == [f"Row {number} bears grapes" for number in (0, 1, 3)]


def test_another_who_stores_them_already_is_not_joined(memory, project):
    with locked(memory.path):
        said(memory, project, "Row 15 bears limes")
    (path,) = files(os.environ["XDG_DATA_HOME"])
    with kept.FolderLock(path.parent / "lock").held(0) as ours:
        assert ours
        turns.store_turns(memory, 0)
        assert keeps_turns(memory)
    turns.store_turns(memory, 0)
    assert stored(memory) == ["Row 15 bears limes"]


def run_hook(path, event, payload, *options, start=None):
    words = [*(start or quick_start()), "--db", str(path), "hook", event, *options]
    return subprocess.run(words, input=json.dumps(payload).encode(), capture_output=True, check=False)


@pytest.mark.parametrize("event", ["turn", "session-start"])
def test_the_command_stores_what_is_kept_once_the_store_is_free(tmp_path, project, monkeypatch, event):
    monkeypatch.setenv("RECALLITE_WARM", "0")
    settings = tmp_path / "settings.toml"
    settings.write_text('embedder = "none"\nbusy_timeout_ms = 20\n')
    monkeypatch.setenv("RECALLITE_SETTINGS", str(settings))
    path, payload = tmp_path / "agent.db", {"session_id": "s1", "cwd": str(project), "source": "startup"}
    with Memory(path, settings=SETTINGS) as memory:
        with locked(path):
            if event == "turn":
                turn = {**payload, "prompt": "Row 16 bears dates", "timestamp": "1"}
                assert run_hook(path, "turn", turn, "--host", "gemini-cli").returncode == 0
                until(lambda: keeps_turns(memory))
            else:
                said(memory, project, "Row 16 bears dates")
        if event == "session-start":
            run_hook(path, event, payload, "--host", "gemini-cli", "--patience", "60", start=command([]))
        until(lambda: stored(memory) == ["Row 16 bears dates"])


def test_a_turn_is_stored_once_a_store_can_be_opened_again(tmp_path, project, monkeypatch):
    monkeypatch.setenv("RECALLITE_WARM", "0")
    settings = tmp_path / "settings.toml"
    settings.write_text('embedder = "none"\nbusy_timeout_ms = 20\n')
    monkeypatch.setenv("RECALLITE_SETTINGS", str(settings))
    path = tmp_path / "agent.db"
    Memory(path, settings=SETTINGS).close()
    alone = apsw.Connection(str(path))
    alone.pragma("locking_mode", "exclusive")
    alone.execute("BEGIN IMMEDIATE; COMMIT").fetchall()
    turn = {"session_id": "s1", "cwd": str(project), "prompt": "Row 18 bears lemons", "timestamp": "1"}
    words = [*command([]), "--db", str(path), "hook", "turn", "--host", "gemini-cli", "--wait"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as hook:
        hook.stdin.write(json.dumps(turn).encode())
        hook.stdin.close()
        with pytest.raises(subprocess.TimeoutExpired):
            hook.wait(4)  # it tries again
        alone.close()
    with Memory(path, settings=SETTINGS) as memory:
        assert stored(memory) == ["Row 18 bears lemons"]


def test_the_resident_process_answers_at_once_and_stores_later(warm, project):
    warm.start()
    with Memory(warm.path, settings=SETTINGS) as memory:
        run_hook(warm.path, "session-start", {"session_id": "s1", "cwd": str(project)})
        with locked(warm.path):
            turn = {"session_id": "s1", "cwd": str(project), "prompt": "Row 17 bears kiwis", "timestamp": "1"}
            run_hook(warm.path, "turn", turn, "--host", "opencode", "--patience", "60")
            until(lambda: keeps_turns(memory))
        until(lambda: stored(memory) == ["Row 17 bears kiwis"])
