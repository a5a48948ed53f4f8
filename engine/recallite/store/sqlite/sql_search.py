"""Search in SQL, for people and other programs: `memories_fts` and `memories_vec`, which recall does not use.

`memories_fts` is an FTS5 table over the texts of all open records, `memories_vec` a vec0 table of sqlite-vec over their
vectors by the active embedder, in float32. Triggers keep both, whoever writes. The second is there once the store has
an embedder, and is made anew with another one, whose vectors are of another length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import apsw

from recallite.model.reports import Problem
from recallite.store.sql.maintenance import found

_OPEN = "recorded_until IS NULL"
_REMOVE = "INSERT INTO memories_fts (memories_fts, rowid, content) SELECT 'delete', old.id, old.text WHERE old."
_ADD = "INSERT INTO memories_fts (rowid, content) SELECT new.id, new.text WHERE new."
_CREATE_WORDS = f"""
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
       r.held_until IS NULL AS current
  FROM memories_fts f JOIN record r ON r.id = f.rowid JOIN scope s ON s.id = r.scope_id;
"""
_VECTORS = (
    "SELECT v.id, v.value, r.kind, r.scope_id FROM vector v JOIN embedder e ON e.id = v.embedder_id AND e.active "
    f"JOIN record r ON r.id = v.record_id AND r.{_OPEN} WHERE length(v.value) = 4 * e.dimension"
)
_INSERT = f"INSERT INTO memories_vec (rowid, vector, kind, scope_id) {_VECTORS}"
_CREATE_VECTORS = f"""
CREATE VIRTUAL TABLE memories_vec USING vec0(
    vector float[{{dimension}}] distance_metric=cosine, kind text, scope_id integer
);
CREATE TRIGGER memories_vec_insert AFTER INSERT ON vector BEGIN {_INSERT} AND v.id = new.id; END;
CREATE TRIGGER memories_vec_delete AFTER DELETE ON vector BEGIN DELETE FROM memories_vec WHERE rowid = old.id; END;
CREATE TRIGGER memories_vec_update AFTER UPDATE OF recorded_until, kind, scope_id ON record
WHEN (old.recorded_until, old.kind, old.scope_id) IS NOT (new.recorded_until, new.kind, new.scope_id) BEGIN
    DELETE FROM memories_vec WHERE rowid IN (SELECT id FROM vector WHERE record_id = new.id);
    {_INSERT} AND v.record_id = new.id;
END;
-- SELECT content FROM memory_nearest WHERE query MATCH :vector AND k = 10 ORDER BY distance
CREATE VIEW memory_nearest AS
SELECT n.vector AS query, n.k, n.distance, r.public_id AS id, r.text AS content, n.kind, s.path AS scope, n.scope_id,
       r.held_until IS NULL AS current
  FROM memories_vec n JOIN vector v ON v.id = n.rowid JOIN record r ON r.id = v.record_id
  JOIN scope s ON s.id = r.scope_id;
"""
# The views and triggers, the last made first.
_DROP_WORDS, _DROP_VECTORS = (
    "".join(f"DROP {kind} IF EXISTS {name};" for kind, name in re.findall(r"CREATE (VIEW|TRIGGER) (\w+)", made)[::-1])
    for made in (_CREATE_WORDS, _CREATE_VECTORS)
)
# The limit of sqlite-vec for a vec0 table.
_MOST_DIMENSIONS = 8192
SEARCH_TABLES = ("memories_fts", "memories_vec")
"""The tables; the names of their parts begin with theirs."""


def has_table(connection: apsw.Connection, name: str) -> bool:
    """Whether a store has a table of this name."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = ?", (name,)).get)


def create_search(connection: apsw.Connection) -> None:
    """Make the table of all texts, and of all vectors if the store has an embedder."""
    if not has_table(connection, "memories_fts"):
        connection.execute(_CREATE_WORDS).fetchall()
        connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")
    follow_embedder(connection)


def follow_embedder(connection: apsw.Connection) -> None:
    """Make the table of vectors as the active embedder needs it, where there is search in SQL."""
    if not has_table(connection, "memories_fts"):
        return
    connection.execute(_DROP_VECTORS).fetchall()
    drop_table(connection, "memories_vec")
    row = connection.execute("SELECT dimension FROM embedder WHERE active AND vector_type = 'float32'").fetchone()
    if row is not None and row[0] <= _MOST_DIMENSIONS:
        connection.execute(_CREATE_VECTORS.format(dimension=row[0])).fetchall()
        connection.execute(_INSERT)


def drop_search(connection: apsw.Connection) -> None:
    """Drop the tables with what belongs to them."""
    connection.execute(_DROP_WORDS + _DROP_VECTORS).fetchall()
    for name in SEARCH_TABLES:
        drop_table(connection, name)


def drop_table(connection: apsw.Connection, table: str) -> None:
    """Drop a virtual table even when its module cannot open it."""
    try:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    except apsw.Error:
        for (shadow,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ? || '\\_%' ESCAPE '\\'", (table,)
        ).fetchall():
            connection.execute(f'DROP TABLE "{shadow}"')
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        connection.execute("DELETE FROM sqlite_schema WHERE name = ?", (table,))
        connection.execute("PRAGMA writable_schema = RESET").fetchall()


def search_problems(connection: apsw.Connection) -> Iterator[Problem]:
    """Compare the tables, if there are any, with the records and their vectors."""
    if has_table(connection, "memories_fts"):
        rows = connection.execute(
            f"SELECT id FROM record WHERE {_OPEN} EXCEPT SELECT id FROM memories_fts_docsize UNION ALL SELECT * FROM "
            f"(SELECT id FROM memories_fts_docsize EXCEPT SELECT id FROM record WHERE {_OPEN})"
        )
        yield from found("record that SQL does not find by its words", [f"record {row_id}" for (row_id,) in rows])
    if has_table(connection, "memories_vec"):
        both = (f"SELECT * FROM ({_VECTORS})", "SELECT rowid, vector, kind, scope_id FROM memories_vec")
        rows = connection.execute(
            f"SELECT DISTINCT id FROM ({both[0]} EXCEPT {both[1]} UNION ALL SELECT * FROM ({both[1]} EXCEPT {both[0]}))"
        )
        yield from found("vector that SQL does not find", [f"vector {row_id}" for (row_id,) in rows])
