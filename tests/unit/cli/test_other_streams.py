"""The library and the command line write to whatever stands for standard output, also to nothing at all."""

from __future__ import annotations

import contextlib
import io
import json
import sys

import pytest

from recallite import Workspace, WorkspaceConfig
from recallite_server.main import main
from tests.unit.notes.support import write


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "notes", "a.md", "A zebra.")
    with Workspace(tmp_path / "notes", embedder="none") as workspace:
        workspace.index()
    return tmp_path / "notes"


def _library(folder):
    with Workspace(folder, WorkspaceConfig(progress=True), embedder="none") as workspace:
        workspace.index(force=True)
        assert len(workspace.search("zebra", min_score=0.0)) == 1
        assert workspace.status().files == 1


@pytest.mark.parametrize("stream", [io.StringIO, lambda: None], ids=["a StringIO", "none"])
def test_the_library_needs_no_terminal(folder, stream):
    with contextlib.redirect_stdout(stream()), contextlib.redirect_stderr(stream()):
        _library(folder)


def test_the_command_line_writes_to_a_stringio(folder):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        assert main(["workspace", "status", "-w", str(folder), "--embedder", "none", "--json"]) == 0
        assert main(["workspace", "search", "zebra", "-w", str(folder), "--nonsense"]) != 0
    assert json.loads(out.getvalue())["files"] == 1
    assert "nonsense" in err.getvalue()


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_the_command_line_runs_without_a_stream(folder, monkeypatch, capsys, name):
    """As under pythonw, or a service that was started without streams."""
    with monkeypatch.context() as patched:
        patched.setattr(sys, name, None)
        assert main(["workspace", "status", "-w", str(folder), "--embedder", "none"]) == 0
        assert main(["workspace", "index", "-w", str(folder), "--embedder", "none"]) == 0
        assert main(["no-such-verb"]) == 2
        assert getattr(sys, name) is None
