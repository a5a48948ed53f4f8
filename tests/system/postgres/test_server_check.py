"""Servers on which no memory can be: a clear error, and nothing changed."""

from __future__ import annotations

import pytest

from recallite.errors import NotADatabase, StoreError
from recallite_postgres.scheme import parse_address
from tests.raising import raises
from tests.system.postgres.binaries import OLDEST, debian_binaries
from tests.system.postgres.server import PostgresServer

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite_postgres import connection as connection_module
from recallite_postgres.faults import translated
from recallite_postgres.server import check_server

NEWEST = 3


def make_memory(server, schema, version, application="recallite", database="postgres"):
    server.execute(f"CREATE SCHEMA {schema}", database=database)
    server.execute(f"CREATE TABLE {schema}.meta (key text PRIMARY KEY, value text)", database=database)
    rows = f"('application', '{application}'), ('schema_version', '{version}')"
    server.execute(f"INSERT INTO {schema}.meta VALUES {rows}", database=database)


def everything(server, database="postgres"):
    """What a check must not change."""
    return server.execute(
        "SELECT 'n', nspname, 0 FROM pg_namespace UNION ALL SELECT 'c', relname, relnamespace FROM pg_class "
        "UNION ALL SELECT 'e', extname, 0 FROM pg_extension ORDER BY 1, 2, 3",
        database=database,
    )


def refusal(kind, reason, server, connections, *, match, write=True, database="postgres", **parameters):
    """The message of a refusal, after which everything is as it was."""
    before = everything(server, database)
    with raises(kind, reason, match=match) as raised, connections.connect(**parameters) as connection:
        check_server(connection, connections.address, newest_schema=NEWEST, write=write)
    assert everything(server, database) == before
    return str(raised.value)


def test_a_new_memory_may_be_made_here(postgres_server, postgres_address, connected):
    connections = connected(postgres_address)
    before = everything(postgres_server)
    with connections.connect() as connection:
        found = check_server(connection, connections.address, newest_schema=NEWEST)
    assert found.version >= OLDEST
    assert (found.schema_version, found.read_only) == (None, False)
    assert everything(postgres_server) == before


def test_the_version_of_a_memory_is_read(postgres_server, postgres_address, connected):
    connections = connected(postgres_address)
    make_memory(postgres_server, connections.address.schema, 2)
    with connections.connect() as connection:
        assert check_server(connection, connections.address, newest_schema=NEWEST).schema_version == 2


def test_an_empty_schema_of_the_administrator_is_used(postgres_server, postgres_address, connected):
    connections = connected(postgres_address)
    postgres_server.execute(f"CREATE SCHEMA {connections.address.schema}")
    with connections.connect() as connection:
        assert check_server(connection, connections.address, newest_schema=NEWEST).schema_version is None


def test_a_server_that_is_too_old(postgres_server, postgres_address, connected, monkeypatch):
    monkeypatch.setattr(connection_module, "OLDEST_SERVER", 99)
    refusal(
        StoreError,
        "unsupported",
        postgres_server,
        connected(postgres_address),
        match=r"is PostgreSQL \d+: .* 99 or later",
    )


def test_a_real_server_that_is_too_old(connected):
    old = [folder for folder in debian_binaries() if int(folder.parent.name) < OLDEST]
    if not old:
        pytest.skip(f"no PostgreSQL before {OLDEST} is installed")
    server = PostgresServer(fsync=False, binaries=old[0])
    try:
        server.initialise()
        server.start()
        refusal(StoreError, "unsupported", server, connected(server.address()), match=rf"{OLDEST} or later")
    finally:
        server.remove()


def test_a_database_with_another_encoding(postgres_server, database, connected):
    made = database("ENCODING 'SQL_ASCII' TEMPLATE template0")
    connections = connected(postgres_server.address(database=made))
    refusal(StoreError, "unsupported", postgres_server, connections, match="encoding SQL_ASCII", database=made)


@pytest.mark.parametrize("tables", ["notes (id int)", "meta (key text, value text)", "meta (id int)"])
def test_a_foreign_schema(postgres_server, postgres_address, connected, tables):
    connections = connected(postgres_address)
    postgres_server.execute(f"CREATE SCHEMA {connections.address.schema}")
    postgres_server.execute(f"CREATE TABLE {connections.address.schema}.{tables}")
    for write in (True, False):
        refusal(NotADatabase, None, postgres_server, connections, match=r"another program.*left as it is", write=write)


def test_a_schema_of_another_application(postgres_server, postgres_address, connected):
    connections = connected(postgres_address)
    make_memory(postgres_server, connections.address.schema, 2, application="other")
    refusal(NotADatabase, None, postgres_server, connections, match="another program")


def test_a_memory_of_a_newer_version(postgres_server, postgres_address, connected):
    connections = connected(postgres_address)
    make_memory(postgres_server, connections.address.schema, NEWEST + 1)
    refusal(StoreError, "newer_schema", postgres_server, connections, match=f"version {NEWEST + 1}.*up to {NEWEST}")


def test_a_server_that_is_read_only(postgres_server, postgres_address, connected):
    connections = connected(postgres_address)
    only = {"options": "-c default_transaction_read_only=on"}
    refusal(StoreError, "read_only", postgres_server, connections, match="cannot be written", **only)
    refusal(NotADatabase, None, postgres_server, connections, match="holds no memory", write=False, **only)
    make_memory(postgres_server, connections.address.schema, 2)
    with connections.connect(**only) as connection:
        found = check_server(connection, connections.address, newest_schema=NEWEST, write=False)
        assert (found.schema_version, found.read_only) == (2, True)
        with raises(StoreError, "read_only", match="read-only transaction"), translated(connections.address):
            connection.execute("CREATE TABLE added (id int)")


def test_a_user_without_rights(postgres_server, postgres_address, connected, role):
    name, password = role()
    schema = parse_address(postgres_address).schema
    connections = connected(postgres_server.address(user=name, password=password, schema=schema))
    asked = f"CREATE SCHEMA {schema} AUTHORIZATION {name}"
    assert asked in refusal(StoreError, "unsupported", postgres_server, connections, match="may not create the schema")
    make_memory(postgres_server, schema, 2)
    asked = f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {name}"
    assert asked in refusal(StoreError, "unsupported", postgres_server, connections, match="may not use the schema")
    postgres_server.execute(f"GRANT USAGE ON SCHEMA {schema} TO {name}")
    refusal(StoreError, "unsupported", postgres_server, connections, match="GRANT SELECT ON ALL TABLES")
    postgres_server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}")
    with connections.connect() as connection:
        check_server(connection, connections.address, newest_schema=NEWEST)
        with raises(StoreError, "read_only", match="permission denied for table meta"), translated(connections.address):
            connection.execute("DELETE FROM meta")
