"""Bringing a schema to the version of this Recallite, by one process at a time."""

from __future__ import annotations

from typing import NamedTuple

from psycopg import sql

from recallite.errors import NotADatabase, StoreError
from recallite.system.logs import logger
from recallite_postgres.address import PostgresAddress
from recallite_postgres.connection import Connections
from recallite_postgres.faults import translated
from recallite_postgres.schema import FUNCTIONS, TABLES, TYPES
from recallite_postgres.server_check import APPLICATION, check_server
from recallite_postgres.tenant_schema import TENANT_SCHEMA
from recallite_postgres.tenants import renew_privileges, scope_of_user

_log = logger(__name__)
SCHEMA = "".join([FUNCTIONS, *(table.create_sql(TYPES) for table in TABLES), TENANT_SCHEMA])
"""The statements that fill a new schema."""
MIGRATIONS: tuple[str, ...] = ()
"""The statements that bring a schema of each released version, from 1 on, to the next."""
SCHEMA_VERSION = 1 + len(MIGRATIONS)


class Prepared(NamedTuple):
    """A memory that can be used.

    A `standby` can only be read, and has to have the schema of this Recallite. `scope` is that to which the server
    confines the user, None where it does not.
    """

    standby: bool
    scope: str | None


def prepare(connections: Connections) -> Prepared:
    """Check the server, and create or migrate the schema; nothing is changed where that cannot be done."""
    address = connections.address
    with connections.connect() as connection:
        if connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
            version = check_server(connection, address, newest_schema=SCHEMA_VERSION, write=False).schema_version
            if version != SCHEMA_VERSION:
                raise StoreError(f"{address} is a standby with an older schema: open the primary first", "read_only")
            return Prepared(True, scope_of_user(connection, address))
        server = check_server(connection, address, newest_schema=SCHEMA_VERSION)
        if server.schema_version == SCHEMA_VERSION:
            return Prepared(False, scope_of_user(connection, address))
        if server.schema_version is not None and scope_of_user(connection, address) is not None:
            raise StoreError(
                f"{address} has schema version {server.schema_version}, and this Recallite needs {SCHEMA_VERSION}: its "
                "owner brings it up to date by opening it, a tenant cannot",
                "unsupported",
            )
        with translated(address), connection.transaction():
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"recallite {address.schema}",)
            )
            # IF NOT EXISTS would ask for the right to create schemas even where an administrator has made this one.
            if connection.execute("SELECT to_regnamespace(%s)", (address.schema,)).fetchone() == (None,):
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
            # Another process may have migrated while this one waited for the lock.
            before = check_server(connection, address, newest_schema=SCHEMA_VERSION).schema_version or 0
            if before > SCHEMA_VERSION:
                raise StoreError(f"{address} was migrated meanwhile: install a newer Recallite", "newer_schema")
            for step in MIGRATIONS[before - 1 :] if before else [SCHEMA]:
                connection.execute(step.encode())
            connection.cursor().executemany(
                "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                [("application", APPLICATION), ("schema_version", str(SCHEMA_VERSION))],
            )
            renew_privileges(connection)
        if before == 0:
            _log.info("created %s with schema %d", address, SCHEMA_VERSION)
        elif before != SCHEMA_VERSION:
            _log.info("migrated %s from schema %d to %d", address, before, SCHEMA_VERSION)
    return Prepared(False, None)


def holds_memory(address: PostgresAddress) -> bool:
    """Whether a schema holds a memory; nothing is changed."""
    with Connections(address).connect() as connection:
        try:
            check_server(connection, address, newest_schema=SCHEMA_VERSION, write=False)
        except NotADatabase:
            return False
    return True
