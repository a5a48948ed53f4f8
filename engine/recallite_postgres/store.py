"""The store on a PostgreSQL server: many writers and readers in many processes, each with its transaction."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from typing import Any

import psycopg

from recallite.errors import InvalidInput, StoreError, StoreUnavailable
from recallite.model.reports import ErasureReceipt, Problem, Verification
from recallite.store.columns import Derive, without_deriving
from recallite.store.sql import maintenance
from recallite.store.sql.derived import WordNumbers
from recallite.store.sql.maintenance import REBUILD, Erased, drop_unused, figures, found
from recallite.store.sql.meta import unfinished_copy
from recallite.store.sql.repository import insert_sql
from recallite.store.store import Progress, Store
from recallite.store.transaction import Writer
from recallite.system.turnstile import Turnstile, gives_way, note_begin, note_end
from recallite_postgres.connection import (
    # A transaction: the repositories on one connection, and the locks that it holds.
    BytesArray,
    Connections,
    IdArray,
    Inserter,
    PostgresConnection,
    Standby,
    StoreConnection,
    TextArray,
    adapt,
    commit,
    statement,
)
from recallite_postgres.faults import is_lost, translated
from recallite_postgres.repositories import (
    SEEN_BY_READERS,
    ConfinedCache,
    ConfinedLexicon,
    PostgresBlocks,
    PostgresChanges,
    PostgresComparisons,
    PostgresConditions,
    PostgresErasure,
    PostgresRecords,
    PostgresSessions,
    PostgresSnapshot,
    PostgresVectors,
    prove,
    remove_snapshot,
    snapshot_path,
)
from recallite_postgres.scheme import TenantRow, parse_address
from recallite_postgres.server import SCHEMA_VERSION, TABLES, grant, prepare, revoke, tenants_in

# A server keeps all locks of all its connections in one table of a fixed size.
_MOST_LOCKS = 64


class PostgresTransaction(Writer):
    """The repositories that all databases share, and those of PostgreSQL.

    Who writes holds a shared lock on the memory and exclusive ones on what it names, or an exclusive one on the memory.
    So nobody has to be told to try again: what one writer has read, no other changes before it commits.
    """

    connection: PostgresConnection
    blocks: PostgresBlocks
    changes: PostgresChanges
    comparisons: PostgresComparisons
    erasure: PostgresErasure
    records: PostgresRecords
    sessions: PostgresSessions
    snapshot: PostgresSnapshot
    vectors: PostgresVectors
    confined = False
    """Whether the server confines the user to a scope."""
    id_array = IdArray
    array = TextArray
    byte_array = BytesArray

    def __init__(
        self,
        raw: StoreConnection,
        path: str,
        schema: str,
        add_names: Callable[[str, str, Sequence[str]], None],
        derive: Derive,
    ) -> None:
        adapt(raw)
        connection = PostgresConnection(raw)
        self._inserter = Inserter(connection)
        super().__init__(connection, path, WordNumbers(), PostgresConditions(TextArray), derive)
        self.reading = False
        self._schema = schema
        self._add_names = add_names
        # The names of what is locked; None in it is the whole memory.
        self._locked: set[str | None] = set()

    @property
    def sees_one_commit(self) -> bool:
        return self.reading or None in self._locked

    def begin_reading(self) -> None:
        """Begin a transaction that sees one commit."""
        self.reading = True
        # In one message: the server is waited for once.
        begun = self.connection.raw.execute(
            f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {SEEN_BY_READERS}".encode()
        )
        begun.nextset()
        self.changes.begin(begun.fetchone())

    def begin_writing(self, locks: Sequence[str] | None, *, wait: bool) -> None:
        """Begin a transaction that sees what others commit, but for what it has locked."""
        self.reading = False
        self.changes.begin()
        self._locked.clear()
        self.connection.raw.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        self.lock(locks, wait=wait)

    def lock(self, names: Sequence[str] | None, *, wait: bool) -> None:
        """Lock what bears these names, or (None) the whole memory, until the transaction ends."""
        if None in self._locked:
            return
        missing = {None} if names is None or len(names) > _MOST_LOCKS else set(names) - self._locked
        if not missing:
            return
        try_ = "" if wait else "try_"
        whole = self._key(None)
        if missing == {None}:
            got = self.connection.execute(f"SELECT pg_{try_}advisory_xact_lock(?)", (whole,)).fetchall()
        else:
            got = self.connection.execute(
                f"SELECT pg_{try_}advisory_xact_lock_shared(?1) UNION ALL "
                f"SELECT pg_{try_}advisory_xact_lock(value) FROM carray(?2)",
                (whole, IdArray(sorted(map(self._key, missing)))),
            ).fetchall()
        if any(row[0] is False for row in got):
            raise StoreUnavailable(f"{self.path} is locked by another connection; nothing was written. Try again")
        self._locked |= missing

    def _key(self, name: str | None) -> int:
        named = f"{self._schema}\0{'' if name is None else name}"
        return int.from_bytes(blake2b(named.encode(), digest_size=8, person=b"recallite").digest(), "big", signed=True)

    def kept_by_a_savepoint(self) -> tuple[set[str | None], int]:
        """The state before a savepoint, to `restore`: the locks that are held, and the last change that was written."""
        return set(self._locked), self.changes.last_written

    def restore(self, before: tuple[set[str | None], int]) -> None:
        """Forget what was undone with a savepoint."""
        self._locked, self.changes.last_written = set(before[0]), before[1]

    def restart(self) -> None:
        """Continue at the newest commit; a write transaction sees it anyway."""
        if self.reading:
            self.connection.raw.execute("COMMIT")
            self.begin_reading()

    def new_ids(self, table: str, count: int) -> list[int]:
        # Planning looks the name up once; pg_get_serial_sequence() would for each number.
        numbers = f"SELECT array_agg(nextval('{table}_id_seq')) FROM generate_series(1, ?)"
        return sorted(self.connection.execute(numbers, (count,)).get)

    def insert(self, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        rows = rows if isinstance(rows, list) else list(rows)
        if not self._inserter.insert(table, columns.split(", "), rows):
            self.connection.executemany(insert_sql(table, columns), rows)

    def add_names(self, table: str, column: str, names: Sequence[str]) -> dict[str, int]:
        missing = names if self.confined and table == "term" else self._missing(table, column, names)
        if missing and None in self._locked:
            self.connection.execute(add_names_sql(table, column, self.confined), (TextArray(missing),))
        elif missing:
            self._add_names(table, column, missing)
        return {}

    def _missing(self, table: str, column: str, names: Sequence[str]) -> list[str]:
        rows = self.connection.execute(
            f"SELECT value FROM carray(?) EXCEPT SELECT {column} FROM {table} WHERE {column} = ANY(?1)",
            (TextArray(names),),
        )
        return [name for (name,) in rows]


class ConfinedTransaction(PostgresTransaction):
    """A transaction of a tenant."""

    embedding_cache: ConfinedCache
    lexicon: ConfinedLexicon
    confined = True


def add_names_sql(table: str, column: str, confined: bool) -> str:
    """A statement that adds those of some names that a table lacks; a tenant has a function for it."""
    if confined:
        return f"SELECT add_{table}_names(?)"
    return f"INSERT INTO {table} ({column}) SELECT value FROM carray(?) ORDER BY value ON CONFLICT DO NOTHING"


# Verifying and deriving again, as PostgreSQL does it.

_CHECKS = {
    "tag of a record that its scope does not name": (
        "SELECT r.public_id FROM record r JOIN record_tag p ON p.record_id = r.id WHERE NOT EXISTS "
        "(SELECT 1 FROM scope_tag g WHERE g.tag_id = p.tag_id AND g.scope_id = r.scope_id)"
    ),
}
# `term` keeps its rows: `drop_unused` removes those that no record has.
_DERIVED = [table.name for table in TABLES if table.derived and table.name != "term"]


def _invalid_indexes(tx: PostgresTransaction) -> Iterator[Problem]:
    """Indexes that PostgreSQL does not use; damage of pages is what pg_amcheck finds."""
    names = tx.connection.execute(
        "SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace"
    )
    yield from found("index that is not valid", [name for (name,) in names], "REINDEX INDEX of the named one")


def _problem_of(fault: Exception) -> Problem | None:
    if not isinstance(fault, psycopg.DataError | psycopg.ProgrammingError):
        return None
    return Problem(name="a table is missing or broken", count=1, examples=(str(fault).splitlines()[0],), remedy=REBUILD)


_CONNECTIONS_OF_A_WRITER = 3


class _Inside(threading.local):
    """The write transaction of a thread, how deep it is nested, and whether reads are to see it."""

    writer: PostgresTransaction | None = None
    depth = 0
    shared = False


class PostgresStore(Store):
    """A schema of a database, open for one process: each transaction has a connection of a pool."""

    reads_scopes = True

    def __init__(
        self,
        address: str,
        *,
        busy_timeout_ms: int = 10_000,
        durability: str = "full",
        vector_type: str = "float32",
        unfinished: bool = False,
        derive: Derive = without_deriving,
    ) -> None:
        super().__init__()
        self._derive = derive
        self._address = parse_address(address)
        self.path = str(self._address)
        options = self._address.options
        self._connections = Connections(
            self._address,
            pool_size=max(options.pool_size, _CONNECTIONS_OF_A_WRITER),
            statement_timeout_ms=options.statement_timeout_ms,
            lock_timeout_ms=busy_timeout_ms,
            wait_seconds=options.server_wait_ms / 1000,
            durable=durability == "full",
        )
        self._vector_type = vector_type
        self._inside = _Inside()
        self._turns = Turnstile(None)
        # A connection of its own for names: see `_add_names`.
        self._naming = threading.Lock()
        # A writer may need a connection to read by, and one for names: all of them waiting for one would wait for ever.
        self._writers = threading.BoundedSemaphore(max(1, options.pool_size // _CONNECTIONS_OF_A_WRITER))
        prepared = prepare(self._connections)
        self.standby = Standby(self.path, options.standby_lag_ms) if prepared.standby else None
        self.confined_to = prepared.scope
        if self.standby is None and self.confined_to is None:
            self.snapshot_path = snapshot_path(self.path)
        self._connections.open()
        if not unfinished:
            self._refuse_unfinished()

    @property
    def nested(self) -> bool:
        return self._inside.depth > 1

    @property
    def in_transaction(self) -> bool:
        return self._inside.shared

    @property
    def writing(self) -> bool:
        return self._inside.writer is not None

    def _share(self, inside: bool) -> None:
        self._inside.shared = inside

    @contextmanager
    def atomic(self, *, wait: bool = True, locks: Sequence[str] | None = None) -> Iterator[PostgresTransaction]:
        self.check_usable()
        inside = self._inside
        if inside.writer is not None:
            with self._savepoint(inside.writer, locks, wait=wait) as writer:
                yield writer
            return
        if self.standby is not None:
            raise StoreError(
                f"{self.path} is a standby, which is only read: give the address of the primary", "read_only"
            )
        background = wait and gives_way.get()
        if background:  # the server gives its locks in the order in which they were asked for
            self._turns.wait_until_free()
        with self._writers, self._begun(lambda writer: writer.begin_writing(locks, wait=wait)) as (writer, raw):
            inside.writer, inside.depth, began = writer, 1, time.monotonic()
            thread = note_begin(locks=True)
            try:
                yield writer
                transaction, mark = writer.changes.own_mark()
                commit(raw, self._connections, transaction, partial(_is_written, transaction, mark))
            except BaseException:
                writer.numbers.forget()
                raise
            finally:
                inside.writer, inside.depth = None, 0
                note_end(thread)
                if background:
                    self._turns.had_turn(time.monotonic() - began)

    @contextmanager
    def _savepoint(
        self, writer: PostgresTransaction, locks: Sequence[str] | None, *, wait: bool
    ) -> Iterator[PostgresTransaction]:
        inside = self._inside
        name, before = f"depth_{inside.depth}", writer.kept_by_a_savepoint()
        inside.depth += 1
        try:
            with translated(self._address):
                writer.lock(locks, wait=wait)
                writer.connection.execute(f"SAVEPOINT {name}")
                try:
                    yield writer
                except BaseException:
                    writer.numbers.forget()
                    if not writer.connection.raw.closed:
                        writer.connection.execute(f"ROLLBACK TO SAVEPOINT {name}")
                        writer.restore(before)
                    raise
                writer.connection.execute(f"RELEASE SAVEPOINT {name}")
        finally:
            inside.depth -= 1

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        self.check_usable()
        if self._inside.shared and self._inside.writer is not None:
            with translated(self._address):
                yield self._inside.writer
            return
        with self._begun(PostgresTransaction.begin_reading) as (reader, raw):
            if self.standby is not None:
                self.standby.check(reader.connection)
            yield reader
            raw.execute("COMMIT")

    @contextmanager
    def _begun(
        self, begin: Callable[[PostgresTransaction], None]
    ) -> Iterator[tuple[PostgresTransaction, StoreConnection]]:
        """A transaction that has begun, on a connection that works; one that ends inside it raises StoreUnavailable."""
        deadline = time.monotonic() + self._connections.wait_seconds
        while True:
            with self._connections.connection() as raw, translated(self._address, raw):
                self.check_usable()
                transaction = self._transaction(raw)
                try:
                    begin(transaction)
                except psycopg.Error as fault:
                    # Nothing is done yet: a connection that ended while nobody used it is replaced by another.
                    if is_lost(fault, raw) and time.monotonic() < deadline:
                        raw.close()
                        continue
                    raise
                yield transaction, raw
                return

    def stats(self, scope: str) -> dict[str, Any]:
        with self.read() as reader:
            server, size = reader.connection.execute(
                "SELECT current_setting('server_version'), "
                "(SELECT CAST(sum(pg_total_relation_size(c.oid)) AS BIGINT) FROM pg_class c "
                "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r')"
            ).fetchone()
            return {
                **figures(reader, scope),
                "bytes_on_disk": size if scope == "/" else None,
                "schema_version": SCHEMA_VERSION,
                "database": f"PostgreSQL {server}",
                "vector_extension": None,
                "behind_ms": None if self.standby is None else self.standby.behind_ms(reader.connection),
            }

    def verify(self, on_progress: Progress | None = None) -> Verification:
        with self.read() as reader:
            return maintenance.verify(reader, _CHECKS, (partial(_invalid_indexes, reader),), _problem_of, on_progress)

    def rebuild(self, on_progress: Progress | None = None) -> None:
        with self.atomic() as writer:
            for table in _DERIVED:
                writer.connection.execute(f"DELETE FROM {table}")
            maintenance.rebuild(writer, on_progress)
            writer.connection.execute(
                "INSERT INTO scope_tag (tag_id, scope_id) SELECT DISTINCT p.tag_id, r.scope_id FROM record_tag p "
                "JOIN record r ON r.id = p.record_id"
            )

    def vacuum(self) -> int:
        self.check_outside()
        before = self._bytes()
        with self.atomic() as writer:
            drop_unused(writer)
        self.compact()
        return before - self._bytes()

    def compact(self) -> None:
        """Free the space of what was deleted, for new rows; what is at the end of a table goes back to the disk."""
        self.check_outside()
        with translated(self._address), self._connections.connection() as raw:
            tables = raw.execute("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema()")
            names = ", ".join(name for (name,) in tables.fetchall())
            raw.execute("SET statement_timeout = 0")
            try:
                raw.execute(f"VACUUM (ANALYZE) {names}".encode())
            finally:
                self._connections.configure(raw)

    def _bytes(self) -> int:
        size: int = self.stats("/")["bytes_on_disk"]
        return size

    def backup(self, target: str | os.PathLike[str], on_progress: Progress | None = None) -> str:
        raise InvalidInput(
            f"{self.path} is on a server: back it up there (pg_dump --schema={self._address.schema}, or the server's "
            f"own backups), or copy it to a file: recallite copy '{self.path}' {os.fspath(target)}"
        )

    def rekey(self, key: str | None) -> None:
        raise InvalidInput(f"{self.path} is on a server, which encrypts its disks itself: a key is for files")

    def tenants(self) -> list[TenantRow]:
        """The roles that are confined to a scope, by name."""
        with translated(self._address), self._connections.connection() as raw:
            return tenants_in(raw)

    def grant_tenant(self, role: str, scope: str) -> TenantRow:
        """Let a role use a scope and what is below it, and nothing else; it replaces another scope of that role.

        Raises InvalidInput for a role that is not there, or that nothing confines.
        """
        with self._granting() as raw:
            return grant(raw, role, scope)

    def revoke_tenant(self, role: str) -> None:
        """Take from a role all that it may do. Raises NotFound if it has no scope."""
        with self._granting() as raw:
            revoke(raw, role)

    @contextmanager
    def _granting(self) -> Iterator[StoreConnection]:
        """A transaction on privileges: PostgreSQL has no two of them wait for each other."""
        self.check_outside()
        with translated(self._address), self._connections.connection() as raw, raw.transaction():
            raw.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"recallite {self._address.schema}",))
            yield raw

    def prove_erasure(self, erased: Erased) -> ErasureReceipt:
        self.check_outside()
        return prove(self, erased)

    def drop_snapshot(self) -> None:
        remove_snapshot(self.snapshot_path)

    def close(self) -> None:
        if os.getpid() != self._process or self._closed:
            return
        self.check_outside()
        self._closed = True
        self._connections.close()

    def _refuse_unfinished(self) -> None:
        with self.read() as reader:
            mark = reader.meta.copy_mark()
        if mark is not None:
            self._connections.close()
            raise unfinished_copy(self.path, mark)

    def _transaction(self, raw: StoreConnection) -> PostgresTransaction:
        transaction: PostgresTransaction | None = raw.transaction_on_it
        if transaction is None:
            made = PostgresTransaction if self.confined_to is None else ConfinedTransaction
            transaction = made(raw, self.path, self._address.schema, self._add_names, self._derive)
            transaction.vector_type, transaction.snapshot.path = self._vector_type, self.snapshot_path
            raw.transaction_on_it = transaction
        return transaction

    def _add_names(self, table: str, column: str, names: Sequence[str]) -> None:
        """Add names in a transaction of their own: writers of different scopes would wait for each other's words.

        What the writer does not commit leaves names that nothing has, which `vacuum` drops.
        """
        with self._naming, self._connections.connection() as raw:
            if raw.transaction_on_it is None:
                adapt(raw)
            # The writer's commit comes later in the WAL, and takes this one along to the disk.
            raw.execute("BEGIN; SET LOCAL synchronous_commit = off")
            added = statement(add_names_sql(table, column, self.confined_to is not None))
            psycopg.RawCursor(raw).execute(added, (TextArray(sorted(names)),))
            raw.execute("COMMIT")


def _is_written(transaction: int | None, mark: int, connection: StoreConnection) -> bool:
    """Whether the row of the feed that a transaction has marked itself with is there."""
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM feed WHERE sequence = %s AND xid::text = %s)", (mark, str(transaction))
    ).fetchone()
    return bool(row and row[0])
