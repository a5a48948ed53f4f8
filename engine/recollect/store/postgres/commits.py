"""Commits whose outcome is known: a connection that is lost during one is not an answer, and the server is asked."""

from __future__ import annotations

import time
from collections.abc import Mapping

import psycopg
from psycopg import sql
from psycopg.errors import Diagnostic

from recollect.errors import StoreError, StoreUnreachable, WriteUnknown
from recollect.store.postgres.connection import Connections, StoreConnection
from recollect.store.postgres.faults import READ_AGAIN, as_store_error, first_line, forget_secrets, is_lost

# A statement timeout would end the wait for the synchronous standby, and the commit would be acknowledged without it.
_COMMIT = sql.SQL("SET LOCAL statement_timeout = 0; COMMIT")
_STATUS = """
SELECT CASE WHEN pg_is_in_recovery() OR left(pg_walfile_name(pg_current_wal_lsn()), 8) IS DISTINCT FROM %(timeline)s
            THEN 'another server' ELSE pg_xact_status(%(transaction)s::text::xid8) END
"""
# The server has not noticed yet that the connection is lost. One that waits for a standby is committing.
_END_BACKEND = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND backend_xid = (%(transaction)s::text::xid8)::xid AND state LIKE 'idle in transaction%%'
"""
_PAUSE_SECONDS = 0.05
_WHY = {
    "another server": ": a standby has taken over, whose transactions have other numbers",
    "in progress": ": the server is still at it, as it is while a synchronous standby does not answer",
}


def commit(connection: StoreConnection, connections: Connections, transaction: int | None) -> None:
    """Commit; when this returns, it is done. `transaction` is `pg_current_xact_id()`, None if nothing was written.

    Where the connection is lost meanwhile, the server is asked for the outcome through another one. Raises WriteUnknown
    if that cannot be found out, and StoreUnreachable or the error of the server if nothing was written.
    """
    address = connections.address
    pid, timeline = connection.info.backend_pid, connection.timeline
    warnings: list[Diagnostic] = []
    connection.add_notice_handler(warnings.append)
    try:
        cursor = connection.execute(_COMMIT, prepare=False)
        while cursor.nextset():
            pass
        if cursor.statusmessage != "COMMIT":
            raise StoreError(f"{address}: the transaction had failed before; nothing was written")
        if any(each.severity_nonlocalized == "WARNING" for each in warnings):
            raise WriteUnknown(
                f"{address}: the write is done on this server, and the wait for its standby was ended "
                f"({warnings[0].message_primary}): a failover now would lose it. {READ_AGAIN}"
            )
        return
    except psycopg.Error as fault:
        forget_secrets(fault)
        if not is_lost(fault, connection):
            raise as_store_error(fault, address) from None
        lost = fault.with_traceback(None)
    finally:
        connection.remove_notice_handler(warnings.append)
    if transaction is None or _is_committed(connections, transaction, timeline, pid):
        return
    raise StoreUnreachable(
        f"{address}: the connection was lost during a commit ({first_line(lost)}), and the server says that it was "
        "undone; nothing was written. Try again"
    )


def _is_committed(connections: Connections, transaction: int, timeline: str | None, pid: int) -> bool:
    """Whether a transaction was committed, as the server says; WriteUnknown if it does not say so in time."""
    asked = {"transaction": transaction, "timeline": timeline, "pid": pid}
    deadline = time.monotonic() + connections.wait_seconds
    status = None
    while time.monotonic() < deadline:
        try:
            with connections.connection() as connection:
                status = _status(connection, asked)
                if status == "in progress":
                    connection.execute(_END_BACKEND, asked)
        except (psycopg.Error, StoreError) as fault:
            if isinstance(fault, psycopg.Error):
                forget_secrets(fault)
        if status in ("committed", "aborted"):
            return status == "committed"
        if status == "another server":
            break
        time.sleep(_PAUSE_SECONDS)
    raise WriteUnknown(
        f"{connections.address}: the connection was lost during a commit, and it cannot be found out whether the "
        f"write is done{_WHY.get(status or '', '')}. {READ_AGAIN}"
    )


def _status(connection: StoreConnection, asked: Mapping[str, object]) -> str | None:
    """What the server says of a transaction; None if it has forgotten it."""
    row = connection.execute(_STATUS, asked).fetchone()
    found: str | None = row[0] if row else None
    return found
