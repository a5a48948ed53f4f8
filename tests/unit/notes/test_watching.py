"""The watcher and the interval: what other programs change is indexed by itself, and no failure ends that."""

from __future__ import annotations

import sys
import threading

import pytest

from recallite import Workspace
from recallite.errors import InvalidInput
from recallite_notes import indexing, note_files
from tests.limits import until
from tests.unit.notes.support import config, write

QUICK = {"sync": {"on_search": False, "watch_debounce_ms": 20}}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "notes"


@pytest.fixture
def watched(folder):
    """A workspace that watches, and the results of its runs; one run is done."""
    write(folder, "memory/a.md", "One thing.")
    results = []
    with Workspace(folder, config(**QUICK), embedder="none") as workspace:
        workspace.start_watching(results.append)
        until(lambda: len(results) > 0)
        workspace.results = results
        yield workspace


def paths(workspace):
    return [each.path for each in workspace.files()]


def test_what_was_there_before_is_indexed_at_once(watched):
    assert paths(watched) == ["memory/a.md"]
    assert watched.status().watcher_active
    assert not watched.status().interval_active


def test_what_another_program_changes_is_indexed(watched, folder):
    write(folder, "memory/new/b.md", "Another thing.")
    until(lambda: paths(watched) == ["memory/a.md", "memory/new/b.md"])
    (folder / "memory/a.md").rename(folder / "c.md")
    until(lambda: paths(watched) == ["c.md", "memory/new/b.md"])
    (folder / "memory").rename(folder / "elsewhere")
    until(lambda: paths(watched) == ["c.md", "elsewhere/new/b.md"])
    (folder / "c.md").unlink()
    until(lambda: paths(watched) == ["elsewhere/new/b.md"])


def test_other_files_and_hidden_ones_concern_nobody(folder):
    watcher = indexing.Watcher(config(workspace_dir=str(folder)), lambda: pytest.fail("no run"))
    write(folder, "a.txt", "text")
    write(folder, "a.md", "text")
    write(folder, ".git/b.md", "text")
    concerned = [
        name
        for name in ("a.txt", "a.md", "gone.md", "gone", ".git/b.md", ".recallite/index.db", ".x.md")
        if watcher._concerns(None, str(folder / name))
    ]
    assert concerned == ["a.md", "gone.md", "gone"]


def test_a_failure_shows_in_status_and_does_not_end_the_watcher(watched, folder, monkeypatch):
    worked = watched._watcher._sync

    def fail():
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(watched._watcher, "_sync", fail)
    write(folder, "b.md", "text")
    until(lambda: watched.status().sync_problem is not None)
    assert watched.status().sync_problem == "RuntimeError: the disk is on fire"
    assert watched.status().watcher_active
    monkeypatch.setattr(watched._watcher, "_sync", worked)
    write(folder, "c.md", "text")
    until(lambda: paths(watched) == ["b.md", "c.md", "memory/a.md"])
    until(lambda: watched.status().sync_problem is None)


def test_stopped_is_stopped_and_can_be_started_again(watched, folder):
    watched.start_watching()
    watched.stop_watching()
    watched.stop_watching()
    assert not watched.status().watcher_active
    write(folder, "b.md", "text")
    again = []
    watched.start_watching(again.append)
    until(lambda: len(again) > 0)
    assert paths(watched) == ["b.md", "memory/a.md"]


def test_close_ends_the_threads(folder):
    before = set(threading.enumerate())
    workspace = Workspace(folder, config(sync={"watch": True, "interval_minutes": 5}), embedder="none")
    assert {each.name for each in set(threading.enumerate()) - before} == {"recallite-watch", "recallite-interval"}
    assert workspace.status().interval_active
    workspace.close()
    assert not any(each.name.startswith("recallite-") for each in set(threading.enumerate()) - before)


def test_a_configuration_that_watches_starts_by_itself(folder):
    write(folder, "a.md", "text")
    with Workspace(folder, config(sync={"watch": True, "watch_debounce_ms": 20}), embedder="none") as workspace:
        until(lambda: paths(workspace) == ["a.md"])


