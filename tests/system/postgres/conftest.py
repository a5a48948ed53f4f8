"""What the tests of the store on a server share."""

from __future__ import annotations

import itertools
import secrets

import pytest

from recallite_postgres.scheme import parse_address
from tests.system.postgres.server import SUPERUSER

_numbers = itertools.count(1)


@pytest.fixture
def connected():
    """Makes `Connections` to an address, closed after the test."""
    connection = pytest.importorskip("recallite_postgres.connection", exc_type=ImportError)
    made = []

    def connect(address, **options):
        made.append(connection.Connections(parse_address(address), **options))
        made[-1].open()
        return made[-1]

    yield connect
    for each in made:
        each.close()


@pytest.fixture
def role(postgres_server):
    """Makes a role with a password, which needs it on the socket; gone after the test with what it owns."""
    made = []

    def make(options=""):
        name, password = f"role_{next(_numbers)}", secrets.token_hex(8)
        postgres_server.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}' {options}")
        made.append(name)
        return name, password

    access = postgres_server.data / "pg_hba.conf"
    before = access.read_text()
    access.write_text(
        f"local all {SUPERUSER},/^trusted trust\nlocal replication all trust\nlocal all all scram-sha-256\n"
    )
    postgres_server.execute("SELECT pg_reload_conf()")
    yield make
    access.write_text(before)
    postgres_server.execute("SELECT pg_reload_conf()")
    for name in made:
        postgres_server.execute(f"DROP OWNED BY {name} CASCADE")
        postgres_server.execute(f"DROP ROLE {name}")


@pytest.fixture
def database(postgres_server):
    """Makes a database, dropped after the test."""
    made = []

    def make(options=""):
        made.append(f"made_{len(made)}")
        postgres_server.execute(f"CREATE DATABASE {made[-1]} {options}")
        return made[-1]

    yield make
    for name in made:
        postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")
