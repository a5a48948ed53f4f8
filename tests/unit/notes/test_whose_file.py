"""The index's file: nothing that is somebody else's is taken for an index, emptied, deleted or written through."""

from __future__ import annotations

import sqlite3

import pytest

from recallite import Memory, Workspace
from recallite.errors import InvalidInput, StoreCorrupt, StoreError
from tests.raising import raises
from tests.unit.notes.support import config, index_all, write


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "notes", "a.md", "# A\n\nA file.\n")
    return tmp_path / "notes"


def _memory(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with Memory(path, embedder="none") as memory:
        memory.remember("The sky is blue.")
        memory.knowledge.ingest(b"# Hello\n\nAn important document.", name="doc.md")
    return path


def _holds(path):
    with Memory(path, embedder="none") as memory:
        return [each.source for each in memory.knowledge.list()], [hit.text for hit in memory.recall("sky", limit=1)]


def _set_version(path, added):
    connection = sqlite3.connect(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.execute(f"PRAGMA user_version = {version + added}")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("where", ["named", "own"])
def test_a_file_of_memories_is_refused_and_loses_nothing(folder, tmp_path, where):
    path = _memory(tmp_path / "agent.db" if where == "named" else folder / ".recallite" / "index.db")
    said = _holds(path)
    fields = {"db_path": str(path)} if where == "named" else {}
    with pytest.raises(InvalidInput, match="not the index of a workspace: give another path"):
        index_all(folder, **fields)
    assert _holds(path) == said


@pytest.mark.parametrize("where", ["named", "own"])
@pytest.mark.parametrize("added", [100, -100])
def test_a_file_of_memories_of_another_version_is_left_as_it_is(folder, tmp_path, where, added):
    path = _memory(tmp_path / "agent.db" if where == "named" else folder / ".recallite" / "index.db")
    said = _holds(path)
    version = 100 if added > 0 else -1  # 1 below is the development schema
    _set_version(path, version)
    fields = {"db_path": str(path)} if where == "named" else {}
    with raises(StoreError, "newer_schema" if version > 0 else "failed"):
        index_all(folder, **fields)
    _set_version(path, -version)
    assert _holds(path) == said


def test_another_programs_database_in_our_folder_is_left_as_it_is(folder):
    path = folder / ".recallite" / "index.db"
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE letter (text)")
    connection.close()
    data = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        index_all(folder)
    assert path.read_bytes() == data


def test_an_index_of_a_newer_version_in_our_folder_is_made_afresh(folder):
    index_all(folder)
    _set_version(folder / ".recallite" / "index.db", 100)
    assert index_all(folder).files_indexed == 1


def test_an_index_into_which_memories_were_put_is_refused(folder):
    index_all(folder)
    path = folder / ".recallite" / "index.db"
    with Memory(path, embedder="none") as memory:
        memory.remember("The sky is blue.")
    with pytest.raises(InvalidInput, match="not the index of a workspace"):
        index_all(folder)


def test_a_damaged_file_that_a_configuration_names_is_not_deleted(folder, tmp_path):
    path = tmp_path / "agent.db"
    for each in range(40):
        write(folder, f"n{each}.md", f"# Note {each}\n\n" + "Some text of a note. " * 40)
    index_all(folder, db_path=str(path))
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(data)
    with pytest.raises(StoreCorrupt):
        index_all(folder, db_path=str(path))
    assert path.exists()


def test_an_empty_file_becomes_an_index_and_stays_one(folder, tmp_path):
    (tmp_path / "i.db").touch()
    assert index_all(folder, db_path=str(tmp_path / "i.db")).files_indexed == 1
    assert index_all(folder, db_path=str(tmp_path / "i.db")).files_indexed == 0


def test_links_in_the_place_of_the_index_are_refused(folder, tmp_path):
    path = _memory(tmp_path / "agent.db")
    said = _holds(path)
    (folder / ".recallite").mkdir()
    (folder / ".recallite" / "index.db").symlink_to(path)
    with pytest.raises(InvalidInput, match=r"index\.db is a symbolic link"):
        index_all(folder)
    assert _holds(path) == said


def test_a_link_in_the_place_of_the_folder_is_refused(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / ".recallite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match=r"\.recallite is a symbolic link"):
        Workspace(folder, config(), embedder="none")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_nothing_is_written_through_a_link_called_gitignore(folder, tmp_path):
    (folder / ".recallite").mkdir()
    (folder / ".recallite" / ".gitignore").symlink_to(tmp_path / "outside.txt")
    assert index_all(folder).files_indexed == 1
    assert not (tmp_path / "outside.txt").exists()
