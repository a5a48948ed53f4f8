"""recallite workspace search and flush; recallite export and import of a folder."""

from __future__ import annotations

import json
import sys

import pytest

from tests.endpoint import said, serving


@pytest.fixture
def notes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "notes"
    (folder / "memory" / "coder").mkdir(parents=True)
    (folder / "memory" / "coder" / "stack.md").write_text(
        "# Stack\n\nIntro.\n\n## Cache\n\nFirst line.\nThe cache is Valkey.\n"
    )
    return folder


def test_search_prints_path_and_line_that_an_editor_opens(run, notes):
    result = run("workspace", "search", "which caches?", "-w", "notes")
    assert result.out == "notes/memory/coder/stack.md:5: ## Cache First line. The cache is Valkey.\n"
    result = run("workspace", "search", "valkey", "-w", "notes")
    assert result.out.startswith("notes/memory/coder/stack.md:8: ")


def test_search_as_json_and_with_options(run, notes):
    found = run("workspace", "search", "valkey", "-w", notes, "--json", "--source", "coder", "-n", "1").json
    assert [(each["path"], each["start_line"], each["end_line"]) for each in found] == [("memory/coder/stack.md", 5, 8)]
    assert run("workspace", "search", "valkey", "-w", notes, "--source", "nowhere").code == 1
    assert run("workspace", "search", "valkey", "-w", notes, "--strategy", "magic").code == 2
    assert run("workspace", "search", "valkey", "-w", notes, "--min-score", "7").code == 2
    assert (
        len(run("workspace", "search", "valkey", "-w", notes, "--snippet-chars", "10", "--json").json[0]["snippet"])
        <= 10
    )


def test_matched_words_are_marked_on_a_terminal_only(run, notes, monkeypatch):
    from rich.console import Console

    class Terminal:
        def __call__(self):
            return Console(file=sys.stdout, force_terminal=True, color_system="standard", highlight=False, width=80)

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("recallite_notes.commands.console", Terminal())
    marked = run("workspace", "search", "valkey", "-w", notes).out
    assert "\x1b[1;7mValkey\x1b[0m" in marked
    assert "notes/memory/coder/stack.md:8" in marked
    monkeypatch.undo()


def test_a_terminal_is_fed_no_control_characters(run, notes):
    (notes / "memory" / "evil.md").write_text("valkey \x1b[31mred\x07\n")
    out = run("workspace", "search", "valkey red", "-w", notes).out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_flush_reads_a_conversation_and_prints_what_it_wrote(run, notes, monkeypatch):
    talk = json.dumps([{"role": "user", "content": "We use Kafka."}])
    with serving() as server:
        monkeypatch.setenv("RECALLITE_LLM_BASE_URL", server.url)
        monkeypatch.setenv("RECALLITE_LLM_MODEL", "m")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        server.script = [said("- Kafka is the queue."), said("@@SILENT_REPLY@@")]
        assert run("workspace", "flush", "-w", notes, stdin=talk).out == "- Kafka is the queue.\n"
        (notes / "talk.json").write_text('{"messages": ' + talk + "}")
        result = run("workspace", "flush", notes / "talk.json", "-w", notes, "--json")
        assert (result.code, result.json) == (0, {"written": None})
    assert run("workspace", "search", "kafka", "-w", notes).code == 0
    assert run("workspace", "flush", "-w", notes, stdin="no json").code == 2
    assert run("workspace", "flush", "missing.json", "-w", notes).code == 2


def test_flush_without_a_model_says_what_to_set(run, notes, monkeypatch):
    monkeypatch.delenv("RECALLITE_LLM_BASE_URL", raising=False)
    monkeypatch.delenv("RECALLITE_LLM_MODEL", raising=False)
    result = run("workspace", "flush", "-w", notes, stdin="[]")
    assert result.code == 2
    assert "RECALLITE_LLM_BASE_URL" in result.err


def test_export_into_a_workspace_edit_and_import(run, remember, notes):
    id = remember("The queue is Kafka", "--scope", "/infra")
    export = ("export", notes / "memory", "--format", "markdown")
    result = run(*export, "--json")
    (path,) = result.json["written"]
    assert run("workspace", "search", "kafka", "-w", notes).out.startswith(f"notes/memory/{path}:")
    file = notes / "memory" / path
    file.write_text(file.read_text().replace("Kafka", "Pulsar"))
    assert run(*export).code == 1
    assert run("import", notes / "memory", "--json").json["updated"] == 1
    assert run("get", id, "--json").json["text"] == "The queue is Pulsar"
    assert run(*export).code == 0


def test_export_and_import_of_a_folder(run, remember, tmp_path):
    id = remember("The queue is Kafka")
    folder = tmp_path / "files"
    assert run("export", folder, "--format", "markdown", "--json").json["records"] == 1
    other = tmp_path / "other.db"
    assert run("import", folder, "--json", store=other).json["created"] == 1
    assert run("get", id, "--json", store=other).json["text"] == "The queue is Kafka"
    for file in folder.rglob("*.md"):
        file.unlink()
    gone = run("import", folder, "--json")
    assert gone.json["missing"] == [id]
    assert run("import", folder, "--forget-missing", "--yes", "--json").json["forgotten"] == 1
    assert run("get", id).code != 0
