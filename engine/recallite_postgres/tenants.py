"""Giving roles a scope, and finding out to which scope the role of a connection is confined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg
from psycopg import sql

from recallite.errors import InvalidInput, NotFound, StoreError
from recallite.model.checks import now_us
from recallite.store.values import TenantRow
from recallite.system.messages import shown
from recallite_postgres.address import PostgresAddress
from recallite_postgres.connection import StoreConnection
from recallite_postgres.faults import translated
from recallite_postgres.tenant_schema import FUNCTIONS, RULES, SEQUENCES

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


def listed(connection: StoreConnection) -> list[TenantRow]:
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
    for function in FUNCTIONS:
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
