"""Checkpoints beside the writer: what they leave in the WAL, and that nothing depends on their success."""

from __future__ import annotations

import os
import threading

import apsw
import pytest

from recallite import Memory, Settings
from recallite.store.sqlite import connection
from tests.unit.core.memory.support import PLAIN

TEXT = "the same words again and again " * 40


@pytest.fixture
def few_pages(monkeypatch):
    """A WAL of at most 300 pages and what one write adds; the schema takes 100."""
    monkeypatch.setattr(connection, "_STEP_PAGES", 50)
    monkeypatch.setattr(connection, "_LEAST_STEP_PAGES", 10)
    monkeypatch.setattr(connection, "_LIMIT_PAGES", 300)


@pytest.fixture
def no_background(monkeypatch):
    """A system that has no thread left."""
    monkeypatch.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no threads")))


def wal_bytes(path):
    return os.path.getsize(f"{path}-wal")


def write(memory, count):
    return [memory.remember(f"{number} {TEXT}").id for number in range(count)]


def waited(memory):
    memory._engine.store._checkpoints._background.wait()


def whole(path, ids):
    with Memory(path, settings=PLAIN) as memory:
        assert memory.store.verify().ok
        assert [memory.get(each).id for each in ids] == ids


def test_the_pages_are_copied_beside_the_writer(path, few_pages, monkeypatch):
    with Memory(path, settings=PLAIN) as memory:
        writer = memory._engine.store._writer.connection
        copied_by = []
        plain = connection._copy
        monkeypatch.setattr(connection, "_copy", lambda each: (copied_by.append(each), plain(each)))
        before = os.path.getsize(path)
        while not copied_by:
            write(memory, 1)
            waited(memory)
        assert copied_by[0] is not writer
        assert os.path.getsize(path) > before


def test_the_wal_has_a_limit_under_writes_without_a_pause(path, few_pages):
    with Memory(path, settings=PLAIN) as memory:
        ids = write(memory, 150)
        assert wal_bytes(path) < 400 * 8216
    whole(path, ids)
    assert not os.path.exists(f"{path}-wal")


def test_without_a_thread_the_writer_keeps_the_limit(path, few_pages, no_background):
    with Memory(path, settings=PLAIN) as memory:
        ids = write(memory, 60)
        assert wal_bytes(path) < 400 * 8216
    whole(path, ids)


def test_a_checkpoint_that_fails_is_no_concern_of_a_write(path, few_pages, monkeypatch):
    with Memory(path, settings=PLAIN) as memory:
        monkeypatch.setattr(
            memory._engine.store._checkpoints, "_open", lambda: (_ for _ in ()).throw(apsw.FullError("full"))
        )
        ids = write(memory, 60)
        waited(memory)
        assert memory.count() == 60
    whole(path, ids)


def test_a_reader_that_stays_keeps_its_state_and_the_writes_go_on(path, few_pages):
    with Memory(path, settings=PLAIN) as memory:
        write(memory, 10)
        with memory._engine.store.read() as reader:
            seen = reader.connection.execute("SELECT count(*) FROM record").get
            ids = write(memory, 60)
            assert reader.connection.execute("SELECT count(*) FROM record").get == seen == 10
    whole(path, ids)


def test_two_stores_of_one_file_copy_in_turn(path, few_pages):
    with Memory(path, settings=PLAIN) as one, Memory(path, settings=PLAIN) as other:
        ids = [memory.remember(f"{number} {TEXT}").id for number in range(60) for memory in (one, other)]
        assert wal_bytes(path) < 400 * 8216
    whole(path, ids)


def test_what_is_forgotten_is_proved_gone_while_pages_are_copied(path, few_pages):
    with Memory(path, settings=PLAIN) as memory:
        ids = write(memory, 40)
        gone = memory.remember("Zanzibar opens its vault at midnight").id
        write(memory, 5)
        assert memory.forget(gone, receipt=True).receipt.complete
        assert wal_bytes(path) == 0
        ids += write(memory, 20)
    whole(path, ids)


def test_a_memory_without_a_file_has_no_checkpoints(few_pages):
    with Memory(":memory:", settings=PLAIN) as memory:
        write(memory, 60)
        assert memory.count() == 60


def test_the_settings_of_durability_hold_for_the_copy(path, few_pages, monkeypatch):
    levels = []
    plain = connection._copy
    monkeypatch.setattr(connection, "_copy", lambda each: (levels.append(each.pragma("synchronous")), plain(each)))
    for durability, level in (("full", 2), ("normal", 1)):
        with Memory(path, settings=Settings(embedder="none", durability=durability)) as memory:
            write(memory, 30)
            waited(memory)
        assert set(levels) == {level}
        levels.clear()
