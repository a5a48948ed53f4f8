"""An index that cannot be written, or is damaged while it is open: searches answer all the same, and it is said."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.limits import LAST_RESORT_SECONDS
from tests.unit.notes.support import index_all, write

_AS_NOBODY = """
import os, sys, tempfile
from recallite import Workspace
from recallite.errors import StoreError
with tempfile.TemporaryDirectory() as other, Workspace(other, embedder="none") as workspace:
    workspace.search("what is imported later may be readable to root alone")
    workspace.status()
if os.geteuid() == 0:
    os.seteuid(65534)
with Workspace(sys.argv[1], embedder="none") as workspace:
    found = workspace.search("zebra", min_score=0.0)
    print([each.path for each in found], any("cannot be written" in each for each in found.problems))
    print("cannot be written" in workspace.status().sync_problem, workspace.status().chunks, len(workspace.files()))
    for verb in (workspace.index, lambda: workspace.add("a.md")):
        try:
            verb()
        except StoreError as fault:
            print(fault.reason == "read_only" and ".recallite" in str(fault), "db_path" in str(fault))
"""


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "notes", "a.md", "A zebra.")
    return tmp_path / "notes"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work otherwise there")
@pytest.mark.parametrize("what", ["file", "folder", "both", "lock"])
def test_an_index_that_cannot_be_written_is_searched(what):
    """Permissions do not bind root, so root opens the folder as nobody."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, "a.md", "A zebra.")
        index_all(folder)
        own = folder / ".recallite"
        for file in own.iterdir():
            file.chmod(
                0o444 if what == "both" or what in file.name or (what, file.name) == ("file", "index.db") else 0o666
            )
        own.chmod(0o555 if what in ("folder", "both") else 0o777)
        folder.chmod(0o755)
        before = {file.name: file.read_bytes() for file in own.iterdir()}
        done = subprocess.run(
            [sys.executable, "-c", _AS_NOBODY, place],
            capture_output=True,
            text=True,
            check=False,
            timeout=LAST_RESORT_SECONDS,
        )
        own.chmod(0o755)
        assert done.stdout.splitlines() == ["['a.md'] True", "True 1 1", "True True", "True True"], done.stderr
        if what in ("folder", "both"):
            assert {file.name: file.read_bytes() for file in own.iterdir()} == before
