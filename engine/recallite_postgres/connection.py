"""Connections to a server: what each is set to, and a pool of them."""

from __future__ import annotations

import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from recallite.errors import StoreError, StoreUnavailable
from recallite_postgres.address import PostgresAddress
from recallite_postgres.faults import as_store_error, forget_secrets, translated

OLDEST_SERVER = 16
# A server that is gone without a word is noticed within a minute: idle, or with a statement under way.
_DEFAULTS = {
    "application_name": "recallite",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# A process that was stopped inside a transaction holds its locks until then.
_IDLE_IN_TRANSACTION_MS = 300_000
# No one's temporary table is found before ours.
_CONFIGURE = """
SELECT set_config('search_path', %(schema)s::text || ', pg_temp', false),
       set_config('statement_timeout', %(statement_timeout_ms)s, false),
       set_config('lock_timeout', %(lock_timeout_ms)s, false),
       set_config('idle_in_transaction_session_timeout', %(idle_ms)s, false),
       set_config('timezone', 'UTC', false),
       set_config('jit', 'off', false),
       set_config('standard_conforming_strings', 'on', false),
       CASE WHEN %(durable)s AND current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', false) END,
       (SELECT stats_reset::text FROM pg_stat_bgwriter)
"""
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class StoreConnection(psycopg.Connection[TupleRow]):
    """A connection in autocommit mode: transactions begin and end by statements.

    `epoch` is the server's: it changes as it recovers from a crash, and when a standby takes over. Transactions of two
    epochs may have the same number.
    """

    epoch: str | None = None
    # The repositories on this connection, once a store has made them.
    transaction_on_it: Any = None


class Connections:
    """Connections to one memory, opened as they are needed, at most `pool_size`.

    A statement that takes longer than `statement_timeout_ms` is ended, and so is one that waits longer than
    `lock_timeout_ms` for a lock; 0 is no limit. Who needs a connection waits for `wait_seconds`, also for a server that
    restarts or a standby that takes over.
    """

    def __init__(
        self,
        address: PostgresAddress,
        *,
        pool_size: int = 8,
        statement_timeout_ms: int = 60_000,
        lock_timeout_ms: int = 10_000,
        wait_seconds: float = 30.0,
        durable: bool = True,
    ) -> None:
        self.address = address
        self.wait_seconds = wait_seconds
        self._options = {
            "schema": address.schema,
            "statement_timeout_ms": str(statement_timeout_ms),
            "lock_timeout_ms": str(lock_timeout_ms),
            "idle_ms": str(_IDLE_IN_TRANSACTION_MS),
            "durable": durable,
        }
        self._pool = ConnectionPool(
            connection_class=StoreConnection,
            kwargs=_arguments(address),
            min_size=0,
            max_size=pool_size,
            open=False,
            configure=self.configure,
            name="recallite",
            timeout=wait_seconds,
            num_workers=2,
        )

    def open(self) -> None:
        """Let `connection` be used. Nothing is connected yet: `connect` says at once why a server cannot be reached."""
        self._pool.open()

    def close(self) -> None:
        """Close all connections. Those that are in use are closed when they are given back."""
        self._pool.close()

    def configure(self, connection: StoreConnection) -> None:
        """Set what every connection has."""
        if (version := connection.info.server_version // 10_000) < OLDEST_SERVER:
            raise StoreError(
                f"{self.address} is PostgreSQL {version}: Recallite needs {OLDEST_SERVER} or later. Upgrade "
                "the server, or give another; nothing was changed",
                "unsupported",
            )
        row = connection.execute(_CONFIGURE, self._options, prepare=False).fetchone()
        connection.epoch = row[-1] if row else None

    @contextmanager
    def connection(self) -> Iterator[StoreConnection]:
        """A connection of the pool; a transaction that is still open at the end is rolled back.

        Errors of psycopg that the body raises pass as they are: `translated` is for them.
        """
        connection = self._working()
        try:
            yield connection
        finally:
            try:
                connection.rollback()
            except psycopg.Error:
                connection.close()
            self._pool.putconn(connection)

    @contextmanager
    def connect(self, **parameters: Any) -> Iterator[StoreConnection]:
        """A connection outside the pool; `parameters` are libpq's. Raises at once where the server is not there."""
        with translated(self.address):
            connection = StoreConnection.connect(**{**_arguments(self.address), **parameters})
        try:
            with translated(self.address):
                self.configure(connection)
            yield connection
        finally:
            connection.close()

    def _working(self) -> StoreConnection:
        """A connection that has not ended while it was idle: without a round trip, the server is not asked."""
        while True:
            try:
                with translated(self.address):
                    connection = self._pool.getconn()
            except StoreUnavailable as fault:
                if fault.reason != "timeout":
                    raise
                raise self._reason(fault) from None
            if not connection.closed and not _has_news(connection):
                return connection
            try:
                connection.execute("")
            except psycopg.Error:
                # The pool opens another in its place.
                connection.close()
                self._pool.putconn(connection)
            else:
                return connection

    def _reason(self, fault: StoreError) -> StoreError:
        """The reason why the pool gave no connection: the server's, else that all are in use."""
        try:
            StoreConnection.connect(**_arguments(self.address)).close()
        except psycopg.Error as reason:
            forget_secrets(reason)
            return as_store_error(reason, self.address)
        return fault


def _arguments(address: PostgresAddress) -> dict[str, Any]:
    return {**_DEFAULTS, **address.parameters, "client_encoding": "UTF8", "autocommit": True}


def _has_news(connection: StoreConnection) -> bool:
    """Whether the server sent something unasked: its last word, or a notification."""
    with _Selector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))
