"""What the system says when a disk fails, a quota is used up or descriptors run out, told with what to do."""

from __future__ import annotations

from contextlib import contextmanager

import apsw
from msgspec import structs

from recallite import Memory
from recallite.errors import StoreError
from recallite.remember import write
from recallite.store.sqlite.faults import as_store_error
from recallite.store.sqlite.store import SqliteStore
from tests.unit.core.memory.support import PLAIN, WordEmbedder


def test_what_was_updated_is_returned_as_it_was_committed(on_disk, monkeypatch):
    """It was read again after the commit: a disk that failed then, or another's `forget`, made `update` raise."""
    kept = on_disk.remember("first words")
    on_disk.update(kept.id, text="second words")

    def fails(*_):
        raise StoreError("the disk failed")

    commit = SqliteStore.atomic

    @contextmanager
    def then_fails(store, **options):
        with commit(store, **options) as connection:
            yield connection
        monkeypatch.setattr(SqliteStore, "read", fails)

    monkeypatch.setattr(SqliteStore, "atomic", then_fails)
    changed = on_disk.update(kept.id, text="third words", importance=0.9)
    monkeypatch.undo()
    assert changed == structs.replace(on_disk.get(kept.id), outcome="updated")
    assert (changed.text, changed.importance) == ("third words", 0.9)
    monkeypatch.setattr(SqliteStore, "atomic", then_fails)
    restored = on_disk.restore(kept.id, 0)
    monkeypatch.undo()
    assert restored == structs.replace(on_disk.get(kept.id), outcome="updated")
    assert restored.text == "first words"


def test_an_update_counts_the_accesses_so_far(on_disk):
    kept = on_disk.remember("first words")
    for _ in range(3):
        on_disk.recall("words")
    assert on_disk.update(kept.id, importance=0.9).access_count == 3


def test_what_is_stored_is_not_told_as_failed_by_what_comes_after(path, monkeypatch):
    """Vectors that wait are embedded after the commit: a disk that fails then made `remember` raise."""

    def fails(*_):
        raise StoreError("the disk failed")

    embedder = WordEmbedder()
    with Memory(path, embedder=embedder, settings=PLAIN) as memory:
        monkeypatch.setattr(write, "drain_pending", fails)
        assert memory.remember("kept words").outcome == "created"
        assert memory.count() == 1
        monkeypatch.undo()
        assert memory.remember("more words").text == "more words"


def test_an_error_is_told_though_the_connection_was_closed_meanwhile(tmp_path):
    connection = apsw.Connection(str(tmp_path / "a.db"))
    connection.close()
    fault = apsw.IOError("disk I/O error")
    fault.extendedresult = apsw.SQLITE_IOERR_WRITE
    told = as_store_error(fault, "a.db", connection)
    assert (type(told), told.reason) == (StoreError, "io")
    assert "a.db cannot be written" in str(told)
