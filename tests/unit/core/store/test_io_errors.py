"""What the system says when a disk fails, a quota is used up or descriptors run out, told with what to do."""

from __future__ import annotations

import errno
import io
import logging
import os
import threading
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace

import apsw
import pytest
from msgspec import structs

from recallite import Memory, Settings
from recallite.errors import StoreCorrupt, StoreError
from recallite.model.settings import Consolidation
from recallite.remember import write
from recallite.store.sqlite import faults, held_files
from recallite.store.sqlite import store as sqlite_store
from recallite.store.sqlite.faults import as_store_error
from recallite.store.sqlite.store import SqliteStore
from recallite.system.turnstile import Background
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, WordEmbedder


@pytest.fixture
def reads_end(monkeypatch):
    """Have nothing be read any more after the next commit, within a context."""

    def fails(*_):
        raise StoreError("the disk failed", "io")

    commit = SqliteStore.atomic

    @contextmanager
    def after_a_commit():
        with monkeypatch.context() as patch:

            @contextmanager
            def then_fails(store, **options):
                with commit(store, **options) as connection:
                    yield connection
                patch.setattr(SqliteStore, "read", fails)

            patch.setattr(SqliteStore, "atomic", then_fails)
            yield

    return after_a_commit


def failing(kind, extended=0):
    """A function that raises an error of SQLite."""

    def fails(*_):
        fault = kind("the disk failed")
        fault.extendedresult = extended
        raise fault

    return fails


LINE = '{"text": "new words"}\n'
WRITES = {
    "remember": lambda memory, _: memory.remember("new words"),
    "remember_many": lambda memory, _: memory.remember_many(["new words", "more words"]),
    "import": lambda memory, _: memory.transfer.import_(io.StringIO(LINE), format="jsonl"),
    "import of a full batch": lambda memory, _: memory.transfer.import_(
        io.StringIO(LINE), format="jsonl", batch_size=1
    ),
    "update": lambda memory, kept: memory.update(kept, text="new words", importance=0.9),
    "renew": lambda memory, kept: memory.update(kept, renew=True),
    "restore": lambda memory, kept: memory.restore(kept, 0),
    "forget": lambda memory, kept: memory.forget(kept),
    "forget with a receipt": lambda memory, kept: memory.forget(kept, receipt=True),
    "an episode": lambda memory, _: memory.episodes.log("new words"),
}


@pytest.mark.parametrize("do", WRITES.values(), ids=WRITES)
def test_a_write_is_acknowledged_though_nothing_can_be_read_after_its_commit(path, reads_end, do):
    """Whether other memories wait to be compared was read then, and made the write raise."""
    with Memory(path, settings=Settings(embedder="none", consolidation=Consolidation(threshold=1))) as memory:
        kept = memory.remember("first words", expires_at=timedelta(days=1)).id
        memory.update(kept, text="second words")
        memory.recall("words")  # from here on the index follows each write
        before = memory.store.stats().sequence
        memory._engine.may_have_uncompared = True
        with reads_end():
            do(memory, kept)
        assert memory.store.stats().sequence > before
        assert memory._engine.may_have_uncompared
        memory.remember("other words")
        memory._engine.comparing.wait()
        assert memory.store.stats().to_compare == 0


def test_what_waited_for_a_comparison_as_the_disk_failed_is_compared_after_a_later_write(on_disk, reads_end):
    with reads_end():
        on_disk.remember_many(f"Shelf {number} holds {number * 7} jars" for number in range(80))
    assert on_disk.store.stats().to_compare == 80
    on_disk.remember("one more")
    on_disk._engine.comparing.wait()
    assert on_disk.store.stats().to_compare == 0


def test_what_fails_after_a_write_is_logged_and_in_a_transaction_it_is_raised(on_disk, caplog):
    def fails():
        with on_disk._engine.afterwards("a service"):
            raise StoreError("a text that the log must not quote")

    with caplog.at_level(logging.DEBUG, "recallite.engine"):
        fails()
    assert caplog.messages == ["a service after a write failed with StoreError"]

    def in_a_transaction():
        with on_disk.transaction():
            on_disk.remember("words")
            fails()

    with pytest.raises(StoreError, match="quote"):
        in_a_transaction()
    assert on_disk.count() == 0


def test_where_no_thread_is_left_work_waits_for_the_next_call(monkeypatch):
    background, done = Background("a test"), []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", failing(RuntimeError))
        background.start(lambda stopped: done.append("first"), "first")
        assert not background.runs
    background.start(lambda stopped: done.append("second"), "second")
    background.wait()
    assert done == ["first", "second"]


@pytest.mark.parametrize(
    ("kind", "extended", "unreadable", "told"),
    [
        (apsw.IOError, apsw.SQLITE_IOERR_READ, False, StoreError),
        (apsw.CorruptError, 0, True, StoreError),
        (apsw.CorruptError, 0, False, StoreCorrupt),
    ],
    ids=["io", "io told as malformed", "malformed"],
)
@pytest.mark.parametrize(
    ("where", "name"), [(held_files, "_last_fed"), (sqlite_store, "has_table")], ids=["files", "sql_search"]
)
def test_what_fails_as_a_store_is_opened_is_an_error_of_ours(
    path, monkeypatch, kind, extended, unreadable, told, where, name
):
    settings = Settings(embedder="none", sql_search=True)
    with Memory(path, settings=settings) as memory:
        memory.remember("kept words")
    with monkeypatch.context() as patch:
        patch.setattr(where, name, failing(kind, extended))
        patch.setattr(faults, "reading_failed", lambda _: unreadable)
        with pytest.raises(StoreError, match=r"agent\.db") as raised:
            Memory(path, settings=settings)
    assert type(raised.value) is told
    with Memory(path, settings=settings) as memory:
        assert [hit.text for hit in memory.recall("words")] == ["kept words"]


