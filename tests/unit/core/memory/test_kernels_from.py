"""The JIT kernels are loaded where there are records enough for them."""

from __future__ import annotations

import pytest

import recallite_kernels
from recallite import Memory, Settings
from recallite_notes.workspace import Workspace


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    found: list[bool] = []
    monkeypatch.setattr(recallite_kernels, "start_background", lambda compile: found.append(compile))
    return found


def test_a_small_memory_does_without_until_it_has_grown(begun, tmp_path, monkeypatch):
    monkeypatch.setenv("RECALLITE_KERNELS_FROM", "3")
    settings = Settings(embedder="none")
    with Memory(tmp_path / "memory.db", settings=settings) as memory:
        memory.remember_many(["one boat", "two boats"])
        for _ in range(2):
            assert memory.recall("boats")
        assert not begun
        memory.remember("three boats")
        for _ in range(3):
            assert memory.recall("boats")
        assert len(begun) == 1
    with Memory(tmp_path / "memory.db", settings=settings) as memory:
        for _ in range(2):
            assert memory.recall("boats")
        assert len(begun) == 2


def test_a_memory_loads_them_whatever_its_size_by_default(begun):
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        memory.recall("boats")
        assert not begun, "a process that asks once has its answer before they are loaded"
        memory.recall("boats")
        memory.recall("boats")
        assert len(begun) == 1


def test_many_queries_load_them_at_once(begun):
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        memory.recall_many(["boats", "ships"])
        assert len(begun) == 1


def test_a_large_index_waits_for_them_unless_its_snapshot_is_there(begun, tmp_path, monkeypatch):
    monkeypatch.setattr("recallite.engine._LARGE", 1)
    monkeypatch.setattr("recallite.index.snapshot._SMALLEST", 1)
    for times in (1, 1):
        with Memory(tmp_path / "memory.db", settings=Settings(embedder="none")) as memory:
            if not memory.count():
                memory.remember_many(["one boat", "two boats"])
            assert memory.recall("boats")
        assert len(begun) == times


def test_a_small_workspace_does_without(begun, tmp_path):
    (tmp_path / "note.md").write_text("# Boats\n\nThe boat lies in the harbour.\n")
    with Workspace(tmp_path, embedder="none") as workspace:
        workspace.index()
        assert workspace.search("boat")
    assert not begun
