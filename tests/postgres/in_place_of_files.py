"""Every memory of a test run on PostgreSQL: `pytest -p tests.postgres.in_place_of_files tests/memory tests/recall`.

A path is a schema of its own, which is dropped after the test. What is about files themselves is left out.
"""

from __future__ import annotations

import contextlib
import itertools
import os

import pytest

import recollect.engine
from recollect.checks import is_address
from recollect.store.opening import open_store
from tests.postgres.server import PostgresServer

_numbers = itertools.count(1)
_servers: list[PostgresServer] = []
_schemas: dict[str, str] = {}


def _server() -> PostgresServer:
    if not _servers:
        _servers.append(PostgresServer.started(fsync=False, settings={"max_connections": "300"}))
        _servers[0].execute("CREATE EXTENSION vector")
    return _servers[0]


def _opened(path, *, key=None, **settings):
    if is_address(path) or key is not None:
        return open_store(path, key=key, **settings)
    in_memory = path == ":memory:"
    schema = None if in_memory else _schemas.get(os.fspath(path))
    if schema is None:
        schema = f"t_{next(_numbers)}"
        if not in_memory:
            _schemas[os.fspath(path)] = schema
    store = open_store(_server().address(schema=schema), **settings)
    if in_memory:
        close = store.close

        def close_and_drop():
            if not store.closed:
                close()
                _drop(schema)

        store.close = close_and_drop
    return store


def _drop(schema):
    import psycopg

    with contextlib.suppress(psycopg.errors.LockNotAvailable):
        _server().execute(f"SET lock_timeout = 1000; DROP SCHEMA IF EXISTS {schema} CASCADE")


def pytest_configure(config):
    recollect.engine.open_store = _opened


def pytest_unconfigure(config):
    for server in _servers:
        server.remove()


@pytest.fixture(autouse=True)
def _schemas_of_a_test():
    # What fixtures of a module have opened stays.
    kept = set(_schemas)
    yield
    for path in set(_schemas) - kept:
        _drop(_schemas.pop(path))
