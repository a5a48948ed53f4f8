"""Verifying and deriving again, as PostgreSQL does it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg

from recallite.model.reports import Problem, Verification
from recallite.store.sql import rebuilding, verifying
from recallite.store.sql.verifying import REBUILD, found
from recallite.store.store import Progress
from recallite_postgres.schema import TABLES
from recallite_postgres.transaction import PostgresTransaction

_CHECKS = {
    "tag of a record that its scope does not name": (
        "SELECT r.public_id FROM record r JOIN record_tag p ON p.record_id = r.id WHERE NOT EXISTS "
        "(SELECT 1 FROM scope_tag g WHERE g.tag_id = p.tag_id AND g.scope_id = r.scope_id)"
    ),
    "message without words, or words without message": (
        "SELECT 'message ' || id FROM session_message WHERE id NOT IN (SELECT message_id FROM session_words)"
    ),
}
# `term` keeps its rows: `drop_unused` removes those that no record has.
_DERIVED = [table.name for table in TABLES if table.derived and table.name != "term"]


def verify(tx: PostgresTransaction, on_progress: Progress | None = None) -> Verification:
    """Compare everything derived with the records. Nothing is changed."""
    return verifying.verify(tx, _CHECKS, (lambda: _invalid_indexes(tx),), _problem_of, on_progress)


def rebuild(tx: PostgresTransaction, on_progress: Progress | None = None) -> None:
    """Make words and hashes from the records anew. Unsound vectors are removed."""
    for table in _DERIVED:
        tx.connection.execute(f"DELETE FROM {table}")
    rebuilding.rebuild(tx, on_progress)
    tx.sessions.rebuild_words()
    tx.connection.execute(
        "INSERT INTO scope_tag (tag_id, scope_id) SELECT DISTINCT p.tag_id, r.scope_id FROM record_tag p "
        "JOIN record r ON r.id = p.record_id"
    )


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
