"""Checks of a server before a memory is opened on it; nothing is changed if one fails."""

from __future__ import annotations

from typing import NamedTuple

import psycopg
from psycopg import sql

from recallite.errors import NotADatabase, StoreError
from recallite_postgres.address import PostgresAddress
from recallite_postgres.connection import StoreConnection
from recallite_postgres.faults import translated

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
