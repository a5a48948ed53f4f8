"""A commit is acknowledged once it is done, and where its connection is lost the outcome is found out or said to be
unknown."""

from __future__ import annotations

import threading

import pytest

from recallite.errors import StoreError, StoreUnavailable, WriteUnknown
from tests.limits import LAST_RESORT_SECONDS, until
from tests.raising import raises
from tests.system.postgres.proxy import Proxy
from tests.system.postgres.server import PostgresServer
from tests.system.postgres.standby import promote, standby_of

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite_postgres.connection import commit


@pytest.fixture
def proxy(postgres_server):
    with Proxy(postgres_server.socket) as opened:
        yield opened


@pytest.fixture
def own_server():
    """A server that a test may kill, with fsync."""
    server = PostgresServer.started(fsync=True)
    yield server
    server.remove()


@pytest.fixture
def notes(postgres_server):
    """An empty table, dropped after the test."""
    postgres_server.execute("CREATE TABLE public.notes (number int)")
    yield
    postgres_server.execute("DROP TABLE public.notes")


def begin(connection, number=1):
    """Begin a transaction that writes; its number."""
    connection.execute("BEGIN")
    connection.execute(f"INSERT INTO public.notes VALUES ({number})")
    return int(connection.execute("SELECT pg_current_xact_id()::text").fetchone()[0])


def written(server):
    return [number for (number,) in server.execute("SELECT number FROM public.notes ORDER BY 1")]


def test_bytes_pass_and_a_cut_ends_connections_but_not_the_next(proxy, connected):
    connections = connected(proxy.address())
    with connections.connection() as connection:
        assert connection.execute("SELECT repeat('a', 200000)").fetchone() == ("a" * 200_000,)
        first = connection.info.backend_pid
    proxy.cut()
    with connections.connection() as connection:
        assert connection.info.backend_pid != first
    proxy.refuse()
    proxy.cut()
    with raises(StoreUnavailable, "unreachable"), connections.connect():
        pass
    proxy.mend()
    with connections.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_what_a_stalled_network_kept_arrives_when_it_is_mended(proxy, connected):
    answers = []
    with connected(proxy.address()).connection() as connection:
        proxy.stall()
        asking = threading.Thread(target=lambda: answers.append(connection.execute("SELECT 7").fetchone()))
        asking.start()
        asking.join(0.2)
        assert answers == []
        proxy.mend()
        asking.join(LAST_RESORT_SECONDS)
    assert answers == [(7,)]


def test_a_commit_is_done_when_it_returns(postgres_server, proxy, connected, notes):
    connections = connected(proxy.address())
    with connections.connection() as connection:
        commit(connection, connections, begin(connection))
        assert written(postgres_server) == [1]
        commit(connection, connections, begin(connection, 2))
        assert connection.execute("SHOW statement_timeout").fetchone() == ("1min",)
    assert written(postgres_server) == [1, 2]


@pytest.mark.parametrize("server_notices", [True, False])
def test_a_commit_that_did_not_arrive_wrote_nothing(postgres_server, proxy, connected, notes, server_notices):
    connections = connected(proxy.address())
    with connections.connection() as connection:
        transaction = begin(connection)
        happened = proxy.cut_at(b"COMMIT", when="before", server_notices=server_notices)
        with raises(StoreUnavailable, "unreachable", match="nothing was written"):
            commit(connection, connections, transaction)
    assert happened.is_set()
    assert written(postgres_server) == []


def test_a_commit_whose_answer_was_lost_is_done(postgres_server, proxy, connected, notes):
    connections = connected(proxy.address(), pool_size=1)
    with connections.connection() as connection:
        transaction = begin(connection)
        happened = proxy.cut_at(b"COMMIT", when="after")
        commit(connection, connections, transaction)
    assert happened.is_set()
    assert written(postgres_server) == [1]


def test_nothing_is_lost_with_a_transaction_that_wrote_nothing(proxy, connected):
    connections = connected(proxy.address())
    with connections.connection() as connection:
        connection.execute("BEGIN")
        proxy.cut_at(b"COMMIT", when="before")
        commit(connection, connections, None)


def test_of_a_network_that_stays_down_the_outcome_is_unknown(postgres_server, proxy, connected, notes):
    connections = connected(proxy.address())
    with connections.connection() as connection:
        connections.wait_seconds = 0.2
        transaction = begin(connection)
        proxy.cut_at(b"COMMIT", when="after")
        proxy.refuse()
        with pytest.raises(WriteUnknown, match=r"cannot be found out.*Read what should have been written"):
            commit(connection, connections, transaction)
    assert written(postgres_server) == [1]


