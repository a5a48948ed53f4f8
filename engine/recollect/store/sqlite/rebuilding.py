"""Deriving everything from the records again; repair never asks a broken index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import msgspec

from recollect.store.protocol import Progress
from recollect.store.rows import read_rows
from recollect.store.sql.repository import TAGS_SQL
from recollect.store.sqlite.arrays import id_array
from recollect.store.sqlite.schema import MIGRATIONS, PACKED_SQL
from recollect.text.normalise import content_hash
from recollect.text.record_words import record_words, written_words

if TYPE_CHECKING:
    from recollect.store.sqlite.transaction import SqliteTransaction


_BATCH = 2000
_DERIVED = (
    "vector_packed", "record_packed", "kind", "record_terms", "term", "standing", "statement", "statement_key",
)  # fmt: skip


class _Text(NamedTuple):
    id: int
    text: str
    context: str | None
    tags: str
    indexed: int


def rebuild(tx: SqliteTransaction, on_progress: Progress | None = None) -> None:
    """Words, packed columns and vectors, and hashes from the records. Unsound vectors are removed."""
    _recreate(tx)
    tx.connection.execute("INSERT INTO kind (name) SELECT DISTINCT kind FROM record")
    tx.connection.execute(f"INSERT INTO record_packed SELECT r.id, {PACKED_SQL} FROM record r WHERE r.indexed")
    tx.supersessions.rebuild()
    _open_epoch(tx)
    tx.numbers.forget()
    total = tx.connection.execute("SELECT count(*) FROM record").get
    done, last = 0, 0
    while rows := _texts(tx, last):
        ids = [row[0] for row in rows]
        shown = [row for row in rows if row.indexed]
        words = [
            record_words(written_words(row.text, row.context), row.context, msgspec.json.decode(row.tags))
            for row in shown
        ]
        if shown:
            tx.lexicon.put([row.id for row in shown], words)
        tx.standing.derive(ids)
        tx.statements.derive(ids)
        tx.connection.executemany(
            "UPDATE record SET content_hash = ?1 WHERE id = ?2 AND content_hash IS NOT ?1",
            [(content_hash(row.text, row.context), row.id) for row in rows],
        )
        last = ids[-1]
        done += len(rows)
        if on_progress is not None:
            on_progress(done, total)
    tx.sessions.rebuild_words()
    _mend_vectors(tx)
    tx.vectors.rebuild_packed()
    tx.changes.append("reload", 0)


def drop_unused(tx: SqliteTransaction) -> None:
    """Drop words and tags that no record has, and merge FTS5's segments, which keep what was deleted until then."""
    used: set[int] = set()
    for (blob,) in tx.connection.execute("SELECT terms FROM record_terms"):
        used.update(memoryview(blob).cast("i"))
    unused = [row[0] for row in tx.connection.execute("SELECT id FROM term") if row[0] not in used]
    if unused:
        _open_epoch(tx)
        tx.connection.execute("DELETE FROM term WHERE id IN (SELECT value FROM carray(?))", (id_array(unused),))
        tx.changes.append("reload", 0)
    tx.connection.execute("INSERT INTO session_fts (session_fts) VALUES ('optimize')")
    tx.connection.execute("DELETE FROM tag WHERE NOT EXISTS (SELECT 1 FROM record_tag r WHERE r.tag_id = tag.id)")


def _texts(tx: SqliteTransaction, after_id: int) -> list[_Text]:
    rows: Any = tx.connection.execute(
        f"SELECT r.id, r.text, r.context, {TAGS_SQL}, r.indexed FROM record r WHERE r.id > ? ORDER BY r.id LIMIT ?",
        (after_id, _BATCH),
    )
    return read_rows(rows, _Text, "record")


def _recreate(tx: SqliteTransaction) -> None:
    """Drop the derived tables, whole or broken, and create them as the schema has them."""
    tx.connection.execute("REINDEX").fetchall()
    _drop(tx, "session_fts")
    for table in _DERIVED:
        tx.connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _derived_statements():
        tx.connection.execute(statement).fetchall()


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


def _derived_statements() -> list[str]:
    """The statements of the schema that create derived tables."""
    wanted = (
        *(f"CREATE TABLE {table} " for table in _DERIVED),
        "CREATE VIRTUAL TABLE session_fts ",
    )
    code = "\n".join(line for line in "".join(MIGRATIONS).splitlines() if not line.startswith("--"))
    return [statement for part in code.split(";") if (statement := part.strip()).startswith(wanted)]


def _open_epoch(tx: SqliteTransaction) -> None:
    tx.connection.execute(
        "INSERT INTO meta VALUES ('lexicon_epoch', '1') "
        "ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
    )


def _mend_vectors(tx: SqliteTransaction) -> None:
    """Leave only whole sets of sound vectors of one embedder; records without go back to pending.

    Token codes that cannot be right go too; `reembed` makes them again.
    """
    tx.connection.execute(
        "UPDATE embedder SET active = 0 WHERE id != (SELECT e.id FROM embedder e WHERE e.active "
        "ORDER BY (SELECT count(*) FROM vector v WHERE v.embedder_id = e.id) DESC, e.id LIMIT 1)"
    )
    tx.connection.execute(
        "DELETE FROM vector WHERE record_id NOT IN (SELECT id FROM record) OR embedder_id NOT IN "
        "(SELECT id FROM embedder) OR length(value) != (SELECT 4 * dimension FROM embedder e WHERE e.id = embedder_id)"
    )
    tx.connection.execute(
        "DELETE FROM token_code WHERE vector_id NOT IN (SELECT id FROM vector) OR typeof(codes) != 'blob' "
        "OR length(codes) % 8"
    )
    bad = tx.vectors.unsound()
    tx.connection.execute("DELETE FROM vector WHERE record_id IN (SELECT value FROM carray(?))", (id_array(bad),))
    tx.connection.execute(
        "DELETE FROM vector WHERE (record_id, embedder_id) IN (SELECT record_id, embedder_id FROM vector "
        "GROUP BY record_id, embedder_id HAVING max(part) + 1 != count(*))"
    )
    for state, other, exists in (("pending", "embedding_state = 'embedded'", "NOT EXISTS"),
                                 ("embedded", "embedding_state != 'embedded'", "EXISTS")):  # fmt: skip
        tx.connection.execute(
            f"UPDATE record SET embedding_state = '{state}' WHERE {other} AND {exists} (SELECT 1 FROM vector v "
            "JOIN embedder e ON e.id = v.embedder_id AND e.active WHERE v.record_id = record.id)"
        )
