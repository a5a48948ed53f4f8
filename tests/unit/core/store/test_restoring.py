"""A backup that is put back: checked first, all of it or nothing, and noticed by who has the store open."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import apsw
import pytest

from recallite import Memory, Settings, restore_store
from recallite.errors import InvalidInput, NotADatabase, StoreCorrupt, StoreError, StoreUnavailable
from recallite.store.sqlite import restoring
from recallite.store.sqlite.schema import PAGE_SIZE_BYTES
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, STORING


def texts(path):
    with Memory(path, settings=PLAIN) as memory:
        assert memory.store.verify().ok
        return sorted(record.text for record in memory.list(limit=None))


def names(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.fixture
def saved(path, tmp_path):
    """A store with two memories, and a backup with the first of them; both closed."""
    with Memory(path, settings=STORING) as memory:
        memory.remember("the lamp is blue")
        backup = memory.store.backup(tmp_path / "backup.db")
        memory.remember("the chair is red")
    return path, backup


def test_the_store_is_the_backup_and_the_old_file_stays_beside_it(saved, tmp_path):
    path, backup = saved
    os.chmod(path, 0o640)
    done = restore_store(backup, path)
    assert (done.path, done.backup, done.records, done.problems) == (path, backup, 1, ())
    assert texts(path) == ["the lamp is blue"]
    assert os.stat(path).st_mode & 0o777 == 0o640
    assert texts(done.replaced) == ["the chair is red", "the lamp is blue"]
    assert names(tmp_path) == ["agent.db", os.path.basename(done.replaced), "backup.db"]
    again = restore_store(done.replaced, path, discard_old=True)
    assert again.replaced is None
    assert texts(path) == ["the chair is red", "the lamp is blue"]
    assert names(tmp_path) == ["agent.db", os.path.basename(done.replaced), "backup.db"]


def test_the_backup_is_only_read(saved):
    _, backup = saved
    before = Path(backup).read_bytes(), os.stat(backup).st_mtime_ns
    restore_store(*reversed(saved))
    assert (Path(backup).read_bytes(), os.stat(backup).st_mtime_ns) == before


def test_what_the_log_of_the_old_file_holds_stays_with_it(saved):
    path, backup = saved
    with Memory(path, settings=STORING) as memory, memory._engine.store.read():  # a reader keeps it from being copied
        memory.remember("the desk is green")
        done = restore_store(backup, path)
    assert "the desk is green" in texts(done.replaced)
    assert texts(path) == ["the lamp is blue"]


@pytest.mark.parametrize("damage", ["removed", "empty", "zeros", "cut"])
def test_a_store_that_cannot_be_opened_is_replaced(saved, damage):
    path, backup = saved
    size = os.path.getsize(path)
    if damage == "removed":
        os.unlink(path)
    else:
        with open(path, "r+b") as file:
            if damage == "zeros":
                file.write(bytes(size // 2))
            file.truncate({"empty": 0, "cut": size // 2}.get(damage, size))
    done = restore_store(backup, path)
    assert texts(path) == ["the lamp is blue"]
    assert (done.replaced is None) == (damage == "removed")


def test_a_damaged_backup_changes_nothing(saved, tmp_path):
    path, backup = saved
    database = apsw.Connection(backup)
    root = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'record'").get
    database.close()
    data = bytearray(Path(backup).read_bytes())
    data[(root - 1) * PAGE_SIZE_BYTES : (root - 1) * PAGE_SIZE_BYTES + 100] = b"\x07" * 100
    Path(backup).write_bytes(data)
    with pytest.raises(StoreCorrupt, match=r"backup\.db is damaged.*nothing was changed"):
        restore_store(backup, path)
    assert texts(path) == ["the chair is red", "the lamp is blue"]
    assert names(tmp_path) == ["agent.db", "backup.db"]


def test_what_is_no_backup_changes_nothing(saved, tmp_path):
    path, _ = saved
    (tmp_path / "notes.txt").write_text("The lamp is blue. " * 200)
    (tmp_path / "none.db").touch()
    with apsw.Connection(str(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE t (x)")
    before = names(tmp_path)
    for source, kind, said in (
        ("notes.txt", NotADatabase, "is not a SQLite database"), ("none.db", NotADatabase, "is empty"),
        ("other.db", NotADatabase, "of another program"), ("missing.db", InvalidInput, "there is no backup"),
        ("agent.db", InvalidInput, "is the store itself"), ("postgresql://a/b", InvalidInput, "is no file"),
    ):  # fmt: skip
        with pytest.raises(kind, match=said):
            restore_store(source if "://" in source else tmp_path / source, path)
    with pytest.raises(InvalidInput, match="database of another program"):
        restore_store(path, tmp_path / "other.db")
    assert names(tmp_path) == before
    assert texts(path) == ["the chair is red", "the lamp is blue"]


def test_a_newer_schema_changes_nothing(saved):
    path, backup = saved
    with apsw.Connection(backup) as connection:
        connection.pragma("user_version", 999)
    with raises(StoreError, "newer_schema"):
        restore_store(backup, path)
    assert len(texts(path)) == 2


def test_derived_data_that_rebuild_mends_is_no_obstacle(saved):
    path, backup = saved
    with apsw.Connection(backup) as connection:
        connection.execute("DELETE FROM record_terms")
    done = restore_store(backup, path)
    assert {problem.remedy for problem in done.problems} == {"recallite rebuild"}


def test_it_waits_for_a_writer_and_a_waiting_writer_goes_on_in_the_new_file(saved):
    path, backup = saved
    with Memory(path, settings=STORING) as memory:
        with memory._engine.store.atomic(), raises(StoreUnavailable, "locked", match="nothing was changed"):
            restore_store(backup, path, settings=Settings(busy_timeout_ms=1))
        swapping, go_on = threading.Event(), threading.Event()
        swap = restoring._swap

        def slowly(*arguments, **options):
            swapping.set()
            assert go_on.wait(LAST_RESORT_SECONDS)
            return swap(*arguments, **options)

        restoring._swap = slowly
        try:
            restore = threading.Thread(target=restore_store, args=(backup, path))
            restore.start()
            assert swapping.wait(LAST_RESORT_SECONDS)
            write = threading.Thread(target=memory.remember, args=("the desk is green",))
            write.start()
            go_on.set()
            restore.join(), write.join()
        finally:
            restoring._swap = swap
        assert sorted(record.text for record in memory.list()) == ["the desk is green", "the lamp is blue"]
    assert texts(path) == ["the desk is green", "the lamp is blue"]


def test_memories_that_have_the_store_open_go_on_with_the_backup(saved):
    path, backup = saved
    with Memory(path, settings=STORING) as one, Memory(path, settings=STORING) as two:
        assert len(one.recall("chair")) == len(two.recall("chair")) == 1
        restore_store(backup, path)
        assert one.recall("chair") == two.recall("chair") == []
        one.remember("the desk is green")
        two.remember("the sofa is grey")
    assert texts(path) == ["the desk is green", "the lamp is blue", "the sofa is grey"]


def test_if_the_store_cannot_be_opened_in_its_place_the_old_file_is_put_back(saved, monkeypatch):
    path, backup = saved
    opened = restoring.SqliteStore

    def failing(target, **options):
        if target == os.path.realpath(path):
            raise StoreError("the disk failed", "io")
        return opened(target, **options)

    monkeypatch.setattr(restoring, "SqliteStore", failing)
    with raises(StoreError, "io"):
        restore_store(backup, path)
    assert texts(path) == ["the chair is red", "the lamp is blue"]


def test_a_copy_of_a_closed_store_can_be_put_back_too(saved, tmp_path):
    path, _ = saved
    shutil.copyfile(path, tmp_path / "copied.db")
    with Memory(path, settings=STORING) as memory:
        memory.remember("the desk is green")
        restore_store(tmp_path / "copied.db", path)
        assert memory.count() == 2
    assert texts(path) == ["the chair is red", "the lamp is blue"]
