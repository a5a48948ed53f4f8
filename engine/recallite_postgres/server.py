"""A server before a memory is opened on it: its checks, the roles that it confines, the schema's version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psycopg
from psycopg import sql

from recallite.errors import InvalidInput, NotADatabase, NotFound, StoreError
from recallite.model.checks import now_us
from recallite.store.values import TenantRow
from recallite.system.messages import shown
from recallite.system.telemetry import logger
from recallite_postgres.connection import Connections, StoreConnection
from recallite_postgres.faults import translated
from recallite_postgres.schema import FUNCTIONS, RULES, SEQUENCES, TABLES, TENANT_FUNCTIONS, TENANT_SCHEMA, TYPES
from recallite_postgres.scheme import PostgresAddress

# Checks of a server; nothing is changed if one fails.

APPLICATION = "recallite"
"""The value of the key `application` in the table `meta` of each of our schemas; `schema_version` is beside it."""
_FOUND = """
SELECT current_setting('server_encoding'),
       pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
       has_database_privilege(current_database(), 'CREATE'),
       (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s)
"""
_INSIDE = """
SELECT has_schema_privilege(%(schema)s, 'USAGE'), has_schema_privilege(%(schema)s, 'CREATE'),
       EXISTS (SELECT FROM pg_class WHERE relnamespace = %(oid)s),
       (SELECT count(*) = 2 FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = %(oid)s AND c.relname = 'meta' AND a.attname IN ('key', 'value'))
"""


class FoundServer(NamedTuple):
    """The state of a server: `schema_version` is None without a memory."""

    version: int
    schema_version: int | None
    read_only: bool


def check_server(
    connection: StoreConnection, address: PostgresAddress, *, newest_schema: int, write: bool = True
) -> FoundServer:
    """Inspect a server. Raises StoreError, or NotADatabase, if no memory can be there.

    With `write` the memory is to be written, and created if it is not there.
    """
    with translated(address):
        row = connection.execute(_FOUND, {"schema": address.schema}).fetchone()
        assert row is not None
        encoding, read_only, may_create, schema = row
        if encoding != "UTF8":
            raise StoreError(
                f"{address}: the database has the encoding {encoding}: create one with createdb --encoding=UTF8 "
                "--template=template0",
                "unsupported",
            )
        if write and read_only:
            raise StoreError(
                f"{address} cannot be written: the server is a standby, or default_transaction_read_only is on. Give "
                "the address of the primary, or have the setting changed",
                "read_only",
            )
        version = None if schema is None else _schema_version(connection, address, schema, write)
        if version is None and write and schema is None and not may_create:
            raise StoreError(
                f"{address}: the user may not create the schema {address.schema}. Ask the administrator for: "
                f"CREATE SCHEMA {address.schema} AUTHORIZATION {_role(connection)}",
                "unsupported",
            )
        if version is None and not write:
            raise NotADatabase(f"{address} holds no memory: open it for writing first")
        if version is not None and version > newest_schema:
            raise StoreError(
                f"{address} has schema version {version}, and this Recallite knows up to {newest_schema}: install a "
                "newer Recallite; the memory was left as it is",
                "newer_schema",
            )
        return FoundServer(connection.info.server_version // 10_000, version, read_only)


def _schema_version(connection: StoreConnection, address: PostgresAddress, schema: int, write: bool) -> int | None:
    """The version of our schema; None if it is empty. NotADatabase for what is another's."""
    row = connection.execute(_INSIDE, {"schema": address.schema, "oid": schema}).fetchone()
    assert row is not None
    usable, may_create, filled, has_meta = row
    if not usable or (write and not filled and not may_create):
        raise StoreError(
            f"{address}: the user may not use the schema {address.schema}. Ask the administrator for: "
            f"GRANT USAGE, CREATE ON SCHEMA {address.schema} TO {_role(connection)}",
            "unsupported",
        )
    if not filled:
        return None
    meta = sql.SQL("SELECT key::text, value::text FROM {}.meta WHERE key IN ('application', 'schema_version')")
    marks: dict[str, str] = {}
    if has_meta:
        try:
            marks = dict(connection.execute(meta.format(sql.Identifier(address.schema))).fetchall())
        except psycopg.errors.InsufficientPrivilege:
            raise StoreError(
                f"{address}: the user may not read the tables of the schema {address.schema}. Ask its owner for: "
                f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.schema} TO {_role(connection)}",
                "unsupported",
            ) from None
    if marks.get("application") != APPLICATION or not marks.get("schema_version", "").isdecimal():
        raise NotADatabase(
            f"{address}: the schema {address.schema} holds tables of another program: give another name as "
            "schema=NAME; it was left as it is"
        )
    return int(marks["schema_version"])


def _role(connection: StoreConnection) -> str:
    return connection.info.user


# Giving roles a scope, and finding out to which scope the role of a connection is confined.

# `record` and `vector` are numbered here, by their sequences.
_NUMBERED_HERE = ("record", "vector")
_ROLE = """
SELECT r.rolsuper, r.rolbypassrls, r.rolreplication, pg_has_role(r.oid, n.nspowner, 'MEMBER')
    OR EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND pg_has_role(r.oid, c.relowner, 'MEMBER')),
    ARRAY(SELECT p.rolname::text FROM pg_roles p WHERE pg_has_role(r.oid, p.oid, 'MEMBER') AND p.rolname IN
          ('pg_read_all_data', 'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files',
           'pg_execute_server_program', 'pg_maintain') ORDER BY 1)
FROM pg_roles r, pg_namespace n WHERE r.rolname = %s AND n.nspname = current_schema()
"""
_OWN = """
SELECT row_security_active('record'), (SELECT scope FROM tenant WHERE role = session_user::text), session_user::text
"""


