"""Memories as files of a workspace, both ways, and found there with file and line."""

from __future__ import annotations

import pytest

from recallite import Workspace
from tests.unit.core.memory.support import WordEmbedder

MARCH = "2026-03-21T14:02:11Z"


def export(workspace, memory, **fields):
    return memory.transfer.export_folder(workspace.folder / "memory", **fields)


@pytest.fixture
def workspace(tmp_path):
    with Workspace(tmp_path / "notes", embedder="none") as opened:
        yield opened


def test_exported_memories_are_found_with_file_and_line(workspace, on_disk):
    """Issue 5: the workspace's own index of the exported files finds each memory by search."""
    texts = ["The cache is Valkey", "The queue is Kafka", "# A heading\n\nDeploys happen on Tuesday"]
    for text in texts:
        on_disk.remember(text, scope="/coder", tags=["stack"], created_at=MARCH)
    assert export(workspace, on_disk).records == 3
    for query, text in zip(["valkey", "kafka", "tuesday deploys"], texts, strict=True):
        found = workspace.search(query, source_filter="coder")[0]
        lines = (workspace.folder / found.path).read_text().split("\n")
        assert text in "\n".join(lines[found.start_line - 1 : found.end_line])
        assert found.path.startswith("memory/coder/2026-03-21-")


def test_the_front_matter_of_a_memory_is_neither_embedded_nor_shown(tmp_path, on_disk):
    """It would halve the cosine of a memory to a question."""
    embedder = WordEmbedder()
    on_disk.remember("The cache is Valkey", tags=["stack"], created_at=MARCH)
    with Workspace(tmp_path / "notes", embedder=embedder) as workspace:
        export(workspace, on_disk)
        (found,) = workspace.search("what is the cache?")
        assert found.text.strip() == "The cache is Valkey"
    assert "stack" not in "".join(embedder.texts)


def test_edits_in_the_editor_come_back_to_the_memory(workspace, on_disk):
    record = on_disk.remember("The cache is Redis", created_at=MARCH)
    export(workspace, on_disk)
    (file,) = (workspace.folder / "memory").rglob("*.md")
    file.write_text(file.read_text().replace("Redis", "Valkey"))
    done = on_disk.transfer.import_folder(workspace.folder / "memory")
    assert (done.updated, on_disk.get(record.id).text) == (1, "The cache is Valkey")
    assert export(workspace, on_disk).conflicts == ()


def test_a_flushed_day_and_an_evergreen_file_are_left_alone(workspace, on_disk):
    memory = workspace.folder / "memory"
    memory.mkdir()
    (memory / "MEMORY.md").write_text("Mine\n")
    (memory / "2026-03-21.md").write_text("- A flushed fact\n")
    on_disk.remember("Fact", created_at=MARCH)
    export(workspace, on_disk)
    assert (memory / "MEMORY.md").read_text() == "Mine\n"
    assert (memory / "2026-03-21.md").read_text() == "- A flushed fact\n"
    assert on_disk.transfer.import_folder(workspace.folder / "memory").created == 0


def test_a_tags_filter_exports_those_alone(workspace, on_disk):
    on_disk.remember("Kept", tags=["a"], created_at=MARCH)
    on_disk.remember("Left out", created_at=MARCH)
    export(workspace, on_disk, tags=["a"])
    assert workspace.search("kept") != []
    assert workspace.search("left out") == []
