"""Errors of psycopg and of the server as errors of `recallite.errors`: what happened, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.errors import FinishedPGconn
from psycopg_pool import PoolClosed, PoolTimeout

from recallite.errors import StoreClosed, StoreCorrupt, StoreError, StoreUnavailable, WriteUnknown
from recallite.system.messages import fault_text
from recallite_postgres.scheme import PostgresAddress

_UNDONE = "nothing was written"
# The server ends, or ended this connection. 57P03: it is starting, or is a standby that takes no connections.
_ENDED = ("57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "08")
_NO_ROOM = ("53300", "53400")
_MISSING = ("3F000", "42P01", "42703", "42883", "42704")
# libpq tells no code of a connection that failed, only the server's text. A server that speaks another language than
# English is found unreachable, with its text.
_REFUSALS = ("authentication failed", "no password supplied", "not permitted to log in", "no pg_hba.conf entry",
             "permission denied for database", "certificate", "require_auth", "SASL", "SCRAM")  # fmt: skip
_READ_ONLY = ("session is read-only", "session is not read-only", "hot standby mode")


@contextmanager
def translated(
    address: PostgresAddress, connection: psycopg.Connection[tuple[object, ...]] | None = None
) -> Iterator[None]:
    """Raise errors of `recallite.errors` for those of psycopg; `address` names the store in them.

    With the `connection` of a transaction, StoreUnavailable is raised where that has ended. For a commit use
    `recallite_postgres.connection.commit`: here what was lost was not written.
    """
    try:
        yield
    except psycopg.Error as fault:
        # Of a connection that failed it holds the password; of a statement it quotes texts of memories.
        forget_secrets(fault)
        if connection is not None and is_lost(fault, connection):
            message = address.without_secrets(first_line(fault))
            raise StoreUnavailable(
                f"{address}: the connection ended in the middle of a transaction ({message}); {_UNDONE}. Try again",
                "connection_lost",
            ) from None
        raise as_store_error(fault, address) from None


def as_store_error(fault: psycopg.Error, address: PostgresAddress) -> StoreError:
    """The error for an error of psycopg outside of a commit."""
    message = address.without_secrets(first_line(fault))
    state = fault.sqlstate or ""
    match fault:
        case PoolClosed():
            return StoreClosed(f"{address} was closed: open a new Memory")
        case PoolTimeout():
            return StoreUnavailable(
                f"{address}: every connection was in use for too long; {_UNDONE}. Raise "
                "pool_size in the address, or ask with fewer threads at a time",
                "timeout",
            )
        case psycopg.OperationalError() if not state:
            return _not_connected(fault, message, address)
    if state.startswith(_ENDED):
        return StoreUnavailable(
            f"{address}: the server ended the connection ({message}); {_UNDONE}. Try again", "unreachable"
        )
    if state == "40003":
        return WriteUnknown(f"{address}: the server does not say whether the write is done ({message}). {READ_AGAIN}")
    return _of_a_statement(state, message, address)


READ_AGAIN = (
    "Read what should have been written before you write it again; with ids of your own and on_existing='replace' "
    "writing twice does no harm"
)
"""Advice on a write that may or may not be done."""


def is_lost(fault: psycopg.Error, connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    """Whether the connection went away, so that the server's answer is not known."""
    return connection.closed or (fault.sqlstate or "").startswith(_ENDED)


def _of_a_statement(state: str, message: str, address: PostgresAddress) -> StoreError:
    """The error for a statement that the server refused, by its SQLSTATE."""
    match state:
        case "25006" | "42501":
            return StoreError(
                f"{address} cannot be written by this user, or on this server ({message}): check the user's rights on "
                "the schema, and that the server is no standby and default_transaction_read_only is off",
                "read_only",
            )
        case "55P03" | "40001" | "40P01" | "55006":
            return StoreUnavailable(
                f"{address} is locked by another connection ({message}); {_UNDONE}. "
                "Try again, or raise Settings(busy_timeout_ms=...)"
            )
        case "57014" | "25P04":
            return StoreUnavailable(
                f"{address}: a statement took too long and was ended ({message}); {_UNDONE}. "
                "Raise statement_timeout_ms in the address, or ask for less",
                "timeout",
            )
        case "53100":
            return StoreError(
                f"the disk of {address} is full ({message}); {_UNDONE}. Free some space on the server", "full"
            )
        case "53200" | "58030" | "58000" | "58P01":
            return StoreError(
                f"{address}: the server is out of memory, or its disk failed ({message}); {_UNDONE}. Look into its log",
                "io",
            )
        case "28000" | "28P01":
            return _refused(message, address)
        case _ if state in _NO_ROOM:
            return _no_room(message, address)
        case _ if state in _MISSING:
            return StoreCorrupt(
                f"{address} lacks a table, a column or the schema itself ({message}): another program changed or "
                f"dropped it. Restore a backup, or see recallite --db '{address}' verify"
            )
        case _ if state.startswith("XX"):
            return StoreCorrupt(
                f"{address} is damaged, or the server failed ({message}). Look into its log; pg_amcheck finds damage"
            )
    return StoreError(f"{address}: the server refused a statement ({message}, SQLSTATE {state or 'none'}); {_UNDONE}")


def _not_connected(fault: psycopg.Error, message: str, address: PostgresAddress) -> StoreError:
    """The error for a connection that was refused, failed or lost."""
    whole = address.without_secrets(str(fault))
    if any(text in whole for text in _READ_ONLY):
        return StoreError(f"{address}: no server that can be written is among the hosts ({message})", "read_only")
    if any(text in whole for text in _REFUSALS) or ("role" in whole and "does not exist" in whole):
        return _refused(message, address)
    if "database" in whole and "does not exist" in whole:
        return StoreError(
            f"{address}: the server has no such database; nothing was changed. Create it: createdb", "denied"
        )
    if "too many" in whole or "connection slots" in whole:
        return _no_room(message, address)
    return StoreUnavailable(
        f"{address} does not answer ({message}); {_UNDONE}. Check that the server runs, that host, port and firewall "
        "let this machine in, and try again",
        "unreachable",
    )


def _refused(message: str, address: PostgresAddress) -> StoreError:
    return StoreError(
        f"{address}: the server refuses the user ({message}). Check user and password, whether the password or the "
        "account has expired (rolvaliduntil in pg_roles), and pg_hba.conf",
        "denied",
    )


def _no_room(message: str, address: PostgresAddress) -> StoreUnavailable:
    return StoreUnavailable(
        f"{address}: the server has no connection left ({message}); {_UNDONE}. Lower pool_size in the address, or "
        "raise the server's max_connections",
        "unreachable",
    )


def first_line(fault: psycopg.Error) -> str:
    """The server's message, without the statement and the values that it quotes in further lines."""
    text = fault.diag.message_primary or str(fault) or type(fault).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return fault_text(ValueError(lines[0] if lines else text)).removeprefix("ValueError: ")


def forget_secrets(fault: psycopg.Error) -> None:
    """Remove the password that an error of a failed connection holds."""
    if isinstance(fault.pgconn, FinishedPGconn):
        fault.pgconn.password, fault.pgconn.info = b"", []
