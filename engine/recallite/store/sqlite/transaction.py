"""A transaction of SQLite: the repositories on one connection."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import apsw

from recallite.store.columns import Derive
from recallite.store.sql.derived import WordNumbers
from recallite.store.sql.repository import insert_sql
from recallite.store.sql.schema import TABLES
from recallite.store.sqlite.connection import id_array, sqlite_vec_version, value_array
from recallite.store.sqlite.faults import raise_translated
from recallite.store.sqlite.key_lists import KeptRuns
from recallite.store.sqlite.maintenance import SqliteErasure
from recallite.store.sqlite.repositories import (
    SqliteBlocks,
    SqliteChanges,
    SqliteConditions,
    SqliteIndexSnapshot,
    SqliteRecords,
    SqliteSessions,
    SqliteStatements,
    SqliteVectors,
)
from recallite.store.transaction import Known, Writer

if TYPE_CHECKING:
    from types import TracebackType

    from recallite.store.sqlite.store import SqliteStore

# Scopes are among them, and a store may have very many.
_MOST_KNOWN = 1024
_NUMBERED = tuple(table.name for table in TABLES if ("NEW_ID", "") in table.columns.values())


class SqliteTransaction(Writer):
    """The repositories that all databases share, and SQLite's own."""

    connection: apsw.Connection
    blocks: SqliteBlocks
    changes: SqliteChanges
    erasure: SqliteErasure
    records: SqliteRecords
    sessions: SqliteSessions
    snapshot: SqliteIndexSnapshot
    statements: SqliteStatements

    def __init__(
        self,
        connection: apsw.Connection,
        path: str,
        numbers: WordNumbers,
        derive: Derive,
        vector_type: str = "float32",
        beside: SqliteTransaction | None = None,
    ) -> None:
        """`beside` is the writer that is open when a reader is opened."""
        self.beside = beside
        # A random number for the connections that were opened together, and see a file go on, never back.
        self.opened: int = _random() if beside is None else beside.opened
        self.runs: dict[str, KeptRuns] = {} if beside is None else beside.runs
        super().__init__(connection, path, numbers, SqliteConditions(self.array), derive)
        self.vector_type = vector_type
        if sqlite_vec_version(connection) is not None:
            self.vectors = SqliteVectors(self)
        # What was read in this transaction, or in an earlier one if nobody else has written since; None outside one.
        self._known: dict[Hashable, Any] | None = None
        self._known_before: dict[Hashable, Any] = {}
        self._version_before: int | None = None
        # The last number that `new_ids` has given in each table, and whether this transaction has given any.
        self._last_ids: dict[str, int] = {}
        self._gave_ids = False
        # The name of the commit that a write transaction becomes, a random number, and what had changed before it.
        self.commit_name = 0
        # The last row that it has added to the feed: its number and that name.
        self.fed: tuple[int, int] | None = None
        self._changes_before = 0

    def begin_writing(self) -> None:
        """Prepare for a write transaction: what earlier ones read holds if no other connection has written since."""
        if self.connection.data_version() != self._version_before:
            self._known_before, self._last_ids = {}, {}
        self._known, self._gave_ids = self._known_before, False
        self.commit_name, self.fed = _random(), None
        self._changes_before = self.connection.total_changes()

    @property
    def wrote(self) -> bool:
        """Whether this write transaction has changed anything."""
        return self.connection.total_changes() != self._changes_before

    def before_commit(self) -> None:
        """Store the last numbers that a write transaction has given."""
        if self._gave_ids:
            rows = ", ".join(f"('last_{name}', CAST(:{name} AS TEXT))" for name in _NUMBERED)
            self.connection.execute(
                f"INSERT INTO meta VALUES {rows} ON CONFLICT (key) DO UPDATE SET value = excluded.value", self._last_ids
            )

    def end_writing(self) -> None:
        """Note the end of the write transaction; what was rolled back has been forgotten."""
        self._known, self._version_before = None, self.connection.data_version()

    def forget_known(self) -> None:
        self._known_before.clear()

    def known(self, key: Hashable, read: Callable[[], Known]) -> Known:
        if self._known is None:
            return read()
        if key in self._known:
            return self._known[key]  # type: ignore[no-any-return]
        value = read()
        if value is not None:  # what is not there may be added
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = value
        return value

    id_array = staticmethod(id_array)
    array = byte_array = staticmethod(value_array)

    @property
    def sees_one_commit(self) -> bool:
        return True

    def new_ids(self, table: str, count: int) -> list[int]:
        # What is rolled back gives its numbers to nobody: `_last_ids` only grows until others have written.
        self._last_ids = self._last_ids or self.read_last_ids()
        last = self._last_ids[table]
        self._last_ids[table] = last + count
        self._gave_ids = True
        return list(range(last + 1, last + 1 + count))

    @property
    def last_record_id(self) -> int:
        """The last row id that a record was given, as far as this connection knows; 0 if it has given none."""
        return self._last_ids.get("record", 0)

    def number_from(self, table: str, last: int) -> None:
        """Have `new_ids` give numbers above this one, and above those of all rows, in a table that it numbers."""
        if table in _NUMBERED:
            self._last_ids = self._last_ids or self.read_last_ids()
            self._last_ids[table] = max(last, self.read_last_ids()[table])
            self._gave_ids = True

    def read_last_ids(self) -> dict[str, int]:
        """The last number that was given in each table that `new_ids` numbers; 0 where none was."""
        return {
            name: self.connection.execute(
                f"SELECT max(coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_{name}'), 0), "
                f"coalesce((SELECT max(id) FROM {name}), 0))"
            ).get
            for name in _NUMBERED
        }

    def insert(self, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        if not isinstance(rows, list) or rows:
            self.connection.executemany(insert_sql(table, columns), rows)

    def add_names(self, table: str, column: str, names: Sequence[str]) -> None:
        self.connection.execute(
            f"INSERT INTO {table} ({column}) SELECT value FROM carray(?) WHERE true ON CONFLICT DO NOTHING",
            (self.array(names),),
        )


def _random() -> int:
    return int.from_bytes(os.urandom(8), "big") >> 1


class Reading:
    """A read transaction, on a connection that nobody else reads from.

    A class, since recalls are short and a generator takes three times as long.
    """

    __slots__ = ("_reader", "_store")

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __enter__(self) -> SqliteTransaction:
        reader = self._reader = self._store.take_reader()
        try:
            reader.connection.execute("BEGIN")
            reader.changes.begin_reading()
        except BaseException as fault:
            self.__exit__(type(fault), fault, None)
            raise
        return reader

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        store, reader = self._store, self._reader
        try:
            if fault is not None:
                raise_translated(fault, store.path, store.failed(reader), encrypted=store.key is not None)
        finally:
            store.give_back(reader, sound=fault is None)
