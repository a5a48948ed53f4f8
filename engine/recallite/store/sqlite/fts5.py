"""Full-text search in SQL, for people and other programs: `memories_fts`, an FTS5 table over the texts of all records.

Recall does not use it. Its content is the table `record`, from which triggers keep it whoever writes.
"""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from recallite.model.reports import Problem
from recallite.store.sql.verifying import found

_OPEN = "recorded_until IS NULL"
_REMOVE = "INSERT INTO memories_fts (memories_fts, rowid, content) SELECT 'delete', old.id, old.text WHERE old."
_ADD = "INSERT INTO memories_fts (rowid, content) SELECT new.id, new.text WHERE new."
_CREATE = f"""
CREATE VIEW memories_fts_content AS SELECT id, text AS content FROM record WHERE {_OPEN};
CREATE VIRTUAL TABLE memories_fts USING fts5(
    content, content='memories_fts_content', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER memories_fts_insert AFTER INSERT ON record BEGIN {_ADD}{_OPEN}; END;
CREATE TRIGGER memories_fts_delete AFTER DELETE ON record BEGIN {_REMOVE}{_OPEN}; END;
CREATE TRIGGER memories_fts_update AFTER UPDATE OF text, recorded_until ON record BEGIN
    {_REMOVE}{_OPEN};
    {_ADD}{_OPEN};
END;
-- SELECT content FROM memory_search WHERE query MATCH 'mysql OR postgres' ORDER BY rank
CREATE VIEW memory_search AS
SELECT f.memories_fts AS query, f.rank, r.public_id AS id, f.content, r.kind, s.path AS scope,
       r.superseded_at IS NULL AS current
  FROM memories_fts f JOIN record r ON r.id = f.rowid JOIN scope s ON s.id = r.scope_id;
"""
_DROP = """
DROP VIEW IF EXISTS memory_search;
DROP TRIGGER IF EXISTS memories_fts_insert;
DROP TRIGGER IF EXISTS memories_fts_delete;
DROP TRIGGER IF EXISTS memories_fts_update;
DROP VIEW IF EXISTS memories_fts_content;
"""
NAMES = ("memories_fts", "memories_fts_")
"""The table, and what the names of its parts begin with."""


def exists(connection: apsw.Connection) -> bool:
    """Whether a store has the table."""
    name = "SELECT count(*) FROM sqlite_schema WHERE name = 'memories_fts'"
    return bool(connection.execute(name).get)


def create(connection: apsw.Connection) -> None:
    """Make the table of all texts."""
    connection.execute(_CREATE).fetchall()
    connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")


def drop_rest(connection: apsw.Connection) -> None:
    """Drop what belongs to the table, which its caller drops."""
    connection.execute(_DROP).fetchall()


def merge(connection: apsw.Connection) -> None:
    """Merge the segments, which keep what was deleted until then."""
    if exists(connection):
        connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('optimize')")


def problems(connection: apsw.Connection) -> Iterator[Problem]:
    """Compare the table, if there is one, with the records."""
    if exists(connection):
        rows = connection.execute(
            f"SELECT id FROM record WHERE {_OPEN} EXCEPT SELECT id FROM memories_fts_docsize UNION ALL SELECT * FROM "
            f"(SELECT id FROM memories_fts_docsize EXCEPT SELECT id FROM record WHERE {_OPEN})"
        )
        yield from found("record that SQL does not find by its words", [f"record {row_id}" for (row_id,) in rows])
