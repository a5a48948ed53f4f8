"""A transaction of SQLite: the repositories on one connection."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from recallite.store.sql.lexicon import WordNumbers
from recallite.store.sql.records import SqlRecords
from recallite.store.sql.transaction import SqlTransaction
from recallite.store.sqlite.arrays import id_array, value_array
from recallite.store.sqlite.blocks import SqliteBlocks
from recallite.store.sqlite.changes import SqliteChanges
from recallite.store.sqlite.conditions import SqliteConditions
from recallite.store.sqlite.connection import sqlite_vec_version
from recallite.store.sqlite.copying import SqliteCopying
from recallite.store.sqlite.erasing import SqliteErasure
from recallite.store.sqlite.sessions import SqliteSessions
from recallite.store.sqlite.snapshot import SqliteIndexSnapshot
from recallite.store.sqlite.vectors import SqliteVectors


class SqliteTransaction(SqlTransaction):
    """The repositories that all databases share, and those of SQLite."""

    connection: apsw.Connection
    changes: SqliteChanges
    sessions: SqliteSessions
    # The writer that was open when a reader was opened.
    beside: SqliteTransaction | None = None

    def __init__(self, connection: apsw.Connection, path: str, numbers: WordNumbers) -> None:
        super().__init__(connection, path, numbers, SqliteConditions(self.array))
        if sqlite_vec_version(connection) is not None:
            self.vectors = SqliteVectors(self)
        self.records = SqlRecords(self)
        self.sessions = SqliteSessions(self)
        self.blocks = SqliteBlocks(self)
        self.changes = SqliteChanges(self)
        self.snapshot = SqliteIndexSnapshot(self)
        self.copying = SqliteCopying(self)
        self.erasure = SqliteErasure(self)

    id_array = staticmethod(id_array)
    array = byte_array = staticmethod(value_array)

    @property
    def sees_one_commit(self) -> bool:
        return True

    def new_ids(self, table: str, count: int) -> list[int]:
        first: int = self.connection.execute(
            "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0) + 1", (table,)
        ).get
        return list(range(first, first + count))

    def add_names(self, table: str, column: str, names: Sequence[str]) -> None:
        self.connection.execute(
            f"INSERT INTO {table} ({column}) SELECT value FROM carray(?) WHERE true ON CONFLICT DO NOTHING",
            (self.array(names),),
        )
