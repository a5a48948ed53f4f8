"""Several threads and processes in one folder, and runs that are killed: nothing is lost, doubled or locked."""

from __future__ import annotations

import threading

import pytest

from recallite import Workspace
from tests.unit.core.memory.support import WordEmbedder
from tests.unit.notes.support import config, dump, dump_afresh, write


def fill(folder, files=60):
    for each in range(files):
        write(folder, f"memory/n{each}.md", f"# Note {each}\n\nText {each} says so.\n\n## More\n\nOf it, {each % 7}.\n")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "notes"


def test_threads_and_handles_index_one_folder(folder, tmp_path):
    fill(folder)
    failed = []

    def work(workspace):
        try:
            for _ in range(3):
                workspace.index(force=True)
                workspace.files()
                workspace.status()
        except BaseException as fault:
            failed.append(fault)

    with (
        Workspace(folder, config(), embedder=WordEmbedder()) as one,
        Workspace(folder, config(), embedder=WordEmbedder()) as two,
    ):
        threads = [threading.Thread(target=work, args=(each,)) for each in (one, two, one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert dump(one) == dump_afresh(folder, tmp_path, WordEmbedder())


def test_without_the_lock_runs_still_do_no_harm(folder, tmp_path, monkeypatch):
    """The lock spares double work; what keeps chunks from being doubled is the transaction of each file."""
    fill(folder)

    class Open:
        def held(self, timeout_seconds=None):
            import contextlib

            return contextlib.nullcontext(True)

    handles = [Workspace(folder, config(), embedder=WordEmbedder()) for _ in range(3)]
    failed = []

    def work(workspace):
        try:
            workspace._index._runs = Open()
            workspace.index()
        except BaseException as fault:
            failed.append(fault)

    threads = [threading.Thread(target=work, args=(each,)) for each in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert dump(handles[0]) == dump_afresh(folder, tmp_path, WordEmbedder())
    for each in handles:
        each.close()


def test_a_search_does_not_wait_for_long_for_another_run(folder, monkeypatch):
    fill(folder, 3)
    monkeypatch.setattr("recallite_notes.workspace._SEARCH_WAITS_SECONDS", 0.01)
    with Workspace(folder, embedder="none") as workspace, Workspace(folder, embedder="none") as other:
        workspace.index()
        write(folder, "new.md", "New.")
        with other._index.alone() as held:
            assert held
            assert not workspace._synchronise(0.01).complete
            workspace._sync_if_due()
        assert len(workspace.files()) == 3
        workspace._sync_if_due()
        assert len(workspace.files()) == 4
