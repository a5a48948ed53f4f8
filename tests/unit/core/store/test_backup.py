"""A backup is whole or not there, names the disk that is full, and disturbs no other one to the same place."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading

import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput, RecalliteError, StoreError
from recallite.store.sqlite import maintenance
from recallite.system.files import Part
from tests.raising import raises


def texts(path):
    with Memory(path, settings=Settings(embedder="none")) as memory:
        return sorted(record.text for record in memory.list())


def parts(folder):
    return [name for name in os.listdir(folder) if ".part" in name]


def test_what_a_failed_backup_cannot_remove_is_named_and_swept_by_the_next(on_disk, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    on_disk.remember("one")
    with monkeypatch.context() as failures:
        failures.setattr(os, "unlink", refuse)
        failures.setattr(Part, "finish", refuse)
        with pytest.raises(StoreError) as refused:
            on_disk.store.backup(tmp_path / "copy.db")
    (left,) = parts(tmp_path)
    assert f"{tmp_path / left} could not be removed" in str(refused.value)
    assert "nothing was left" not in str(refused.value)
    (tmp_path / f"{left}-journal").touch()
    on_disk.store.backup(tmp_path / "copy.db")
    assert parts(tmp_path) == []


def test_of_a_backup_that_fails_nothing_is_left(on_disk, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(maintenance, "sync_folder", refuse)
    with pytest.raises(StoreError, match="Input/output error; nothing was left of the backup"):
        on_disk.store.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    assert parts(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes are otherwise there")
def test_a_backup_is_as_private_as_its_store(on_disk, tmp_path):
    on_disk.remember("one")
    os.chmod(on_disk.path, 0o640)
    assert stat.S_IMODE(os.stat(on_disk.store.backup(tmp_path / "copy.db")).st_mode) == 0o640


def test_of_two_backups_to_one_place_the_second_is_refused(on_disk, tmp_path):
    """Each writes a file of its own; none replaces the other's."""
    on_disk.remember("one")
    target = tmp_path / "copy.db"
    under_way, go_on = threading.Event(), threading.Event()
    failed = []

    def wait(done, total):
        under_way.set()
        assert go_on.wait(60)

    def slow():
        with Memory(on_disk.path, settings=Settings(embedder="none")) as memory:
            try:
                memory.store.backup(target, on_progress=wait)
            except RecalliteError as fault:
                failed.append(fault)

    thread = threading.Thread(target=slow)
    thread.start()
    assert under_way.wait(60)
    on_disk.store.backup(target)
    on_disk.remember("two")
    go_on.set()
    thread.join()
    (fault,) = failed
    assert isinstance(fault, InvalidInput)
    assert "copy.db was made while the store was copied" in str(fault)
    assert texts(target) == ["one"]
    assert parts(tmp_path) == []


def test_without_hard_links_nothing_is_replaced_either(on_disk, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    on_disk.remember("one")
    monkeypatch.setattr(maintenance.os, "link", refuse)
    assert texts(on_disk.store.backup(tmp_path / "copy.db")) == ["one"]

    def late(done, total):
        (tmp_path / "late.db").write_text("precious")

    with pytest.raises(InvalidInput, match="was made while"):
        on_disk.store.backup(tmp_path / "late.db", on_progress=late)
    assert (tmp_path / "late.db").read_text() == "precious"


def test_the_full_disk_of_sqlite_is_the_targets(on_disk, tmp_path, monkeypatch):
    import apsw

    class Full(apsw.Connection):
        def backup(self, *_):
            raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(apsw, "Connection", Full)
    with raises(StoreError, "full", match=r"the disk that holds .*copy\.db is full"):
        on_disk.store.backup(tmp_path / "copy.db")


@pytest.mark.parametrize(("code", "reason"), [(28, "full"), (122, "full"), (13, "read_only"), (24, "failed")])
def test_what_the_system_refuses_has_a_type(on_disk, tmp_path, monkeypatch, code, reason):
    from recallite.system import files

    def refuse(path, *arguments, **options):
        raise OSError(code, os.strerror(code), path)

    monkeypatch.setattr(files.os, "open", refuse)
    with raises(StoreError, reason) as said:
        on_disk.store.backup(tmp_path / "copy.db")
    assert str(tmp_path / "copy.db") in str(said.value)


@pytest.mark.parametrize("target", ["", "a\0b", "~nosuchuser/copy.db", "x" * 300, 7, ":memory:", "\ud800.db"])
def test_a_path_that_is_none_has_a_type(on_disk, target):
    with pytest.raises(RecalliteError):
        on_disk.store.backup(target)