def test_a_transaction_that_failed_is_not_committed(postgres_server, proxy, connected, notes):
    connections = connected(proxy.address())
    with connections.connection() as connection:
        transaction = begin(connection)
        with pytest.raises(Exception, match="division by zero"):
            connection.execute("SELECT 1/0")
        with pytest.raises(StoreError, match="nothing was written"):
            commit(connection, connections, transaction)
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert written(postgres_server) == []


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_after_a_kill_of_the_server_its_word_is_the_truth(own_server, connected, when):
    own_server.execute("CREATE TABLE public.notes (number int)")
    with Proxy(own_server.socket) as proxy:
        connections = connected(proxy.address())
        with connections.connection() as connection:
            transaction = begin(connection)
            happened = proxy.cut_at(b"COMMIT", when=when)
            restarting = threading.Thread(target=restart, args=(own_server, happened))
            restarting.start()
            try:
                commit(connection, connections, transaction, lambda other: (1,) in rows(other))
                said = True
            except StoreUnavailable as fault:
                if fault.reason not in ("unreachable", "connection_lost"):
                    raise
                said = False
            restarting.join(LAST_RESORT_SECONDS)
        assert written(own_server) == ([1] if said else [])
        assert {"before": not said, "during": True, "after": said}[when]


def test_after_a_crash_the_number_of_a_transaction_alone_is_no_answer(own_server, connected):
    own_server.execute("CREATE TABLE public.notes (number int)")
    with Proxy(own_server.socket) as proxy:
        connections = connected(proxy.address())
        for is_written, said in ((None, "another write may have the number"), (lambda other: False, "undone")):
            with connections.connection() as connection:
                transaction = begin(connection)
                proxy.cut_at(b"COMMIT", when="after")
                connection.epoch = "before a crash"
                with pytest.raises((WriteUnknown, StoreUnavailable), match=said):
                    commit(connection, connections, transaction, is_written)


def rows(connection):
    return connection.execute("SELECT number FROM public.notes").fetchall()


def restart(server, happened):
    assert happened.wait(LAST_RESORT_SECONDS)
    server.kill()
    server.start()


def test_a_commit_waits_for_the_synchronous_standby_whatever_the_statement_timeout(own_server, connected):
    own_server.execute("CREATE TABLE public.notes (number int)")
    standby = standby_of(own_server, synchronous=True)
    try:
        connections = connected(own_server.address(), statement_timeout_ms=50)
        standby.stop()
        with connections.connection() as connection:
            transaction = begin(connection)
            committing = threading.Thread(target=commit, args=(connection, connections, transaction))
            committing.start()
            waits = (
                "SELECT now() - query_start > interval '200 ms' FROM pg_stat_activity "
                "WHERE wait_event = 'SyncRep' AND backend_xid IS NOT NULL"
            )
            until(lambda: (True,) in own_server.execute(waits))
            standby.start()
            committing.join(LAST_RESORT_SECONDS)
        assert not committing.is_alive()
        assert written(standby) == [1]
    finally:
        standby.remove()


def test_a_wait_for_the_standby_that_is_ended_is_no_acknowledgement(own_server, connected):
    own_server.execute("CREATE TABLE public.notes (number int)")
    connections = connected(own_server.address())
    own_server.execute("ALTER SYSTEM SET synchronous_standby_names = 'never_there'")
    own_server.execute("SELECT pg_reload_conf()")
    until(lambda: own_server.execute("SHOW synchronous_standby_names") == [("never_there",)])
    said = []

    def try_it():
        with connections.connection() as connection:
            try:
                commit(connection, connections, begin(connection))
            except WriteUnknown as fault:
                said.append(str(fault))

    committing = threading.Thread(target=try_it)
    committing.start()
    cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    until(lambda: own_server.execute(cancel) == [(True,)])
    committing.join(LAST_RESORT_SECONDS)
    assert len(said) == 1
    assert "a failover now would lose it" in said[0]


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_after_a_failover_what_was_acknowledged_is_there(own_server, connected, when):
    own_server.execute("CREATE TABLE public.notes (number int)")
    standby = standby_of(own_server, synchronous=True)
    try:
        with Proxy(own_server.socket) as proxy, Proxy(standby.socket) as other:
            connections = connected(f"postgresql://postgres@127.0.0.1:{proxy.port},127.0.0.1:{other.port}/postgres")
            said = [1]
            with connections.connection() as connection:
                commit(connection, connections, begin(connection, 1))
                transaction = begin(connection, 2)
                happened = proxy.cut_at(b"COMMIT", when=when)
                failing_over = threading.Thread(target=fail_over, args=(own_server, standby, happened))
                failing_over.start()
                try:
                    commit(connection, connections, transaction, lambda other: (2,) in rows(other))
                    said.append(2)
                except StoreUnavailable as fault:
                    if fault.reason not in ("unreachable", "connection_lost"):
                        raise
                    assert when != "after"
                failing_over.join(LAST_RESORT_SECONDS)
            with connections.connection() as connection:
                commit(connection, connections, begin(connection, 3))
            assert written(standby) == [*said, 3]
    finally:
        standby.remove()


def fail_over(primary, standby, happened):
    assert happened.wait(LAST_RESORT_SECONDS)
    primary.kill()
    promote(standby)
