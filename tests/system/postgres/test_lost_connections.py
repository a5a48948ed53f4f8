"""A memory whose connections end: recalls answer all the same, and writes say whether something was written."""

from __future__ import annotations

import threading

import pytest

from recallite import Memory, Settings
from recallite.errors import StoreError, StoreUnavailable
from tests.attacks.workload import Embedder
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises
from tests.system.postgres.proxy import Proxy

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")


@pytest.fixture
def proxy(postgres_server):
    with Proxy(postgres_server.socket) as opened:
        yield opened


@pytest.fixture
def memory(proxy, postgres_address):
    schema = postgres_address.rpartition("schema=")[2]
    with Memory(proxy.address(schema=schema, pool_size="3"), embedder=Embedder()) as opened:
        opened.remember("the violin is in room seven", id="violin")
        yield opened


def test_connections_that_ended_while_they_were_idle_are_replaced(memory, proxy):
    proxy.cut()
    assert [hit.id for hit in memory.recall("violin")] == ["violin"]
    proxy.cut()
    assert memory.remember("the cello is in room eight", id="cello").id == "cello"


@pytest.mark.parametrize("when", ["before", "during", "after"])
@pytest.mark.parametrize("at", [b"BEGIN ISOLATION LEVEL REPEATABLE READ", b"pg_current_snapshot", b"carray("])
def test_a_recall_whose_connection_ends_in_the_middle_answers(memory, proxy, at, when):
    expected = memory.recall("where is the violin?")
    cut = proxy.cut_at(at, when=when)
    found = memory.recall("where is the violin?")
    assert cut.wait(LAST_RESORT_SECONDS)
    assert [hit.id for hit in found] == [hit.id for hit in expected] == ["violin"]


def test_a_write_that_begins_on_a_connection_that_ended_is_done(memory, proxy):
    cut = proxy.cut_at(b"BEGIN ISOLATION LEVEL READ COMMITTED", when="before")
    memory.remember("the cello is in room eight", id="cello")
    assert cut.wait(LAST_RESORT_SECONDS)
    assert memory.count() == 2


@pytest.mark.parametrize("when", ["before", "during", "after"])
@pytest.mark.parametrize("at", [b"FROM embedder WHERE active", b"SELECT pg_current_xact_id_if_assigned()"])
def test_a_write_that_is_cut_before_its_commit_wrote_nothing(memory, proxy, at, when):
    cut = proxy.cut_at(at, when=when)
    with raises(StoreUnavailable, "connection_lost", match="nothing was written"):
        memory.remember("the cello is in room eight", id="cello")
    assert cut.wait(LAST_RESORT_SECONDS)
    assert memory.count() == 1
    memory.remember("the cello is in room eight", id="cello")
    assert memory.count() == 2


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_a_commit_that_is_cut_is_done_or_told(memory, proxy, when):
    cut = proxy.cut_at(b"COMMIT", when=when)
    done, told = 1, []
    # The first commit is that of the new words.
    for number in range(3):
        try:
            memory.remember(f"word{number} is in room {number}")
            done += 1
        except StoreUnavailable as fault:
            if fault.reason not in ("unreachable", "connection_lost"):
                raise
            told.append(str(fault))
        assert memory.count() == done
    assert cut.wait(LAST_RESORT_SECONDS)
    assert all("nothing was written" in each for each in told)


def test_more_writers_than_connections_do_not_wait_for_each_other(memory):
    """Each has a connection, and needs another for words that are new."""
    faults = []

    def write(number):
        try:
            memory.scoped(f"/w{number}").remember(f"word{number} other{number}")
        except Exception as fault:
            faults.append(fault)

    writing = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in writing:
        thread.start()
    for thread in writing:
        thread.join(LAST_RESORT_SECONDS)
    assert faults == []
    assert memory.count() == 9


def test_a_server_that_is_lost_while_the_index_is_updated_leaves_no_half_of_it(postgres_address, monkeypatch):
    from recallite_postgres.repositories import PostgresBlocks

    plain = Settings(embedder="none")
    with Memory(postgres_address, settings=plain) as memory, Memory(postgres_address, settings=plain) as other:
        memory.remember("zebras graze")
        assert len(memory.recall("zebras")) == 1
        other.remember("zebras gallop")
        read = PostgresBlocks.terms
        failures = iter([True])

        def lost(self, ids):
            if next(failures, False):
                raise psycopg.OperationalError("the connection is lost")
            return read(self, ids)

        monkeypatch.setattr(PostgresBlocks, "terms", lost)
        with pytest.raises(StoreError):
            memory._engine.warmup()
        assert memory._engine.index.commit is None
        assert sorted(hit.text for hit in memory.recall("zebras")) == ["zebras gallop", "zebras graze"]
