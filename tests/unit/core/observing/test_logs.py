"""What is logged, by whom and at which level; nothing is shown where the program does not ask."""

from __future__ import annotations

import logging
import os
import sys

import pytest

from recallite import Memory
from recallite.errors import EmbedderError
from recallite.index import snapshot
from recallite.store.sqlite import connection
from recallite.store.sqlite.schema import MIGRATIONS, SCHEMA_VERSION
from recallite_kernels import dispatch
from tests.unit.core.memory.support import PLAIN, WordEmbedder, unit

STORE = "recallite.store.sqlite.connection"
SNAPSHOT = "recallite.index.snapshot"


def test_a_store_tells_that_it_is_created_opened_and_closed(path, logged):
    Memory(path, settings=PLAIN).close()
    first = logged()
    assert first == [
        ("INFO", STORE, f"created {path} with schema {SCHEMA_VERSION}"),
        ("INFO", "recallite.engine", f"opened {path}"),
        ("INFO", "recallite.engine", f"closes {path}"),
    ]
    Memory(path, settings=PLAIN).close()
    assert logged()[3:] == first[1:]


def test_a_migration_is_told(path, logged, monkeypatch):
    Memory(path, settings=PLAIN).close()
    monkeypatch.setattr(connection, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(connection, "MIGRATIONS", [*MIGRATIONS, "CREATE TABLE later (id)"])
    Memory(path, settings=PLAIN).close()
    told = f"migrated {path} from schema {SCHEMA_VERSION} to {SCHEMA_VERSION + 1}"
    assert ("INFO", STORE, told) in logged()


def test_where_the_index_was_loaded_from_is_told(path, logged, monkeypatch):
    def told():
        return [(level, message.split(" in ")[0]) for level, logger, message in logged() if ".index." in logger]

    monkeypatch.setattr(snapshot, "_SMALLEST", 10)
    with Memory(path, settings=PLAIN) as memory:
        memory.remember_many([{"text": f"apple {number}", "vector": unit(number)} for number in range(20)])
        memory.recall("apple")
    assert told() == [("INFO", "index loaded from the store"), ("INFO", "index snapshot written")]
    with Memory(path, settings=PLAIN) as memory:
        memory.recall("apple")
    assert told()[2:] == [("INFO", "index snapshot read")]
    with open(f"{path}-index", "r+b") as file:
        file.write(b"x")
    with Memory(path, settings=PLAIN) as memory:
        assert memory.recall("apple")
    assert told()[3:5] == [
        ("WARNING", f"index snapshot {path}-index is damaged: the index is loaded from the store"),
        ("INFO", "index loaded from the store"),
    ]


def test_a_snapshot_of_another_state_is_told(path, logged, monkeypatch):
    monkeypatch.setattr(snapshot, "_SMALLEST", 10)
    items = [{"text": f"apple {number}", "vector": unit(number)} for number in range(20)]
    for name in (path, f"{path}2"):
        with Memory(name, settings=PLAIN) as memory:
            memory.remember_many(items)
            memory.recall("apple")
    os.replace(f"{path}2-index", f"{path}-index")
    with Memory(path, settings=PLAIN) as memory:
        assert memory.recall("apple")
    told = "index snapshot is of another state of the store: the index is loaded from the store"
    assert ("INFO", SNAPSHOT, told) in logged()


def test_a_snapshot_that_cannot_be_written_is_told(path, logged, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshot, "_SMALLEST", 10)
    monkeypatch.setattr(snapshot, "write", full)
    with Memory(path, settings=PLAIN) as memory:
        memory.remember_many([f"apple {number}" for number in range(20)])
        memory.recall("apple")
    told = "index snapshot not written (OSError): the index is loaded from the store next time"
    assert ("WARNING", SNAPSHOT, told) in logged()


def test_a_checkpoint_is_told_at_debug(path, logged, monkeypatch):
    monkeypatch.setattr(connection, "_STEP_PAGES", 1)
    monkeypatch.setattr(connection, "_LEAST_STEP_PAGES", 1)
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("apple")
        assert memory._engine.store._checkpoints._background.wait(60)
    told = [level for level, name, message in logged() if name == STORE and message.startswith("checkpoint: ")]
    assert {*told} == {"DEBUG"}


def test_a_failing_embedder_is_warned_of_once_until_it_works(logged):
    def told():
        return [(level, message) for level, logger, message in logged() if logger == "recallite.embedding.handle"]

    embedder = WordEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:
        memory.remember("red apple")
        assert told() == []
        embedder.fail = "raises"
        memory.remember("red berry")
        memory.remember("red leaf")
        assert memory.recall("which is red").evidence_gaps
        embedder.fail = None
        memory.remember("red rose")
        memory.remember("red fox")
    waits = "embedder failed with EmbedderError: memories that wait for vectors: 1; memory.store.stats() says why"
    assert told() == [
        ("WARNING", waits),
        ("DEBUG", waits),
        ("DEBUG", "embedder failed with EmbedderError: recall is by keywords; memory.store.stats() says why"),
        ("INFO", "embedder works again"),
    ]


def test_an_embedder_that_cannot_be_loaded_is_told_with_the_reason_once(tmp_path, logged):
    with Memory(":memory:", embedder=str(tmp_path)) as memory:
        memory.remember("red apple")
        memory.remember("red berry")
        with pytest.raises(EmbedderError):
            memory.store.reembed()
    told = [message for message in (each[2] for each in logged("WARNING")) if "cannot be loaded" in message]
    assert len(told) == 1
    assert str(tmp_path) in told[0]


def test_missing_sqlite_vec_is_warned_of_once(path, logged, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    connection._tell_without_vec.cache_clear()
    for _ in range(2):
        with Memory(path, settings=PLAIN) as memory:
            memory.count()
    told = "sqlite-vec is not installed: SQL has no vector functions; Python measures vectors instead"
    assert logged("WARNING") == [("WARNING", STORE, told)]


def test_kernels_that_cannot_be_used_are_warned_of(logged, monkeypatch):
    def broken():
        raise ImportError("no LLVM")

    monkeypatch.setattr(dispatch, "_reason", "")
    monkeypatch.setattr(dispatch, "_prepare", broken)
    dispatch._load(("sketch",))
    told = "kernels run in Python, which takes longer: numba cannot be used: ImportError: no LLVM"
    assert {*logged()} == {("WARNING", "recallite.kernels", told)}  # twice if kernels are loaded beside this test


def test_recall_builds_no_line_that_is_not_shown(memory, caplog, monkeypatch):
    """The level is asked before anything is put together."""
    from recallite.system import telemetry

    monkeypatch.setattr(telemetry, "_telemetry_now", lambda: None)
    caplog.set_level(logging.INFO, logger="recallite")
    monkeypatch.setattr(telemetry, "_recorded", None)
    memory.remember("red apple")
    assert len(memory.recall("red")) == 1