def scope_of_user(connection: StoreConnection, address: PostgresAddress) -> str | None:
    """The scope to which the server confines the user of a connection; None where it does not.

    Raises StoreError if the user would see nothing.
    """
    with translated(address):
        try:
            row = connection.execute(_OWN).fetchone()
        except psycopg.errors.InsufficientPrivilege:
            row = (True, None, connection.info.user)
    assert row is not None
    confined, scope, role = row
    if confined and scope is None:
        raise StoreError(
            f"{address}: the role {role} neither owns the memory nor has a scope of it. Its owner gives one: "
            f"recallite --db '{address}' tenant grant {role} /SCOPE",
            "denied",
        )
    return scope if confined else None


def grant(connection: StoreConnection, role: str, scope: str) -> TenantRow:
    """Confine a role to a scope and let it use it; one that has another scope changes it."""
    _check_role(connection, role)
    row = TenantRow(role, scope, now_us())
    # Nothing may run between: the role has its policies before its privileges.
    connection.execute(
        "INSERT INTO tenant (role, scope, created_at) VALUES (%s, %s, %s) "
        "ON CONFLICT (role) DO UPDATE SET scope = excluded.scope, created_at = excluded.created_at",
        row,
    )
    connection.execute("INSERT INTO scope (path) VALUES (%s) ON CONFLICT DO NOTHING", (scope,))
    give_privileges(connection, [role])
    return row


def revoke(connection: StoreConnection, role: str) -> None:
    """Take from a role all that it may do here. What is open of it sees nothing any more. Raises NotFound."""
    if connection.execute("DELETE FROM tenant WHERE role = %s RETURNING role", (role,)).fetchone() is None:
        raise NotFound(f"the role {shown(role)} has no scope: `recallite tenant list` shows those that have")
    if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is not None:
        for statement in _revocations(_schema(connection), role):
            connection.execute(statement)


def tenants_in(connection: StoreConnection) -> list[TenantRow]:
    """The roles that have a scope, by name."""
    return [TenantRow(*row) for row in connection.execute("SELECT role, scope, created_at FROM tenant ORDER BY role")]


def renew_privileges(connection: StoreConnection) -> None:
    """Give all tenants that are roles still what they need: a migration may have made tables."""
    rows = connection.execute("SELECT t.role FROM tenant t JOIN pg_roles r ON r.rolname = t.role ORDER BY 1").fetchall()
    give_privileges(connection, [role for (role,) in rows])


def give_privileges(connection: StoreConnection, roles: Sequence[str]) -> None:
    """Exactly the privileges of a tenant."""
    schema = _schema(connection)
    for role in roles:
        for statement in (*_revocations(schema, role), *_grants(connection, schema, role)):
            connection.execute(statement)


def _grants(connection: StoreConnection, schema: sql.Identifier, role: str) -> Iterator[sql.Composed]:
    to = sql.Identifier(role)
    yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, to)
    for table, rule in RULES.items():
        columns = _unnumbered(connection, table)
        for privilege in rule.privileges.split(", "):
            # A number of one's own would be in the way of a later row of another's.
            some: sql.Composable = sql.SQL("")
            if columns and privilege in ("INSERT", "UPDATE"):
                some = sql.SQL(" ({})").format(sql.SQL(", ").join(map(sql.Identifier, columns)))
            yield sql.SQL("GRANT {}{} ON {}.{} TO {}").format(
                sql.SQL(privilege), some, schema, sql.Identifier(table), to
            )
    for name, privileges in SEQUENCES.items():
        yield sql.SQL("GRANT {} ON SEQUENCE {}.{} TO {}").format(sql.SQL(privileges), schema, sql.Identifier(name), to)
    for function in TENANT_FUNCTIONS:
        yield sql.SQL("GRANT EXECUTE ON FUNCTION {}.{} TO {}").format(schema, sql.SQL(function), to)


def _unnumbered(connection: StoreConnection, table: str) -> list[str]:
    """The columns of a table without that which the server numbers; empty for a table whose rows it does not number."""
    if table in _NUMBERED_HERE:
        return []
    rows = connection.execute(
        "SELECT attname::text, attidentity <> '' OR atttypid = 'xid8'::regtype FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        (table,),
    ).fetchall()
    return [name for name, numbered in rows if not numbered] if any(numbered for _, numbered in rows) else []


def _revocations(schema: sql.Identifier, role: str) -> Iterator[sql.Composed]:
    of = sql.Identifier(role)
    for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
        yield sql.SQL("REVOKE ALL ON ALL {} IN SCHEMA {} FROM {}").format(sql.SQL(kind), schema, of)
    yield sql.SQL("REVOKE ALL ON SCHEMA {} FROM {}").format(schema, of)


def _schema(connection: StoreConnection) -> sql.Identifier:
    row = connection.execute("SELECT current_schema()").fetchone()
    assert row is not None
    return sql.Identifier(row[0])


def _check_role(connection: StoreConnection, role: str) -> None:
    """Refuse a role that policies do not confine, or that reads past the tables."""
    row = connection.execute(_ROLE, (role,)).fetchone()
    if row is None:
        raise InvalidInput(
            f"the server has no role {shown(role)}. Ask the administrator for: CREATE ROLE {role} LOGIN PASSWORD '...'"
        )
    superuser, bypasses, replicates, owns, reads_all = row
    why = ("is a superuser" if superuser else "has BYPASSRLS" if bypasses else "has REPLICATION" if replicates
           else "owns the memory, or is a member of its owner" if owns
           else f"is a member of {', '.join(reads_all)}" if reads_all else None)  # fmt: skip
    if why is not None:
        raise InvalidInput(f"the role {shown(role)} {why}, so no scope confines it: give a role of its own")


# Bringing a schema to the version of this Recallite, by one process at a time.

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
