"""`examples/plugin`, installed as a stranger's package, adds its importer and its command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import LAST_RESORT_SECONDS

PACKAGE = Path(__file__).resolve().parents[2] / "examples" / "plugin"
BOOKMARKS = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<DL><p>
    <DT><A HREF="https://sqlite.org/wal.html" ADD_DATE="1700000000">Write-ahead logging in SQLite</A>
    <DT><A HREF="https://arxiv.org/abs/2004.12832" ADD_DATE="1710000000">ColBERT: late interaction over BERT</A>
</DL><p>
"""


@pytest.fixture(scope="module")
def recallite(tmp_path_factory):
    """`recallite(...)` of an interpreter that sees the package; the result has `out`."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: it builds the package")
    folder = tmp_path_factory.mktemp("installed")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--target", folder, PACKAGE], check=True, timeout=LAST_RESORT_SECONDS)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "recallite", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": path, "RECALLITE_EMBEDDER": "none"},
            capture_output=True,
            text=True,
            timeout=LAST_RESORT_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_importer_and_the_command_of_another_package_work(recallite, tmp_path):
    bookmarks, db = tmp_path / "bookmarks.html", tmp_path / "m.db"
    bookmarks.write_text(BOOKMARKS)
    recallite("--db", db, "import", "--from", "bookmarks", bookmarks)
    assert "Write-ahead logging" in recallite("--db", db, "recall", "logging", "--json")
    longest = recallite("--db", db, "longest", "--limit", 1)
    assert longest.split(maxsplit=1) == ["35", "ColBERT: late interaction over BERT\n"]


def test_help_lists_them(recallite):
    assert "longest" in recallite("--help")
    assert "bookmarks" in recallite("import", "--from", "?")