def test_no_connection_is_left_of_a_store_that_could_not_be_opened(path, monkeypatch):
    Memory(path, settings=PLAIN).close()
    before = len(apsw.connections())
    monkeypatch.setattr(held_files, "_last_fed", failing(apsw.IOError))
    with raises(StoreError, "io") as raised:
        Memory(path, settings=PLAIN)
    assert len(apsw.connections()) == before, raised


def test_a_log_that_cannot_be_read_is_taken_for_that_of_its_database(on_disk, monkeypatch):
    """Nothing of it is thrown away, and whoever looked is not stopped by an error of SQLite."""
    on_disk.remember("kept words")
    store = on_disk._engine.store
    states = iter([held_files._state_of(store._writer.connection)])
    monkeypatch.setattr(store._held, "_content", lambda: held_files._Content(held_files.CommitMark(), None, False))
    monkeypatch.setattr(held_files, "_state_of", lambda _: next(states, None) or failing(apsw.IOError)())
    assert store._held.belong(store._writer.connection)


def test_a_disk_that_one_of_two_readers_cannot_read_is_no_damage(on_disk, monkeypatch):
    """The fault of the first passed through the second, which had none, and was taken for a damaged file."""
    on_disk.remember("kept words")
    store, broken = on_disk._engine.store, []
    for module in (faults, sqlite_store):
        monkeypatch.setattr(module, "reading_failed", broken.__contains__)
    with raises(StoreError, "io") as raised, store.read() as first, store.read():
        broken.append(first.connection)
        failing(apsw.CorruptError)()
    assert type(raised.value) is StoreError
    with pytest.raises(StoreCorrupt), store.read(), store.read():
        failing(apsw.CorruptError)()


def test_what_was_updated_is_returned_as_it_was_committed(on_disk, reads_end):
    """It was read again after the commit: a disk that failed then, or another's `forget`, made `update` raise."""
    kept = on_disk.remember("first words")
    on_disk.update(kept.id, text="second words")
    with reads_end():
        changed = on_disk.update(kept.id, text="third words", importance=0.9)
    assert changed == structs.replace(on_disk.get(kept.id), outcome="updated")
    assert (changed.text, changed.importance) == ("third words", 0.9)
    with reads_end():
        restored = on_disk.restore(kept.id, 0)
    assert restored == structs.replace(on_disk.get(kept.id), outcome="updated")
    assert restored.text == "first words"


def test_an_update_counts_the_accesses_so_far(on_disk):
    kept = on_disk.remember("first words")
    for _ in range(3):
        on_disk.recall("words")
    assert on_disk.update(kept.id, importance=0.9).access_count == 3


def test_what_is_stored_is_not_told_as_failed_by_what_comes_after(path, monkeypatch):
    """Vectors that wait are embedded after the commit: a disk that fails then made `remember` raise."""

    def fails(*_, **__):
        raise StoreError("the disk failed")

    embedder = WordEmbedder()
    with Memory(path, embedder=embedder, settings=PLAIN) as memory:
        monkeypatch.setattr(write, "embed_pending", fails)
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


def undo_by_sqlite(store):
    """Have SQLite roll the whole transaction back because of an error in one statement."""
    with store.atomic() as writer:
        for _ in range(2):
            writer.connection.execute("INSERT OR ROLLBACK INTO scope (path) VALUES ('/twice')")


def test_nothing_is_written_alone_in_a_transaction_that_sqlite_has_rolled_back(on_disk):
    """The next write in it opened a transaction of its own, which it committed."""

    def write():
        with on_disk.transaction():
            on_disk.remember("the first half")
            with pytest.raises(StoreError, match="UNIQUE"):
                undo_by_sqlite(on_disk._engine.store)
            with pytest.raises(StoreError, match="nothing of it was written"):
                on_disk.remember("the second half")

    with pytest.raises(StoreError, match="begin it again"):
        write()
    assert on_disk.count() == 0
    on_disk.remember("words")
    assert on_disk.count() == 1


def test_a_transaction_that_sqlite_has_rolled_back_is_not_taken_for_committed(on_disk):
    def write():
        with on_disk.transaction():
            on_disk.remember("the first half")
            with pytest.raises(StoreError):
                undo_by_sqlite(on_disk._engine.store)

    with pytest.raises(StoreError, match="begin it again"):
        write()
    assert on_disk.count() == 0


def test_where_the_system_does_not_tell_what_a_file_is_it_is_an_error_of_ours(path, monkeypatch):
    def fails(_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    Memory(path, settings=PLAIN).close()
    before = len(apsw.connections())
    with monkeypatch.context() as patch:
        patch.setattr(held_files, "os", SimpleNamespace(**{**vars(os), "stat": fails}))
        with raises(StoreError, "io", match=r"agent\.db cannot be opened"):
            Memory(path, settings=PLAIN)
    assert len(apsw.connections()) == before
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("first words")
        with monkeypatch.context() as patch:
            patch.setattr(held_files, "os", SimpleNamespace(**{**vars(os), "stat": fails}))
            memory.remember("words that SQLite could write")
        assert memory.count() == 2
