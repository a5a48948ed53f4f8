"""Fixtures of tests that need PostgreSQL: without a server or psycopg they skip with the reason."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.system.postgres.server import PostgresServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server for all tests of this process.

    Each worker has one: it starts in a second, and two workers that shared one would wait for each other's commits.
    It runs without fsync; tests of durability start their own.
    """
    pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
    pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")
    server = PostgresServer.started(fsync=False)
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres_address(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a memory that does not exist yet; its schema is dropped after the test."""
    schema = f"t_{next(_numbers)}"
    cache = str(tmp_path_factory.mktemp("cache"))
    monkeypatch.setattr("recallite_postgres.repositories._folder", lambda: cache)
    yield postgres_server.address(schema=schema)
    # Connections that a test left open would hold locks on what is dropped.
    postgres_server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = 'postgres' AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    postgres_server.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