def test_the_interval_indexes_every_so_many_minutes_and_survives_a_failure(folder):
    """The thread is a plain loop on an event: this one counts how long it is waited for, and ends after three times."""
    waited, ran = [], []

    class Stop:
        def wait(self, seconds):
            waited.append(seconds)
            return len(waited) > 3

    def sync():
        ran.append(1)
        if len(ran) == 1:
            raise RuntimeError("not now")

    watcher = indexing.Watcher(config(workspace_dir=str(folder), sync={"interval_minutes": 7}), sync)
    watcher._repeat(Stop())
    assert (waited, len(ran)) == ([420] * 4, 3)
    assert watcher.problem == "RuntimeError: not now"


def test_watchfiles_that_is_missing_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with Workspace(folder, config(), embedder="none") as workspace, pytest.raises(InvalidInput) as said:
        workspace.start_watching()
    assert "pip install '.[watch]'" in str(said.value)


def test_an_edit_is_found_before_the_debounce_where_searches_sync(folder):
    """External edits are missed by memweave's on-search sync."""
    write(folder, "a.md", "text")
    slow = config(sync={"on_search": True, "watch_debounce_ms": 3_600_000})
    with Workspace(folder, slow, embedder="none") as workspace:
        workspace.start_watching()
        until(lambda: workspace._watcher.may_be_trusted)
        write(folder, "b.md", "text")
        until(lambda: workspace._sync_if_due() is None and paths(workspace) == ["a.md", "b.md"])


@pytest.fixture
def listings(monkeypatch):
    """The listings of all note_files, counted."""
    listing_of, counted = note_files.Selection.listing, []

    def listing(self):
        counted.append(1)
        return listing_of(self)

    monkeypatch.setattr(note_files.Selection, "listing", listing)
    return counted


def test_while_a_watcher_runs_searches_look_at_no_file(folder, listings, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("recallite_notes.indexing.monotonic", lambda: clock[0])
    write(folder, "a.md", "A zebra.")
    with Workspace(folder, embedder="none") as workspace:
        workspace.search("zebra", min_score=0.0)
        workspace.start_watching()
        until(lambda: workspace._watcher.may_be_trusted)
        listings.clear()
        for _ in range(5):
            assert len(workspace.search("zebra", min_score=0.0)) == 1
        assert listings == []
        write(folder, "b.md", "Another zebra.")  # before its debounce, which this clock never reaches
        until(lambda: len(workspace.search("zebra", min_score=0.0)) == 2)
        assert not workspace._watcher.may_be_trusted


def test_a_watcher_is_not_trusted_while_it_indexes(folder):
    write(folder, "a.md", "A zebra.")
    with Workspace(folder, embedder="none") as workspace:
        watcher = workspace._watcher
        workspace.start_watching()
        until(lambda: watcher.may_be_trusted)
        index, during = watcher._sync, []
        watcher._sync = lambda: (during.append(watcher.may_be_trusted), index())[1]
        write(folder, "b.md", "Another zebra.")
        until(lambda: during)
        assert not during[0]


@pytest.mark.parametrize("why", ["long ago", "a problem", "stopped", "a failed run"])
def test_a_watcher_is_not_trusted_for_good(folder, monkeypatch, why):
    """Changes that it tells nothing of are found all the same."""
    write(folder, "a.md", "A zebra.")
    with Workspace(folder, embedder="none") as workspace:
        workspace.start_watching()
        until(lambda: workspace._watcher.may_be_trusted)
        monkeypatch.setattr(workspace._watcher, "_concerns", lambda *_: False)
        match why:
            case "long ago":
                workspace._watcher.listed_at -= 5.0
            case "a problem":
                workspace._watcher.problem = "too many folders are watched"
            case "stopped":
                workspace.stop_watching()
            case "a failed run":
                monkeypatch.setattr(workspace._watcher, "_sync", lambda: 1 / 0)
                workspace._watcher._run()
                workspace._watcher.problem = None
        write(folder, "b.md", "Another zebra.")
        assert len(workspace.search("zebra", min_score=0.0)) == 2
