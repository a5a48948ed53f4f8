"""An index that cannot be written, or is damaged while it is open: searches answer all the same, and it is said."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest

from recallite import Workspace, WorkspaceConfig
from recallite.errors import StoreCorrupt, StoreFull, StoreReadOnly
from recallite.notes import workspace as facade
from recallite.store.sqlite.faults import translated
from tests.limits import LAST_RESORT_SECONDS
from tests.workspace.support import index_all, write

_AS_NOBODY = """
import os, sys, tempfile
from recallite import Workspace
from recallite.errors import StoreReadOnly
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
        except StoreReadOnly as fault:
            print(".recallite" in str(fault), "db_path" in str(fault))
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


def test_a_lock_that_cannot_be_opened_stops_no_search(folder):
    index_all(folder)
    lock = folder / ".recallite" / "index.db.lock"
    lock.unlink()
    lock.mkdir()
    with Workspace(folder, embedder="none") as workspace:
        found = workspace.search("zebra", min_score=0.0)
        assert [each.path for each in found] == ["a.md"]
        assert "index.db.lock cannot be written" in found.problems[0]
        for verb in (workspace.index, lambda: workspace.add("a.md")):
            with pytest.raises(StoreReadOnly, match=r"index\.db\.lock cannot be written"):
                verb()


def test_a_full_disk_stops_no_search(folder, monkeypatch):
    with Workspace(folder, embedder="none") as workspace:
        workspace.index()

        def full(*arguments, **options):
            raise StoreFull("the disk is full")

        monkeypatch.setattr(facade, "synchronise", full)
        found = workspace.search("zebra", min_score=0.0)
        assert [each.path for each in found] == ["a.md"]
        assert "the disk is full" in found.problems[0]
        assert "the disk is full" in workspace.status().sync_problem
        monkeypatch.undo()
        assert workspace.search("zebra", min_score=0.0).problems == ()


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_garbage_over_an_open_index_makes_it_afresh(folder, ending):
    for each in range(60):
        write(folder, f"n{each}.md", f"# Note {each}\n\n" + "Some text of a note. " * 40)
    index_all(folder)
    with Workspace(folder, embedder="none") as workspace:
        workspace.index(force=True)
        path = str(folder / ".recallite" / "index.db") + ending
        with open(path, "r+b" if not ending else "wb") as file:
            file.write(os.urandom(50_000))
        write(folder, "new.md", "A gnu.")
        assert [each.path for each in workspace.search("gnu", min_score=0.0)] == ["new.md"]
        assert workspace.search("zebra", min_score=0.0)[0].path == "a.md"
        assert workspace.index().problems == ()
        assert workspace.status().files == 62


@pytest.mark.parametrize("on_search", [True, False])
def test_a_search_that_finds_the_index_damaged_answers_or_says_so(folder, monkeypatch, on_search):
    """A fresh index is empty: to answer from that as if nothing had been found would be wrong."""
    index_all(folder)
    with Workspace(folder, WorkspaceConfig.from_dict({"sync": {"on_search": on_search}}), embedder="none") as workspace:
        sound, calls = facade.search, []

        def damaged(*arguments):
            calls.append(arguments)
            if len(calls) == 1:
                raise StoreCorrupt("a page is wrong")
            return sound(*arguments)

        monkeypatch.setattr(facade, "search", damaged)
        found = workspace.search("zebra", min_score=0.0)
        if on_search:
            assert [each.path for each in found] == ["a.md"]
            (problem,) = found.problems
            assert problem.startswith("the index was damaged (a page is wrong) and a new one is made")
        else:
            assert "the index was damaged" in found.problems[0]


def test_a_read_that_ends_too_soon_is_damage():
    """SQLite calls it a disk I/O error, as it does a disk that fails."""
    fault = apsw.IOError("disk I/O error")
    fault.extendedresult = apsw.SQLITE_IOERR_SHORT_READ
    with pytest.raises(StoreCorrupt), translated("notes.db"):
        raise fault
