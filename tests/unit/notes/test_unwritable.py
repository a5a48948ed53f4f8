"""An index that cannot be written, or is damaged while it is open: searches answer all the same, and it is said."""

from __future__ import annotations

import os

import apsw
import pytest

from recallite import Workspace, WorkspaceConfig
from recallite.errors import StoreCorrupt, StoreError
from recallite.store.sqlite.faults import translated
from recallite_notes.search import search
from tests.raising import raises
from tests.unit.notes.support import index_all, write


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "notes", "a.md", "A zebra.")
    return tmp_path / "notes"


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
            with raises(StoreError, "read_only", match=r"index\.db\.lock cannot be written"):
                verb()


def test_a_full_disk_stops_no_search(folder, monkeypatch):
    with Workspace(folder, embedder="none") as workspace:
        workspace.index()

        def full(*arguments, **options):
            raise StoreError("the disk is full", "full")

        monkeypatch.setattr("recallite_notes.workspace.synchronise", full)
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
        sound, calls = search, []

        def damaged(*arguments, **options):
            calls.append((arguments, options))
            if len(calls) == 1:
                raise StoreCorrupt("a page is wrong")
            return sound(*arguments, **options)

        monkeypatch.setattr("recallite_notes.workspace.search", damaged)
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
