"""FTS5: the scores of a part of a table, and a table of all texts for people and other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from recallite.model.reports import Problem
from recallite.store.sql.repository import IN_ARRAY, Condition
from recallite.store.sql.services import bm25 as scores_of
from recallite.store.sql.verifying import found
from recallite.store.sqlite.connection import id_array

# BM25 over a part of a table: FTS5's formula with the statistics of that part. `bm25()` uses statistics of the whole
# table, so its scores reveal what is in other scopes. Over the whole table the scores are those of `bm25()` to the last
# bit.


class FullTextTable(NamedTuple):
    """An FTS5 table of one column, the tables that its rowids refer to, and their id column as conditions name it."""

    name: str
    source: str
    row_id: str


def bm25(
    connection: apsw.Connection, table: FullTextTable, words: Sequence[str], part: Condition | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows with any of `words` where `part` is true (None: all), ascending, and their BM25; higher is better."""
    if part is None:
        joined, condition, values = "", "", ()
        # FTS5 keeps both in its "averages" record.
        block = connection.execute(f"SELECT block FROM {table.name}_data WHERE id = 1").get
        records, total = (*_varints(block or b""), 0, 0)[:2]
    else:
        joined, values = f"JOIN {table.source}", part.values
        condition = f"AND {table.row_id} = {{}} AND ({part.sql})"
        sizes: Any = connection.execute(
            f"SELECT z.sz, count(*) FROM {table.name}_docsize z {joined} WHERE 1 {condition.format('z.id')} "
            "GROUP BY z.sz",
            values,
        ).fetchall()
        records = sum(count for _, count in sizes)
        total = sum(_varints(size)[0] * count for size, count in sizes)
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table.name}_places USING fts5vocab(main, {table.name}, 'instance')"
    )
    holders = [
        np.array(
            connection.execute(
                f"SELECT v.doc, count(*) FROM temp.{table.name}_places v {joined} "
                f"WHERE v.term = ? {condition.format('v.doc')} GROUP BY v.doc",
                (word, *values),
            ).fetchall(),
            dtype=np.int64,
        ).reshape(-1, 2)
        for word in words
    ]
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(pairs[:, 0] for pairs in holders)]))
    counts = np.zeros((len(words), len(rows)))
    for count, pairs in zip(counts, holders, strict=True):
        count[np.searchsorted(rows, pairs[:, 0])] = pairs[:, 1]
    return rows, scores_of(counts, _lengths(connection, table, rows), records, total)


def _varints(blob: bytes) -> list[int]:
    """SQLite's variable-length integers: seven bits a byte, the high bit set on all but the last."""
    numbers, value = [], 0
    for byte in blob:
        value = (value << 7) | (byte & 0x7F)
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return numbers


def _lengths(connection: apsw.Connection, table: FullTextTable, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The number of words in each of these rows."""
    sizes = dict(connection.execute(f"SELECT id, sz FROM {table.name}_docsize WHERE id {IN_ARRAY}", (id_array(rows),)))
    return np.array([_varints(sizes[row])[0] for row in rows.tolist()], dtype=np.float64)


# Full-text search in SQL, for people and other programs: `memories_fts`, an FTS5 table over the texts of all records.
# Recall does not use it. Its content is the table `record`, from which triggers keep it whoever writes.

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
