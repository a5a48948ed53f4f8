"""Before a tool touches a file or runs a command, and after it has failed, its host gets what memories name it."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.quality.mistakes import evaluate
from recallite import Memory, Settings
from recallite_server.hooks.events import answer
from recallite_server.hooks.projects import project_of
from recallite_server.warm.quick import quick_start
from tests.system.doors.hooking import Session, repository, shown, texts

TOLD = "src/tax.py must round half even, or the audit fails"


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "agent.db", settings=Settings(embedder="none")) as opened:
        yield opened


@pytest.fixture
def project(tmp_path):
    folder = repository(tmp_path / "billing", "https://github.com/ada/billing.git")
    for name in ("src/tax.py", "src/fees.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    return folder


def uses(memory, project, session="s2", host="claude-code", **fields):
    payload = {"session_id": session, "cwd": str(project), "hook_event_name": "PreToolUse", **fields}
    return answer(memory, "tool", host, payload, None)


def edits(memory, project, name="src/tax.py", session="s2"):
    return uses(memory, project, session, tool_name="Edit", tool_input={"file_path": str(project / name)})


def runs(memory, project, command, session="s2", **fields):
    return uses(memory, project, session, tool_name="Bash", tool_input={"command": command}, **fields)


def remember(memory, project, text, **fields):
    return memory.remember(text, scope=project_of(str(project)).scope, **fields).id


def test_a_session_is_told_once_what_names_the_file_that_it_edits(memory, project):
    remember(memory, project, TOLD)
    assert edits(memory, project, "src/fees.py") == ""
    assert texts(edits(memory, project)) == [TOLD]
    assert edits(memory, project) == ""
    assert texts(edits(memory, project, session="s3")) == [TOLD]


def test_at_most_two_memories_the_users_word_first_and_then_the_latest(memory, project):
    Session(memory, project, "s1").has("src/tax.py is read by the auditors", "tax.py fails for amounts below zero.")
    for number in range(3):
        remember(memory, project, f"src/tax.py needs rate {number}", created_at=f"2026-03-0{number + 1}")
    found = shown(edits(memory, project))
    assert [record["said_by"] for record in found] == ["user", "user"]
    assert found[0]["text"] == "src/tax.py is read by the auditors"


def test_what_the_session_itself_has_said_is_not_repeated(memory, project):
    session = Session(memory, project, "s1")
    session.has("src/tax.py is read by the auditors", "tax.py fails for amounts below zero.")
    assert edits(memory, project, session="s1") == ""


def test_a_memory_that_names_a_file_says_when_it_has_changed_since(memory, project):
    remember(memory, project, TOLD, created_at="2026-03-01")
    changed = datetime(2026, 4, 2, 12, tzinfo=UTC).timestamp()
    os.utime(project / "src" / "tax.py", (changed, changed))
    (record,) = shown(edits(memory, project))
    assert (record["date"], record["changed_since"]) == ("2026-03-01", {"src/tax.py": "2026-04-02"})
    earlier = changed - timedelta(days=60).total_seconds()
    os.utime(project / "src" / "tax.py", (earlier, earlier))
    (record,) = shown(edits(memory, project, session="s3"))
    assert "changed_since" not in record


def test_a_name_that_two_files_have_names_neither(memory, project):
    remember(memory, project, "tax.py must not import fees")
    (project / "src" / "eu").mkdir()
    (project / "src" / "eu" / "tax.py").touch()
    subprocess.run(["git", "-C", str(project), "add", "."], check=True)
    assert edits(memory, project) == ""


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/a/b/ src/tax.py",
        "cd . && cat ./src/tax.py | head",
        "black --include=src/tax.py",
        "sudo rm 'src/tax.py'",
    ],
)
def test_a_file_of_the_project_that_a_command_names_is_touched(memory, project, command):
    remember(memory, project, TOLD)
    remember(memory, project, "src/gone.py and /etc/hosts are never to be touched")
    assert texts(runs(memory, project, command)) == [TOLD]
    assert runs(memory, project, "sed -i s/a/b/ src/fees.py") == ""
    assert runs(memory, project, "cat src/gone.py /etc/hosts src") == ""


def test_a_command_and_an_error_are_named(memory, project):
    Session(memory, project, "s1").has(
        "git push hangs without the VPN", "`database is locked` means that the worker still runs."
    )
    assert runs(memory, project, "git status") == ""
    assert texts(runs(memory, project, "git add -A && git push origin main")) == ["git push hangs without the VPN"]
    error = "Exit code 1\nsqlite3.OperationalError: database is locked"
    assert texts(runs(memory, project, "pytest", error=error)) == [
        "`database is locked` means that the worker still runs."
    ]
    response = {"llmContent": "Output: sqlite3.OperationalError: database is locked\nExit Code: 1"}
    assert runs(memory, project, "pytest", "s3", tool_response=response)
    response = {"llmContent": "sqlite3.OperationalError: database is locked\nExit Code: 0"}
    assert runs(memory, project, "pytest", "s4", tool_response=response) == ""


@pytest.mark.parametrize(
    ("host", "tool", "given"),
    [
        ("codex", "apply_patch", {"command": "*** Begin Patch\n*** Update File: src/tax.py\n@@\n-a\n+b\n"}),
        ("gemini-cli", "replace", {"file_path": "src/tax.py", "old_string": "a", "new_string": "b"}),
        ("qwen-code", "edit", {"file_path": "src/tax.py"}), ("copilot-cli", "Edit", {"path": "src/tax.py"}),
        ("cursor", "Write", {"file_path": "src/tax.py"}), ("opencode", "edit", {"filePath": "src/tax.py"}),
        ("claude-code", "Edit", '{"file_path": "src/tax.py"}'),
    ],
)  # fmt: skip
def test_each_host_names_the_file_in_its_own_way(memory, project, host, tool, given):
    remember(memory, project, TOLD)
    assert texts(uses(memory, project, host=host, tool_name=tool, tool_input=given)) == [TOLD]


@pytest.mark.parametrize("given", [None, 3, [], {}, {"file_path": 3}, {"file_path": "\0"}, {"command": "; | &&"}, "x"])
def test_any_payload_of_a_tool_is_answered(memory, project, given):
    remember(memory, project, TOLD)
    assert uses(memory, project, tool_name="Edit", tool_input=given) == ""


def test_of_a_folder_without_git_the_files_are_looked_at(memory, tmp_path):
    folder = tmp_path / "plain"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "tax.py").touch()
    remember(memory, folder, "tax.py must not import fees")
    assert edits(memory, folder, "a/tax.py")
    (folder / "tax.py").touch()
    assert edits(memory, folder, "a/tax.py", session="s3") == ""


def test_documents_and_former_values_are_not_shown(memory, project):
    remember(memory, project, "The config is in src/tax.py", id="old")
    memory.update("old", text="The config is in src/fees.py")
    (project / "notes.md").write_text("# Notes\n\nsrc/tax.py is long")
    memory.knowledge.ingest([project / "notes.md"], scope=project_of(str(project)).scope)
    assert edits(memory, project) == ""


def test_a_tool_writes_nothing_and_is_answered_while_another_process_writes(memory, project):
    apsw = pytest.importorskip("apsw")
    remember(memory, project, TOLD)
    other = apsw.Connection(str(memory.path))
    other.execute("BEGIN IMMEDIATE")
    try:
        assert texts(edits(memory, project)) == [TOLD]
    finally:
        other.execute("ROLLBACK")
        other.close()


def test_the_resident_process_answers_a_tool_or_nobody_does(warm, project, monkeypatch):
    call = {"session_id": "s2", "cwd": str(project), "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": {"file_path": str(project / "src" / "tax.py")}}  # fmt: skip

    def ran():
        words = [*quick_start(), "--db", warm.path, "hook", "tool", "--patience", "60"]
        return subprocess.run(words, input=json.dumps(call).encode(), capture_output=True, check=True).stdout

    with Memory(warm.path, settings=Settings(embedder="none")) as memory:
        remember(memory, project, TOLD)
    monkeypatch.setenv("RECALLITE_WARM", "0")
    assert ran() == b""
    monkeypatch.delenv("RECALLITE_WARM")
    warm.start()
    output = json.loads(ran())["hookSpecificOutput"]
    assert (output["hookEventName"], texts(output["additionalContext"])) == ("PreToolUse", [TOLD])
    assert ran() == b""


def test_text_of_a_tool_shown_becomes_nobodys_word(memory, project):
    remember(memory, project, TOLD)
    text = edits(memory, project)
    count = len(memory.list())
    Session(memory, project, "s5").has(text, text)
    assert len(memory.list()) == count


def test_repeated_mistakes_are_met_and_other_calls_left_alone():
    figures, wrong = evaluate("report")
    assert figures["shown"] == 1, wrong
    assert figures["useless"] <= 3 / 48, wrong
