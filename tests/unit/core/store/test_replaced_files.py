"""A store that people treat as a file: it is overwritten, replaced or removed while a memory has it open."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import apsw
import pytest

from recallite import Memory, restore_store
from recallite.errors import EmbedderMismatch, StoreError, WriteUnknown
from recallite.model.records import NewRecord
from recallite.store.sqlite.held_files import CommitMark, aside_of
from recallite.store.sqlite.transaction import SqliteChanges
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, STORING, WordEmbedder, unit


def overwritten(source, path):
    shutil.copyfile(source, path)


def written_in_place(source, path):
    data = Path(source).read_bytes()
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate(len(data))


def exchanged(source, path):
    shutil.copyfile(source, f"{path}.new")
    os.replace(f"{path}.new", path)


def restored(source, path):
    restore_store(source, path, settings=PLAIN, discard_old=True)


REPLACEMENTS = pytest.mark.parametrize("replace", [overwritten, written_in_place, exchanged, restored])


def texts(memory):
    return sorted(record.text for record in memory.list(limit=None))


@pytest.fixture
def saved(path, tmp_path):
    """A backup with one memory, of a store that has had others since, which are in its WAL, and is open."""
    with Memory(path, settings=STORING) as memory:
        memory.remember("the lamp is blue")
        backup = memory.store.backup(tmp_path / "backup.db")
        memory.remember_many([f"the chair {number} is red" for number in range(9)])
        assert len(memory.recall("chair", limit=20)) == 9
        yield memory, backup


@REPLACEMENTS
def test_a_write_goes_into_the_file_that_is_there_now(saved, path, replace):
    memory, backup = saved
    replace(backup, path)
    memory.remember("the desk is green")
    assert texts(memory) == ["the desk is green", "the lamp is blue"]
    assert memory.store.verify().ok
    memory.close()
    with Memory(path, settings=PLAIN) as again:
        assert texts(again) == ["the desk is green", "the lamp is blue"]
        assert again.store.verify().ok


@REPLACEMENTS
def test_a_recall_answers_from_the_file_that_is_there_now(saved, path, replace):
    memory, backup = saved
    replace(backup, path)
    assert [hit.text for hit in memory.recall("chair lamp")] == ["the lamp is blue"]
    assert memory.count() == 1


@REPLACEMENTS
def test_who_opens_it_does_not_apply_the_log_of_the_old_file(saved, path, replace):
    """The memory that is open has not noticed yet, and notices later."""
    memory, backup = saved
    replace(backup, path)
    with Memory(path, settings=PLAIN) as other:
        assert texts(other) == ["the lamp is blue"]
        other.remember("the desk is green")
        memory.remember("the sofa is grey")
        assert texts(other) == texts(memory) == ["the desk is green", "the lamp is blue", "the sofa is grey"]
        assert other.store.verify().ok


@REPLACEMENTS
def test_a_copy_that_went_on_by_itself_is_no_continuation(path, tmp_path, replace):
    """It has as many commits as the index has read, and others."""
    copy = str(tmp_path / "copy.db")
    with Memory(path, settings=STORING) as memory:
        memory.remember("the lamp is blue")
    shutil.copyfile(path, copy)
    with Memory(copy, settings=STORING) as other:
        other.remember_many([f"the shelf {number} is white" for number in range(5)])
        other.remember("the shelf of all is black")
    with Memory(path, settings=STORING) as memory:
        memory.remember_many([f"the chair {number} is red" for number in range(5)])
        memory.recall("chair")
        replace(copy, path)
        assert memory.recall("chair is red shelf black", limit=1)[0].text == "the shelf of all is black"
        assert "the chair 0 is red" not in texts(memory)


@REPLACEMENTS
def test_the_embedder_of_another_file_is_not_that_of_the_old_one(path, tmp_path, replace):
    other = str(tmp_path / "other.db")
    with Memory(other, embedder=WordEmbedder("other", 8)) as memory:
        memory.remember("the lamp is blue")
    with Memory(path, embedder=WordEmbedder()) as memory:
        memory.remember("the chair is red")
        memory.recall("chair")
        replace(other, path)
        with pytest.raises(EmbedderMismatch, match="other"):
            memory.recall("lamp")
        with pytest.raises(EmbedderMismatch, match="other"):
            memory.remember("the desk is green")
    with Memory(path, embedder=WordEmbedder("other", 8)) as memory:
        assert texts(memory) == ["the lamp is blue"]


def test_what_the_index_has_read_is_compared_with_the_feed_after_files_were_let_go_of(path, tmp_path):
    copy = str(tmp_path / "copy.db")
    with Memory(path, settings=STORING) as memory:
        memory.remember("the lamp is blue")
        assert memory._engine.let_go()
        assert [file.name for file in tmp_path.iterdir()] == ["agent.db"]
        shutil.copyfile(path, copy)
        memory.remember("the chair is red")
        memory.recall("chair")
        loads = memory._engine.index.loads
        assert memory._engine.let_go()
        with Memory(path, settings=STORING) as other:
            other.remember("the stool is brown")
        assert len(memory.recall("stool chair lamp")) == 3
        assert memory._engine.index.loads == loads, "what another process wrote is read from the feed"
        assert memory._engine.let_go()
        shutil.copyfile(copy, path)
        with Memory(path, settings=STORING) as other:
            other.remember_many([f"the desk {number} is green" for number in range(9)])
        assert "the chair is red" not in [hit.text for hit in memory.recall("chair lamp desk", limit=20)]
        assert memory._engine.index.loads == loads + 1
        assert memory.count() == 10


@pytest.mark.parametrize("with_log", [False, True])
def test_nothing_is_written_to_a_file_that_was_removed(saved, path, with_log):
    memory, backup = saved
    os.unlink(path)
    if with_log:
        os.unlink(f"{path}-wal")
    for use in (lambda: memory.remember("lost"), lambda: memory.recall("chair"), memory.count, memory.store.vacuum):
        with raises(StoreError, "removed", match=r"agent\.db is not there any more.*restore BACKUP"):
            use()
    assert not os.path.exists(path)
    shutil.copyfile(backup, path)
    memory.remember("the desk is green")
    assert texts(memory) == ["the desk is green", "the lamp is blue"]


def test_a_file_that_is_put_back_is_used_again(saved, path):
    memory, _ = saved
    os.rename(path, f"{path}.away")
    with raises(StoreError, "removed"):
        memory.remember("lost")
    os.rename(f"{path}.away", path)
    memory.remember("the desk is green")
    assert len(texts(memory)) == 11
    assert memory.store.verify().ok


def test_a_log_that_was_removed_takes_no_more_writes(saved, path):
    memory, _ = saved
    os.unlink(f"{path}-wal")
    memory.remember("the desk is green")
    memory.close()
    with Memory(path, settings=PLAIN) as again:
        assert "the desk is green" in texts(again)


@REPLACEMENTS
def test_a_write_under_which_the_file_is_replaced_is_not_acknowledged(saved, path, tmp_path, replace):
    memory, backup = saved
    if replace is restored:
        pytest.skip("it waits for the write")
    with pytest.raises(WriteUnknown, match="write again"), memory.transaction():  # noqa: PT012
        memory.remember("lost")
        replace(backup, path)
    memory.remember("the desk is green")
    assert texts(memory) == ["the desk is green", "the lamp is blue"]


def test_a_write_of_which_nothing_can_be_read_is_not_acknowledged(saved, path, monkeypatch):
    def fails(_):
        raise apsw.IOError("the disk failed")

    memory, backup = saved

    def write():
        with memory.transaction():
            memory.remember("the door is green")
            exchanged(backup, path)
            monkeypatch.setattr(SqliteChanges, "commit", fails)

    with pytest.raises(WriteUnknown):
        write()


def test_what_reads_inside_a_write_under_which_the_file_is_replaced_ends(saved, path):
    memory, backup = saved
    store = memory._engine.store
    with pytest.raises(WriteUnknown), store.atomic() as writer:  # noqa: PT012
        writer.meta.put_identity("an id")
        shutil.copyfile(backup, path)
        with store.read() as reader:
            assert reader.changes.last() > 0
    assert texts(memory) == ["the lamp is blue"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_after_a_fork_leaves_the_connections_of_its_parent_alone(saved, path):
    memory, backup = saved
    exchanged(backup, path)
    child = os.fork()
    if not child:
        try:
            with Memory(path, settings=PLAIN) as own:
                os._exit(int(texts(own) != ["the lamp is blue"]))
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    memory.remember("the desk is green")
    assert texts(memory) == ["the desk is green", "the lamp is blue"]


@REPLACEMENTS
def test_close_leaves_a_file_that_replaced_its_own_as_it_is(saved, path, replace):
    memory, backup = saved
    replace(backup, path)
    memory.close()
    with Memory(path, settings=PLAIN) as again:
        assert texts(again) == ["the lamp is blue"]
        assert again.store.verify().ok


def test_an_old_file_that_was_renamed_is_whole(saved, path, tmp_path):
    memory, backup = saved
    os.rename(path, tmp_path / "old.db")
    shutil.copyfile(backup, path)
    memory.remember("the desk is green")
    with Memory(tmp_path / "old.db", settings=PLAIN) as old:
        assert old.count() == 10


def test_what_the_log_of_an_overwritten_file_held_is_kept_until_a_vacuum(saved, path, caplog):
    memory, backup = saved
    shutil.copyfile(backup, path)
    assert memory.count() == 1
    assert b"the chair 8 is red" in Path(aside_of(path)).read_bytes()
    assert aside_of(path) in caplog.text
    memory.store.vacuum()
    assert not os.path.exists(aside_of(path))


@pytest.mark.parametrize("looked", [True, False])
@pytest.mark.parametrize("checkpoint", [apsw.SQLITE_CHECKPOINT_PASSIVE, apsw.SQLITE_CHECKPOINT_TRUNCATE])
def test_a_file_is_overwritten_when_all_of_its_log_is_in_it(saved, path, checkpoint, looked):
    """Connections keep pages and the size of the old file then, and read nothing from the log."""
    memory, backup = saved
    with memory._engine.store.exclusive() as connection:
        frames, copied = connection.wal_checkpoint(mode=checkpoint)
        assert frames == copied
    if looked:
        memory.count()
    shutil.copyfile(backup, path)
    memory.remember("the desk is green")
    assert texts(memory) == ["the desk is green", "the lamp is blue"]
    assert memory.store.verify().ok
    assert not os.path.exists(aside_of(path))


def test_what_others_do_with_a_file_is_not_taken_for_another_file(path, tmp_path):
    with Memory(path, settings=STORING) as memory, Memory(path, settings=STORING) as other:
        for number in range(12):
            memory.remember(f"note {number}")
            (other.store.vacuum, other._engine.let_go, lambda: other.remember("more"))[number % 3]()
            with other._engine.store.exclusive() as connection:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            assert memory.count() == other.count()
        assert memory.count() == 16
    assert [file.name for file in tmp_path.iterdir()] == ["agent.db"]


def test_a_change_of_nothing_but_metadata_is_no_other_file(saved, path, tmp_path):
    memory, _ = saved
    os.utime(path)
    os.chmod(path, 0o640)
    memory.remember("the desk is green")
    assert memory.count() == 11
    assert {file.name for file in tmp_path.iterdir()} == {"agent.db", "agent.db-wal", "agent.db-shm", "backup.db"}


def test_a_checkpoint_is_no_other_file(path, monkeypatch):
    monkeypatch.setattr("recallite.store.sqlite.connection._STEP_PAGES", 3)
    monkeypatch.setattr("recallite.store.sqlite.connection._LEAST_STEP_PAGES", 3)
    with Memory(path, settings=STORING) as memory, Memory(path, settings=STORING) as other:
        for number in range(40):
            (memory, other)[number % 2].remember(NewRecord(f"note {number}", vector=unit(number)))
            assert len(memory.recall("note", vector=unit(1), limit=100)) == number + 1
        assert memory._engine.index.loads == other._engine.index.loads + 1 == 1
    with Memory(path, settings=PLAIN) as again:
        assert again.count() == 40
        assert again.store.verify().ok


def test_a_log_after_a_crash_is_applied_to_its_own_file_wherever_that_is(path, tmp_path):
    with Memory(path, settings=STORING) as memory:
        memory.remember("the lamp is blue")
    (tmp_path / "copy").mkdir()
    with Memory(path, settings=STORING) as memory:
        memory.remember_many([f"the chair {number} is red" for number in range(9)])
        for ending in ("", "-wal"):  # as they are after a kill
            shutil.copyfile(path + ending, tmp_path / "copy" / f"agent.db{ending}")
    with Memory(tmp_path / "copy" / "agent.db", settings=PLAIN) as crashed:
        assert crashed.count() == 10
        assert crashed.store.verify().ok


@pytest.mark.parametrize(
    "torn",
    ["DELETE FROM meta WHERE key = 'commit'", "UPDATE meta SET value = CAST(x'ff00' AS TEXT) WHERE key = 'commit'"],
    ids=["missing", "no text"],
)
def test_a_log_is_applied_to_its_own_file_though_a_checkpoint_has_torn_the_mark_in_it(path, tmp_path, torn):
    """In what a power failure leaves of its page SQLite may find no row; the log has all of it."""
    with Memory(path, settings=STORING) as memory:
        memory.remember("the lamp is blue")
    copy = str(tmp_path / "crashed.db")
    with Memory(path, settings=STORING) as memory:
        memory.remember("the chair is red")
        shutil.copyfile(path, copy)
        shutil.copyfile(f"{path}-wal", f"{path}-kept")
    connection = apsw.Connection(copy)
    connection.execute(torn)
    connection.close()
    os.rename(f"{path}-kept", f"{copy}-wal")
    with Memory(copy, settings=STORING) as memory:
        assert texts(memory) == ["the chair is red", "the lamp is blue"]
        assert memory.store.verify().problems == ()
    assert not os.path.exists(aside_of(copy))


def test_a_torn_mark_is_no_mark():
    mark = CommitMark("a1", "b2", "00ff", "c3")
    assert CommitMark.decoded(mark.encode()) == mark
    assert CommitMark.decoded(mark.encode().replace("b2", "b3")) is None
    assert CommitMark.decoded(CommitMark().encode()) == CommitMark()
