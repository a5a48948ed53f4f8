"""What a reader is told of commits that overlap, of a feed that was trimmed, and of a server that crashed."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from recallite.derivation import derive
from recallite.index.memory_index import MemoryIndex
from recallite.store.opening import open_store
from tests.attacks.index_difference import difference
from tests.limits import LAST_RESORT_SECONDS, until
from tests.system.postgres.server import PostgresServer
from tests.unit.core.store.contract.support import row

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite_postgres import repositories


@pytest.fixture
def opened(postgres_address):
    """Opens stores of one memory, as processes do."""
    made = []

    def open_another():
        made.append(open_store(postgres_address, derive=derive))
        return made[-1]

    yield open_another
    for store in made:
        store.close()


@pytest.fixture
def trims_often(monkeypatch):
    monkeypatch.setattr(repositories, "KEPT_ROWS", 5)
    monkeypatch.setattr(repositories, "_TRIMMED_EVERY", 2)


def insert(store, name, scope="/"):
    with store.atomic(locks=[scope]) as writer:
        writer.records.insert([row(name, scope=scope)], None)


def names(index):
    return sorted(index.table.ids[index.table.open == 1].tolist())


def caught_up(store, index):
    assert difference(store, index) is None
    return names(index)


def test_who_began_first_and_commits_last_is_seen(opened):
    store, other, index = opened(), opened(), MemoryIndex()
    insert(store, "before")
    assert caught_up(other, index) == [1]
    insert_first, commit_last = threading.Event(), threading.Event()

    def slow():
        with store.atomic(locks=["/slow"]) as writer:
            writer.records.insert([row("slow", scope="/slow")], None)
            insert_first.set()
            assert commit_last.wait(LAST_RESORT_SECONDS)

    writing = threading.Thread(target=slow)
    writing.start()
    assert insert_first.wait(LAST_RESORT_SECONDS)
    insert(other, "quick", "/quick")
    assert caught_up(other, index) == [1, 3]
    commit_last.set()
    writing.join(LAST_RESORT_SECONDS)
    assert caught_up(other, index) == [1, 2, 3]
    assert index.loads == 1


def test_what_was_said_again_by_who_commits_last_is_seen(opened):
    store, other = opened(), opened()
    for name in ("/slow", "/quick"):
        insert(store, name, name)
    said_first, commit_last = threading.Event(), threading.Event()

    def slow():
        with store.atomic(locks=["/slow"]) as writer:
            writer.comparisons.add_occurrences([(1, 1, None)])
            said_first.set()
            assert commit_last.wait(LAST_RESORT_SECONDS)

    writing = threading.Thread(target=slow)
    writing.start()
    assert said_first.wait(LAST_RESORT_SECONDS)
    with other.atomic(locks=["/quick"]) as writer:
        writer.comparisons.add_occurrences([(2, 1, None)])
    with other.read() as reader:
        last = reader.comparisons.last_occurrence()
        assert 1 not in reader.comparisons.said_after(last)
    commit_last.set()
    writing.join(LAST_RESORT_SECONDS)
    with other.read() as reader:
        assert reader.comparisons.last_occurrence() == last
        assert 1 in reader.comparisons.said_after(last)


def test_a_reader_behind_a_trimmed_feed_loads_everything_again(opened, trims_often):
    store, other, index = opened(), opened(), MemoryIndex()
    insert(store, "before")
    assert caught_up(other, index) == [1]
    for number in range(30):
        insert(store, f"n{number}")
    assert caught_up(other, index) == [*range(1, 32)]
    assert index.loads == 2
    with store.read() as reader:
        assert reader.connection.execute("SELECT count(*) FROM feed").get < 10


def test_what_is_trimmed_late_does_not_hide_what_was_trimmed_before(opened, trims_often):
    store, other = opened(), opened()
    # The slow writer's row has an odd number, so that it does not trim by itself, which one transaction does at a time.
    insert(store, "before")
    insert(store, "before too")
    began, commit_last = threading.Event(), threading.Event()

    def slow():
        with store.atomic(locks=["/slow"]) as writer:
            writer.records.insert([row("slow", scope="/slow")], None)
            began.set()
            assert commit_last.wait(LAST_RESORT_SECONDS)

    writing = threading.Thread(target=slow)
    writing.start()
    assert began.wait(LAST_RESORT_SECONDS)
    for number in range(20):
        insert(other, f"n{number}", "/quick")
    with other.read() as reader:
        trimmed = int(reader.connection.execute("SELECT value FROM meta WHERE key = 'feed_trimmed'").get)
    commit_last.set()
    writing.join(LAST_RESORT_SECONDS)
    with other.atomic() as writer:
        # Of all that is left the row of the slow writer alone is old enough.
        slowest = writer.connection.execute("SELECT min(sequence) FROM feed").get
        writer.changes._trim(slowest)
    with other.read() as reader:
        assert int(reader.connection.execute("SELECT value FROM meta WHERE key = 'feed_trimmed'").get) >= trimmed


def test_after_a_crash_of_one_server_process_everything_is_loaded_again():
    """The server recovers without being started again, and gives the numbers of lost transactions to others."""
    server = PostgresServer.started(fsync=True)
    try:
        address = server.address(schema="notes")
        store, index = open_store(address, derive=derive), MemoryIndex()
        try:
            insert(store, "before")
            with store.read() as reader:
                index.catch_up(reader)
            with store.atomic() as writer:
                # It takes a number that no log has.
                writer.connection.execute("SELECT pg_current_xact_id()")
                before = writer.changes.commit()
            (process,) = server.execute("SELECT min(pid) FROM pg_stat_activity WHERE application_name = 'recallite'")[0]
            os.kill(process, signal.SIGKILL)
            until(lambda: "all server processes terminated; reinitializing" in server.log())
            until(lambda: _answers(server))
            with store.read() as reader:
                assert reader.changes.since(before) is None
            insert(store, "after")
            assert len(caught_up(store, index)) == 2
            assert index.loads == 2
        finally:
            store.close()
    finally:
        server.remove()


def _answers(server):
    import psycopg

    try:
        return server.execute("SELECT 1") == [(1,)]
    except psycopg.OperationalError:
        return False
