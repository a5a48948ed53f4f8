"""recallite workspace index, add, files, status, watch."""

from __future__ import annotations

import pytest

from tests.unit.notes.support import write


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "notes"
    write(made, "memory/a.md", "# One\n\nA thing.\n")
    write(made, "b.md", "Another thing.\n")
    return made


def test_index_tells_what_it_did(run, folder):
    done = run("workspace", "index", "-w", folder, "--json")
    assert (done.code, done.err) == (0, "")
    assert {"files_scanned": 2, "files_indexed": 2, "chunks_created": 2, "problems": []}.items() <= done.json.items()
    again = run("workspace", "index", "--workspace", folder)
    assert (again.code, again.err) == (0, "")
    assert "files_skipped\t2" in again.out.splitlines()


def test_index_without_a_folder_takes_this_one(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert run("workspace", "index", "--json").json["files_indexed"] == 2


def test_problems_go_to_stderr_and_the_rest_goes_on(run, folder):
    (folder / "link.md").symlink_to("b.md")
    done = run("workspace", "index", "-w", folder, "--json")
    assert done.code == 1
    assert done.json["files_indexed"] == 2
    assert done.err.startswith("link.md: it is a symbolic link")
    (folder / "link.md").unlink()
    write(folder, "latin.md", b"caf\xe9")
    done = run("workspace", "index", "-w", folder, "--json")
    assert done.code == 0  # it is indexed all the same
    assert done.err.startswith("latin.md: byte 3 is not UTF-8")


def test_add_takes_a_path_from_here_or_in_the_folder(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("workspace", "add", "notes/b.md", "-w", folder, "--json").json["files_indexed"] == 1
    assert run("workspace", "add", "memory/a.md", "-w", folder, "--json").json["files_indexed"] == 1
    outside = write(tmp_path, "secret.md", "secret")
    refused = run("workspace", "add", outside, "-w", folder)
    assert refused.code == 2
    assert "outside of the workspace" in refused.err
    assert run("workspace", "add", "gone.md", "-w", folder).code == 2


def test_files_are_listed_by_label(run, folder):
    assert run("workspace", "files", "-w", folder).code == 1
    run("workspace", "index", "-w", folder)
    assert run("workspace", "files", "-w", folder).out.splitlines() == [
        "external\t1\tno\tb.md", "memory\t1\tyes\tmemory/a.md",
    ]  # fmt: skip
    listed = run("workspace", "files", "-w", folder, "--source", "memory", "--json").json
    assert [each["path"] for each in listed] == ["memory/a.md"]


def test_status_says_what_is_not_indexed_yet(run, folder):
    run("workspace", "index", "-w", folder)
    write(folder, "c.md", "New.")
    status = run("workspace", "status", "-w", folder, "--json").json
    assert (status["files"], status["chunks"], status["dirty"], status["search_mode"]) == (2, 2, True, "fts-only")


@pytest.mark.parametrize("command", [["index"], ["files"], ["status"], ["add", "a.md"], ["search", "words"], ["watch"]])
def test_a_folder_that_is_mistyped_is_not_made(run, tmp_path, command):
    missing = tmp_path / "ntoes"
    refused = run("workspace", *command, "-w", missing)
    assert (refused.code, missing.exists()) == (2, False)
    assert "is no folder" in refused.err


def test_a_configuration_file_is_taken(run, folder, tmp_path):
    settings = write(tmp_path, "w.toml", f'workspace_dir = "{folder.as_posix()}"\nexclude = ["b.md"]\n')
    assert run("workspace", "index", "--config", settings, "--json").json["files_indexed"] == 1
    wrong = write(tmp_path, "x.toml", "excluded = []\n")
    refused = run("workspace", "index", "--config", wrong)
    assert refused.code == 2
    assert "'excluded' is no setting" in refused.err
