"""Connections to a server: what they are set to, what ends them, and that no secret is shown."""

from __future__ import annotations

import logging
import threading
import traceback

import pytest

from recallite.errors import (
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from tests.raising import raises
from tests.system.postgres.server import SUPERUSER

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite_postgres.faults import translated


def execute(connections, connection, statement):
    with translated(connections.address):
        connection.execute(statement)


def test_a_connection_is_set_as_it_has_to_be(postgres_address, connected):
    connections = connected(postgres_address, statement_timeout_ms=1234, lock_timeout_ms=567)
    schema = connections.address.schema
    with connections.connection() as connection:
        shown = {
            name: connection.execute("SELECT current_setting(%s)", (name,)).fetchone()[0]
            for name in ("search_path", "statement_timeout", "lock_timeout", "application_name", "jit", "TimeZone")
        }
        assert shown == {
            "search_path": f"{schema}, pg_temp",
            "statement_timeout": "1234ms",
            "lock_timeout": "567ms",
            "application_name": "recallite",
            "jit": "off",
            "TimeZone": "UTC",
        }
        assert connection.autocommit
        assert connection.epoch is not None


def test_durability_is_not_less_than_the_server_was_told(postgres_server, postgres_address, connected):
    def committing(durable, of_the_role):
        postgres_server.execute(f"ALTER ROLE {SUPERUSER} SET synchronous_commit = {of_the_role}")
        try:
            with connected(postgres_address, durable=durable).connect() as connection:
                return connection.execute("SHOW synchronous_commit").fetchone()[0]
        finally:
            postgres_server.execute(f"ALTER ROLE {SUPERUSER} RESET synchronous_commit")

    assert committing(durable=True, of_the_role="off") == "on"
    assert committing(durable=False, of_the_role="off") == "off"
    assert committing(durable=True, of_the_role="remote_apply") == "remote_apply"


def test_a_server_that_is_not_there(tmp_path, connected):
    connections = connected(f"postgresql://ada:s3cr3t@/notes?host={tmp_path}", wait_seconds=0.01)
    with raises(StoreUnavailable, "unreachable", match=r"does not answer.*nothing was written"), connections.connect():
        pass
    with raises(StoreUnavailable, "unreachable", match="does not answer"), connections.connection():
        pass


def test_a_password_that_is_wrong_or_expired_or_missing_is_never_shown(postgres_server, connected, role, caplog):
    caplog.set_level(logging.DEBUG)
    expired, password = role("VALID UNTIL '2001-01-01'")
    other, _ = role()
    given = [
        (postgres_server.address(user=expired, password=password), password),
        (postgres_server.address(user=other, password="n0t-th3-0ne"), "n0t-th3-0ne"),
        (postgres_server.address(user="nobody_here", password="wh4t3ver"), "wh4t3ver"),
        (postgres_server.address(user=other), "…"),
    ]
    for address, secret in given:
        connections = connected(address, wait_seconds=0.01)
        for borrow in (connections.connect, connections.connection):
            with raises(StoreError, "denied", match=r"expired|pg_hba") as raised, borrow():
                pass
            told = [repr(connections.address), *traceback.format_exception(raised.value), caplog.text]
            fault: BaseException | None = raised.value
            while fault is not None:
                told += [repr(fault), str(fault), repr(getattr(fault, "pgconn", ""))]
                fault = fault.__cause__ or fault.__context__
            assert not [text for text in told if secret in text]
    assert expired in caplog.text  # the pool does log


def test_a_database_that_does_not_exist(postgres_server, connected):
    connections = connected(postgres_server.address(database="never_made"))
    with raises(StoreError, "denied", match=r"no such database.*createdb"), connections.connect():
        pass


def test_errors_of_statements_have_their_types(postgres_server, postgres_address, connected):
    connections = connected(postgres_address, statement_timeout_ms=20, lock_timeout_ms=10)
    postgres_server.execute(f"CREATE SCHEMA {connections.address.schema}")

    def raised(kind, reason, statement, match):
        with connections.connection() as connection, raises(kind, reason, match=match) as caught:
            execute(connections, connection, statement)
        assert connections.address.shown in str(caught.value)

    raised(StoreUnavailable, "timeout", "SELECT pg_sleep(600)", "statement timeout.*statement_timeout_ms")
    raised(StoreError, "failed", "SELECT 1/0", "division by zero, SQLSTATE 22012")
    with connections.connect() as holder:
        holder.execute("BEGIN; SELECT pg_advisory_xact_lock(1)")
        raised(StoreUnavailable, "locked", "SELECT pg_advisory_xact_lock(1)", "busy_timeout_ms")
    states = {
        "53100": "full", "40001": "locked", "40P01": "locked", "57P03": "unreachable",
        "53300": "unreachable", "42501": "read_only", "28P01": "denied",
    }  # fmt: skip
    for state, reason in states.items():
        kind = StoreUnavailable if reason in StoreUnavailable.REASONS else StoreError
        raised(kind, reason, f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}', MESSAGE = 'made'; END $$", "made")


def test_values_of_a_statement_are_in_no_error(postgres_server, postgres_address, connected):
    connections = connected(postgres_address)
    postgres_server.execute(f"CREATE SCHEMA {connections.address.schema}")
    postgres_server.execute(f"CREATE TABLE {connections.address.schema}.meta (key text PRIMARY KEY, value text)")
    statement = "INSERT INTO meta VALUES ('a private text', 'one'), ('a private text', 'two')"
    with connections.connection() as connection, pytest.raises(StoreError, match="duplicate key") as raised:
        execute(connections, connection, statement)
    assert "a private text" not in "".join(traceback.format_exception(raised.value))
    assert raised.value.__cause__ is None


def test_a_pool_of_which_all_are_in_use(postgres_address, connected):
    connections = connected(postgres_address, pool_size=1)
    in_use = raises(StoreUnavailable, "timeout", match=r"every connection was in use.*pool_size")
    with connections.connection():
        connections.wait_seconds = 0.05
        with in_use, connections.connection():
            pass
    connections.wait_seconds = 30
    with connections.connection() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_transaction_that_is_left_open_is_rolled_back(postgres_address, connected):
    connections = connected(postgres_address, pool_size=1)
    with connections.connection() as connection:
        connection.execute("BEGIN; CREATE TABLE pg_temp.kept (id int)")
    with connections.connection() as connection:
        assert connection.execute("SELECT to_regclass('pg_temp.kept')").fetchone() == (None,)


def test_connections_that_ended_while_they_were_idle_are_replaced(postgres_server, postgres_address, connected):
    connections = connected(postgres_address, pool_size=3)
    together = threading.Barrier(3)

    def use():
        with connections.connection() as connection:
            together.wait()
            pids.append(connection.info.backend_pid)

    pids = []
    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pid in pids:
        postgres_server.execute("SELECT pg_terminate_backend(%s, 10000)", pid)
    for _ in range(6):
        with connections.connection() as connection:
            assert connection.info.backend_pid not in pids
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_connection_that_ends_in_use_is_unreachable(postgres_server, postgres_address, connected):
    connections = connected(postgres_address)
    with connections.connection() as connection:
        postgres_server.execute("SELECT pg_terminate_backend(%s, 10000)", connection.info.backend_pid)
        with raises(StoreUnavailable, "unreachable", match="nothing was written"):
            execute(connections, connection, "SELECT 1")
    with connections.connection() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_after_close_there_is_none(postgres_address, connected):
    connections = connected(postgres_address)
    connections.close()
    with pytest.raises(StoreClosed), connections.connection():
        pass
