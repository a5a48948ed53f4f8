"""A transaction of PostgreSQL: the repositories on one connection, and the locks that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

from recallite.errors import StoreUnavailable
from recallite.store.sql.derived import WordNumbers
from recallite.store.sql.repository import insert_sql
from recallite.store.transaction import Writer
from recallite_postgres.connection import (
    BytesArray,
    IdArray,
    Inserter,
    PostgresConnection,
    StoreConnection,
    TextArray,
    adapt,
)
from recallite_postgres.repositories import (
    SEEN_BY_READERS,
    ConfinedCache,
    ConfinedLexicon,
    PostgresBlocks,
    PostgresChanges,
    PostgresConditions,
    PostgresCopying,
    PostgresErasure,
    PostgresRecords,
    PostgresSessions,
    PostgresSnapshot,
    PostgresVectors,
)

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
    copying: PostgresCopying
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
        self, raw: StoreConnection, path: str, schema: str, add_names: Callable[[str, str, Sequence[str]], None]
    ) -> None:
        adapt(raw)
        connection = PostgresConnection(raw)
        self._inserter = Inserter(connection)
        super().__init__(connection, path, WordNumbers(), PostgresConditions(TextArray))
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
        wanted = {None} if names is None or len(names) > _MOST_LOCKS else set(names) - self._locked
        if not wanted:
            return
        try_ = "" if wait else "try_"
        whole = self._key(None)
        if wanted == {None}:
            got = self.connection.execute(f"SELECT pg_{try_}advisory_xact_lock(?)", (whole,)).fetchall()
        else:
            got = self.connection.execute(
                f"SELECT pg_{try_}advisory_xact_lock_shared(?1) UNION ALL "
                f"SELECT pg_{try_}advisory_xact_lock(value) FROM carray(?2)",
                (whole, IdArray(sorted(map(self._key, wanted)))),
            ).fetchall()
        if any(row[0] is False for row in got):
            raise StoreUnavailable(f"{self.path} is locked by another connection; nothing was written. Try again")
        self._locked |= wanted

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
        listed = rows if isinstance(rows, list) else list(rows)
        if not self._inserter.insert(table, columns.split(", "), listed):
            self.connection.executemany(insert_sql(table, columns), listed)

    def add_names(self, table: str, column: str, names: Sequence[str]) -> None:
        missing = names if self.confined and table == "term" else self._missing(table, column, names)
        if missing and None in self._locked:
            self.connection.execute(add_names_sql(table, column, self.confined), (TextArray(missing),))
        elif missing:
            self._add_names(table, column, missing)

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
