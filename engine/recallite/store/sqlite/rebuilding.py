"""Deriving everything from the records again, in tables that are created anew: repair never asks a broken index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from recallite.store.sql import rebuilding
from recallite.store.sqlite import fts5
from recallite.store.sqlite.schema import DERIVED, MESSAGE_WORDS
from recallite.store.store import Progress

if TYPE_CHECKING:
    from recallite.store.sqlite.transaction import SqliteTransaction


def rebuild(tx: SqliteTransaction, on_progress: Progress | None = None, *, fts: bool = False) -> None:
    """Make words and hashes from the records anew, and with `fts` the FTS5 table. Unsound vectors are removed."""
    _recreate(tx)
    if fts:
        fts5.create(tx.connection)
    tx.connection.execute("DELETE FROM token_code WHERE typeof(codes) != 'blob'")
    rebuilding.rebuild(tx, on_progress)
    tx.records.list_texts()
    tx.sessions.rebuild_words()


def drop_unused(tx: SqliteTransaction) -> None:
    """Drop words and tags that no record has, and merge FTS5's segments, which keep what was deleted until then."""
    rebuilding.drop_unused(tx)
    tx.connection.execute("INSERT INTO session_fts (session_fts) VALUES ('optimize')")
    fts5.merge(tx.connection)


def _recreate(tx: SqliteTransaction) -> None:
    """Drop the derived tables, whole or broken, and create them as the schema has them."""
    tx.connection.execute("REINDEX").fetchall()
    _drop(tx, "session_fts")
    fts5.drop_rest(tx.connection)
    _drop(tx, "memories_fts")
    tx.connection.execute(MESSAGE_WORDS)
    for table, create in DERIVED.items():
        tx.connection.execute(f"DROP TABLE IF EXISTS {table}")
        tx.connection.execute(create).fetchall()


def _drop(tx: SqliteTransaction, table: str) -> None:
    """Drop a virtual table even when its module cannot open it."""
    try:
        tx.connection.execute(f"DROP TABLE IF EXISTS {table}")
    except apsw.Error:
        for (shadow,) in tx.connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ? || '\\_%' ESCAPE '\\'", (table,)
        ).fetchall():
            tx.connection.execute(f'DROP TABLE "{shadow}"')
        tx.connection.execute("PRAGMA writable_schema = ON").fetchall()
        tx.connection.execute("DELETE FROM sqlite_schema WHERE name = ?", (table,))
        tx.connection.execute("PRAGMA writable_schema = RESET").fetchall()
