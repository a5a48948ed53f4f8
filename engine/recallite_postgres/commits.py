"""Commits whose outcome is known: a connection that is lost during one is not an answer, and the server is asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import psycopg
from psycopg import sql
from psycopg.errors import Diagnostic

from recallite.errors import StoreError, StoreUnavailable, WriteUnknown
from recallite_postgres.connection import Connections, StoreConnection
from recallite_postgres.faults import READ_AGAIN, as_store_error, first_line, forget_secrets, is_lost

# A statement timeout would end the wait for the synchronous standby, and the commit would be acknowledged without it.
_COMMIT = sql.SQL("SET LOCAL statement_timeout = 0; COMMIT")
_STATUS = """
SELECT CASE WHEN pg_is_in_recovery() THEN 'in recovery' ELSE pg_xact_status(%(transaction)s::text::xid8) END
"""
# The server has not noticed yet that the connection is lost. One that waits for a standby is committing.
_END_BACKEND = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND backend_xid = (%(transaction)s::text::xid8)::xid AND state LIKE 'idle in transaction%%'
"""
_PAUSE_SECONDS = 0.05
_WHY = {
    "committed": ": the server crashed, or a standby took over, and another write may have the number of this one",
    "in progress": ": the server is still at it, as it is while a synchronous standby does not answer",
}


class _Lost(NamedTuple):
    """A transaction whose connection was lost during its commit."""

    transaction: int
    pid: int
    epoch: str | None
    is_written: Callable[[StoreConnection], bool] | None


def commit(
    connection: StoreConnection,
    connections: Connections,
    transaction: int | None,
    is_written: Callable[[StoreConnection], bool] | None = None,
) -> None:
    """Commit; when this returns, it is done. `transaction` is `pg_current_xact_id()`, None if nothing was written.

    Where the connection is lost meanwhile, the server is asked for the outcome through another one. After a crash the
    number alone does not tell: `is_written` says whether what this transaction wrote can be read. Raises WriteUnknown
    if the outcome cannot be found out, and StoreUnavailable or the error of the server if nothing was written.
    """
    address = connections.address
    pid, epoch = connection.info.backend_pid, connection.epoch
    warnings: list[str] = []

    def keep_warning(notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":  # read here: its memory is freed afterwards
            warnings.append(notice.message_primary or "")

    connection.add_notice_handler(keep_warning)
    try:
        cursor = connection.execute(_COMMIT, prepare=False)
        while cursor.nextset():
            pass
        if cursor.statusmessage != "COMMIT":
            raise StoreError(f"{address}: the transaction had failed before; nothing was written")
        if warnings:
            raise WriteUnknown(
                f"{address}: the write is done on this server, and the wait for its standby was ended "
                f"({warnings[0]}): a failover now would lose it. {READ_AGAIN}"
            )
        return
    except psycopg.Error as fault:
        forget_secrets(fault)
        if not is_lost(fault, connection):
            with suppress(psycopg.Error):
                connection.rollback()
            raise as_store_error(fault, address) from None
        message = address.without_secrets(first_line(fault))
    finally:
        connection.remove_notice_handler(keep_warning)
    if transaction is None or _is_committed(connections, _Lost(transaction, pid, epoch, is_written)):
        return
    raise StoreUnavailable(
        f"{address}: the connection was lost during a commit ({message}), and the server says that it was undone; "
        "nothing was written. Try again",
        "unreachable",
    )


def _is_committed(connections: Connections, lost: _Lost) -> bool:
    """Whether a transaction was committed, as the server says; WriteUnknown if it does not say so in time."""
    deadline = time.monotonic() + connections.wait_seconds
    status = None
    while time.monotonic() < deadline:
        try:
            # Outside the pool: the connection that was lost may be the last that it may have.
            with connections.connect() as connection:
                status = _status(connection, lost)
                if status == "aborted":
                    return False
                if status == "committed":
                    if connection.epoch == lost.epoch:
                        return True
                    if lost.is_written is None:
                        break
                    return lost.is_written(connection)
        except StoreError:
            pass
        except psycopg.Error as fault:
            forget_secrets(fault)
        time.sleep(_PAUSE_SECONDS)
    raise WriteUnknown(
        f"{connections.address}: the connection was lost during a commit, and it cannot be found out whether the "
        f"write is done{_WHY.get(status or '', '')}. {READ_AGAIN}"
    )


def _status(connection: StoreConnection, lost: _Lost) -> str | None:
    """The server's word on a transaction; None if it has forgotten it."""
    parameters = lost._asdict()
    try:
        row = connection.execute(_STATUS, parameters).fetchone()
    except psycopg.errors.InvalidParameterValue:
        # In the future: it was begun before a crash, and nothing of it reached the log.
        return "aborted"
    status: str | None = row[0] if row else None
    if status == "in progress":
        connection.execute(_END_BACKEND, parameters)
    return status
