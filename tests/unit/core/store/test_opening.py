"""Which files are opened, which are refused, and that a refused file is left as it was."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import apsw
import pytest

from recallite import Memory, Settings
from recallite.errors import (
    InvalidInput,
    NotADatabase,
    StoreClosed,
    StoreCorrupt,
    StoreError,
)
from recallite.store.sqlite.schema import APPLICATION_ID, PAGE_SIZE_BYTES, SCHEMA_VERSION
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN


def contents(folder: Path) -> dict[str, bytes | None]:
    return {each.name: each.read_bytes() if each.is_file() else None for each in folder.iterdir()}


def test_a_new_file_gets_the_schema_and_its_marks(path):
    Memory(path, settings=PLAIN).close()
    connection = apsw.Connection(path)
    assert connection.pragma("application_id") == APPLICATION_ID
    assert connection.pragma("user_version") == SCHEMA_VERSION
    assert connection.pragma("page_size") == PAGE_SIZE_BYTES
    assert connection.pragma("journal_mode") == "wal"
    connection.close()


def test_the_writer_is_durable_by_default_and_normal_by_choice(path):
    for durability, level in (("full", 2), ("normal", 1)):
        with (
            Memory(path, settings=Settings(embedder="none", durability=durability)) as memory,
            memory._engine.store.exclusive() as connection,
        ):
            assert connection.pragma("synchronous") == level
            assert connection.pragma("foreign_keys") == 1
            assert connection.pragma("journal_mode") == "wal"


def test_a_zero_byte_file_is_a_new_one(path):
    Path(path).touch()
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("the first")
        assert memory.count() == 1


def test_what_was_stored_is_there_when_opened_again(path):
    with Memory(path, settings=PLAIN) as memory:
        stored = memory.remember("kept", scope="/a", tags=["t"], metadata={"k": [1, None, "v"]}, importance=0.25)
    with Memory(path, settings=PLAIN) as memory:
        assert memory.get(stored.id) == memory.list()[0]
        assert memory.get(stored.id).metadata == {"k": [1, None, "v"]}


def make_foreign(path: str, *statements: str) -> None:
    connection = apsw.Connection(path)
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


FOREIGN = {
    "two letters": lambda path: Path(path).write_text("hi"),
    "text": lambda path: Path(path).write_text("no database at all\n" * 1000),
    "another program's tables": lambda path: make_foreign(path, "CREATE TABLE t (x)"),
    "another program's mark": lambda path: make_foreign(path, "PRAGMA application_id = 5", "CREATE TABLE t (x)"),
    "another program's empty file": lambda path: make_foreign(path, "PRAGMA application_id = 5"),
    "a damaged header": lambda path: Path(path).write_bytes(b"SQLite format 3\0" + b"\xff" * 5000),
    "a directory": lambda path: Path(path).mkdir(),
    "a FIFO": os.mkfifo,
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_is_not_ours_is_refused_and_left_alone(path, tmp_path, make):
    make(path)
    before = contents(tmp_path)
    with pytest.raises(NotADatabase, match=r"agent\.db"):
        Memory(path, settings=PLAIN)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "place", ["missing/agent.db", "file.txt/agent.db", "x" * 300, "", "nul\0", "\ud800.db", "~nobody-of-that-name/x.db"]
)
def test_a_path_that_cannot_be_is_a_store_error(tmp_path, place):
    (tmp_path / "file.txt").touch()
    before = contents(tmp_path)
    with pytest.raises((StoreError, InvalidInput)):
        Memory(place if place.startswith("~") or not place else f"{tmp_path}/{place}", settings=PLAIN)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("path", [123, b"bytes.db", 1.5])
def test_a_path_that_is_no_path_is_a_typed_error(path):
    with pytest.raises((StoreError, InvalidInput), match="path"):
        Memory(path, settings=PLAIN)


@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
def test_a_newer_schema_is_refused_and_left_alone(path, tmp_path, journal_mode):
    Memory(path, settings=PLAIN).close()
    make_foreign(path, f"PRAGMA journal_mode = {journal_mode}", f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = contents(tmp_path)
    with raises(StoreError, "newer_schema", match=f"schema {SCHEMA_VERSION + 1}.*upgrade"):
        Memory(path, settings=PLAIN)
    assert contents(tmp_path) == before


def test_close_again_does_nothing_and_use_after_it_is_refused(path):
    memory = Memory(path, settings=PLAIN)
    stored = memory.remember("x")
    memory.close()
    memory.close()
    for use in (
        lambda: memory.remember("y"),
        lambda: memory.remember_many(["y"]),
        lambda: memory.recall("x"),
        lambda: memory.get(stored.id),
        lambda: memory.forget(stored.id),
        memory.store.stats,
        memory.store.verify,
        memory.store.vacuum,
        memory.store.rebuild,
    ):
        with pytest.raises(StoreClosed, match=r"agent\.db was closed"):
            use()


def test_close_leaves_one_file(path, tmp_path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("x")
        memory.recall("x")
    assert [each.name for each in tmp_path.iterdir()] == ["agent.db"]


def test_a_scoped_handle_leaves_the_file_open(on_disk):
    with on_disk.scoped("/a") as handle:
        handle.remember("x")
    assert on_disk.count() == 1


def test_memories_by_name_memory_share_nothing(memory):
    with Memory(":memory:", settings=PLAIN) as other:
        other.remember("x")
    assert memory.count() == 0


def test_a_kind_that_is_no_text_is_damage(path):
    """The thread that writes the index snapshot ended with a TypeError."""
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("the ship left")
        with memory._engine.atomic() as writer:
            writer.connection.execute("UPDATE kind SET name = x'00ff'")
    with (
        Memory(path, settings=PLAIN) as memory,
        pytest.raises(StoreCorrupt, match="name is not what was stored"),
    ):
        memory.recall("ship")


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
def test_a_file_system_without_blocks_is_not_called_full():
    with pytest.raises(StoreError, match=r"^/proc/a\.db cannot be opened: its folder cannot be written") as refused:
        Memory("/proc/a.db")
    assert type(refused.value) is StoreError


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.delenv("RECALLITE_DB", raising=False)
    monkeypatch.setattr("recallite.model.environment.user_folder", lambda: str(tmp_path / "file" / "recallite"))
    with pytest.raises(StoreError, match=r"the folder .*recallite cannot be made .*: give the path of the memory"):
        Memory()
