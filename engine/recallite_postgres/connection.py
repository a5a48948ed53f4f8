"""Connections to a server: a pool of them, the values and statements that they send, and their commits."""

from __future__ import annotations

import re
import selectors
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import RawCursor, sql
from psycopg.adapt import Dumper
from psycopg.errors import Diagnostic
from psycopg.pq import Format
from psycopg.rows import TupleRow
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper
from psycopg_pool import ConnectionPool

from recallite.errors import StoreError, StoreUnavailable, WriteUnknown
from recallite_postgres.faults import READ_AGAIN, as_store_error, first_line, forget_secrets, is_lost, translated
from recallite_postgres.scheme import PostgresAddress

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
            num_workers=2,
        )

    def open(self) -> None:
        """Let `connection` be used. Nothing is connected yet: `connect` says at once why a server cannot be reached."""
        self._pool.open()

    def close(self) -> None:
        """Close all connections; one in use is closed when it is given back."""
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
                    connection = self._pool.getconn(self.wait_seconds)
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


# Values as PostgreSQL takes them: every int as bigint and every str as text, so that a statement is planned once.

_INT8, _INT8_ARRAY, _TEXT, _TEXT_ARRAY, _BYTEA, _BYTEA_ARRAY = 20, 1016, 25, 1009, 17, 1001
_size = struct.Struct(">i").pack
_ELEMENT = np.dtype([("size", ">i4"), ("value", ">i8")])


class IdArray:
    """Row ids, as bigint[]."""

    def __init__(self, ids: Sequence[int] | NDArray[np.int64]) -> None:
        self.ids = np.ascontiguousarray(ids, dtype=np.int64)


class BytesArray:
    """Byte sequences, as bytea[]."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self.values = values


class TextArray(BytesArray):
    """Texts, as text[]."""

    def __init__(self, values: Sequence[str]) -> None:
        super().__init__([value.encode() for value in values])


class _IdArrayDumper(Dumper):
    format = Format.BINARY
    oid = _INT8_ARRAY

    def dump(self, obj: IdArray) -> bytes:
        elements = np.empty(len(obj.ids), dtype=_ELEMENT)
        elements["size"], elements["value"] = 8, obj.ids
        return _head(_INT8, len(elements)) + elements.tobytes()


class _BytesArrayDumper(Dumper):
    format = Format.BINARY
    oid = _BYTEA_ARRAY
    element = _BYTEA

    def dump(self, obj: BytesArray) -> bytes:
        return _head(self.element, len(obj.values)) + b"".join([_size(len(value)) + value for value in obj.values])


class _TextArrayDumper(_BytesArrayDumper):
    oid, element = _TEXT_ARRAY, _TEXT


def _head(type: int, count: int) -> bytes:
    """The beginning of an array of one dimension, or of none for an empty one, without NULLs."""
    return struct.pack(">iiiii", 1, 0, type, count, 1) if count else struct.pack(">iii", 0, 0, type)


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Have a connection send values so."""
    for type, dumper in (
        (int, Int8BinaryDumper), (float, FloatBinaryDumper), (str, StrBinaryDumper), (IdArray, _IdArrayDumper),
        (TextArray, _TextArrayDumper), (BytesArray, _BytesArrayDumper),
    ):  # fmt: skip
        connection.adapters.register_dumper(type, dumper)


# Statements of the repositories, as PostgreSQL takes them, and a connection that runs them.

_PLACEHOLDER = re.compile(r"'[^']*'|\?(\d*)")


@lru_cache(maxsize=2048)
def statement(sql: str) -> bytes:
    """A statement with `$1` for the first bound value, and without hints for SQLite's planner."""
    count = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal count
        if match[0].startswith("'"):
            return match[0]
        number = int(match[1]) if match[1] else count + 1
        count = max(count, number)
        return f"${number}"

    return _PLACEHOLDER.sub(numbered, sql).replace(" NOT INDEXED", "").replace(" CROSS JOIN ", " JOIN ").encode()


class PostgresRows:
    """The rows that a statement returned, all of them in this process."""

    def __init__(self, cursor: RawCursor[tuple[Any, ...]]) -> None:
        self._cursor = cursor

    @property
    def get(self) -> Any:
        """The value of the first row, or the row where it has several; None without a row."""
        row = self._cursor.fetchone()
        return row if row is None or len(row) > 1 else row[0]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._cursor)

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()


class PostgresConnection:
    """A connection of psycopg, for the repositories: values travel in binary form."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.raw = connection
        self._changes = 0

    def execute(self, sql: str, bindings: Sequence[Any] = ()) -> PostgresRows:
        """Run a statement."""
        cursor: RawCursor[tuple[Any, ...]] = RawCursor(self.raw)
        cursor.execute(statement(sql), bindings or None, binary=True)
        self._changes = cursor.rowcount
        return PostgresRows(cursor)

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        """Run a statement for each row of values; psycopg sends them without waiting for each answer."""
        rows = list(rows)
        if not rows:
            return
        cursor: RawCursor[tuple[Any, ...]] = RawCursor(self.raw)
        cursor.executemany(statement(sql), rows)
        self._changes = cursor.rowcount

    def changes(self) -> int:
        """The number of rows that the last statement inserted, updated or deleted."""
        return self._changes

    def copy(self, statement: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Run COPY ... FROM STDIN (FORMAT BINARY) with rows that have columns of these types."""
        with self.raw.cursor().copy(statement.encode()) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)


# Many rows at once: by COPY, and for a tenant by one statement with an array for each column. A record with its vector
# takes the server 58 us by COPY and 66 by arrays. PostgreSQL refuses COPY to roles that row-level security confines.

FEWEST_ROWS = 8
"""Fewer are inserted one by one."""
# Arrays are in memory once more, encoded, and in the server's memory too.
_ROWS_OF_ARRAYS = 2048
_COLUMNS_OF = (
    "SELECT attname::text, format_type(atttypid, NULL), row_security_active(attrelid) FROM pg_attribute "
    "WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
)
_REAL = "double precision"


class _Table(NamedTuple):
    """The types of a table's columns, and whether row-level security confines this role."""

    types: dict[str, str]
    confined: bool


class Inserter:
    """Inserts many rows on one connection, whose tables it keeps in mind."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._tables: dict[str, _Table] = {}
        connection.raw.adapters.register_dumper(list, ListBinaryDumper)

    def insert(self, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
        """Insert rows of these columns; False if they are few."""
        if len(rows) < FEWEST_ROWS:
            return False
        types, confined = self._table(table)
        into = f"{table} ({', '.join(names)})"
        if not confined:
            self._connection.copy(f"COPY {into} FROM STDIN (FORMAT BINARY)", [types[name] for name in names], rows)
            return True
        arrays = ", ".join(f"?::{types[name]}[]" for name in names)
        for start in range(0, len(rows), _ROWS_OF_ARRAYS):
            columns = zip(*rows[start : start + _ROWS_OF_ARRAYS], strict=True)
            values = [_array(types[name], column) for name, column in zip(names, columns, strict=True)]
            self._connection.execute(f"INSERT INTO {into} SELECT * FROM unnest({arrays})", values)
        return True

    def _table(self, name: str) -> _Table:
        if name not in self._tables:
            rows = self._connection.execute(_COLUMNS_OF, (name,)).fetchall()
            self._tables[name] = _Table({column: type for column, type, _ in rows}, any(row[2] for row in rows))
        return self._tables[name]


def _array(type: str, column: Sequence[Any]) -> list[Any]:
    """The values of a column, of one class, as psycopg takes them for an array."""
    return [None if value is None else float(value) for value in column] if type == _REAL else [*column]


# Commits whose outcome is known: a connection that is lost during one is not an answer, and the server is asked.

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
    """A transaction that lost its connection during its commit."""

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


# Reading from a standby: how far it is behind, and how far it may be.

# It has replayed all that it received, and is receiving; else what it replayed last is so old.
_BEHIND = (
    "SELECT CASE WHEN NOT pg_is_in_recovery() THEN 0.0 WHEN coalesce(pg_last_wal_receive_lsn() <= "
    "pg_last_wal_replay_lsn(), true) AND EXISTS (SELECT 1 FROM pg_stat_wal_receiver) THEN 0.0 ELSE "
    "coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000, 'infinity') END::float8"
)
_ASKED_EVERY_SECONDS = 0.5


class Standby:
    """A server that follows a primary, and answers as that was a moment ago."""

    def __init__(self, path: str, most_ms: int) -> None:
        self._path, self._most_ms = path, most_ms
        self._next = 0.0

    def behind_ms(self, connection: PostgresConnection) -> float:
        """The lag behind the primary, in milliseconds; infinite if it is unknown."""
        behind: float = connection.execute(_BEHIND).get
        return behind

    def check(self, connection: PostgresConnection) -> None:
        """Raise StoreUnavailable if it is further behind than it may be; asked at most twice a second."""
        now = time.monotonic()
        if not self._most_ms or now < self._next:
            return
        behind = self.behind_ms(connection)
        if behind > self._most_ms:
            raise StoreUnavailable(
                f"{self._path} is a standby that is {behind:,.0f} ms behind its primary: at most {self._most_ms:,} are "
                "allowed. Try again, raise standby_lag_ms in the address, or read the primary",
                "timeout",
            )
        self._next = now + _ASKED_EVERY_SECONDS
