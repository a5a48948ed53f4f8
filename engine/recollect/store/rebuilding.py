"""Making everything derived afresh from the records; repair never asks the broken index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from recollect.store import feed, sessions, vectors, writing
from recollect.store.arrays import id_array
from recollect.store.connection import MEMORY
from recollect.store.lexicon import Lexicon
from recollect.store.schema import MIGRATIONS, PACKED_SQL
from recollect.store.store import Store
from recollect.text.normalise import content_hash
from recollect.text.tokens import tokenize

__all__ = ["bytes_on_disk", "compact", "drop_unused", "rebuild", "vacuum"]

Progress = Callable[[int, int | None], None]
_BATCH = 2000


def rebuild(store: Store, lexicon: Lexicon, on_progress: Progress | None = None) -> None:
    """Words, FTS, sketches and hashes from the records, in one transaction. Bad vectors go and are made again later."""
    with store.atomic() as connection:
        _recreate(connection)
        connection.execute("INSERT INTO kind (name) SELECT DISTINCT kind FROM record")
        connection.execute(f"INSERT INTO record_packed SELECT r.id, {PACKED_SQL} FROM record r")
        _open_epoch(connection)
        lexicon.forget_unsaved()
        total = connection.execute("SELECT count(*) FROM record").get
        done, last = 0, 0
        while rows := _texts(connection, last):
            ids = [row[0] for row in rows]
            words = [tokenize(context or "") + tokenize(text) for _, text, context in rows]
            writing.put_words(connection, lexicon, ids, words)
            connection.executemany(
                "UPDATE record SET content_hash = ?1 WHERE id = ?2 AND content_hash IS NOT ?1",
                [(content_hash(text, context), record_id) for record_id, text, context in rows],
            )
            last = ids[-1]
            done += len(rows)
            if on_progress is not None:
                on_progress(done, total)
        sessions.rebuild_words(connection)
        _mend_vectors(connection)
        vectors.rebuild_packed(connection)
        feed.append(connection, "reload", 0)


def vacuum(store: Store, lexicon: Lexicon) -> None:
    """Give space back: drop what nothing refers to, then compact the file."""
    with store.atomic() as connection:
        drop_unused(connection)
    lexicon.forget_unsaved()
    with store.exclusive() as connection:
        compact(connection)


def drop_unused(connection: apsw.Connection) -> None:
    """In a write transaction: drop words and tags that no record has, and merge FTS5's segments."""
    used: set[int] = set()
    for (blob,) in connection.execute("SELECT terms FROM record_terms"):
        used.update(memoryview(blob).cast("i"))
    unused = [row[0] for row in connection.execute("SELECT id FROM term") if row[0] not in used]
    if unused:
        _open_epoch(connection)
        connection.execute("DELETE FROM term WHERE id IN (SELECT value FROM carray(?))", (id_array(unused),))
        feed.append(connection, "reload", 0)
    connection.execute("INSERT INTO record_fts (record_fts) VALUES ('optimize')")
    connection.execute("INSERT INTO session_fts (session_fts) VALUES ('optimize')")
    connection.execute("DELETE FROM tag WHERE NOT EXISTS (SELECT 1 FROM record_tag r WHERE r.tag_id = tag.id)")


def compact(connection: apsw.Connection) -> bool:
    """Outside a transaction: rewrite the file without free space and empty its WAL.

    False where a reader of an older state keeps the WAL as it is.
    """
    connection.execute("VACUUM").fetchall()
    busy: Any = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy[0]


def bytes_on_disk(path: str) -> int:
    """The size of the database with its WAL."""
    if path == MEMORY:
        return 0
    return sum(Path(path + suffix).stat().st_size for suffix in ("", "-wal") if Path(path + suffix).exists())


def _texts(connection: apsw.Connection, after_id: int) -> list[tuple[int, str, str | None]]:
    rows: Any = connection.execute(
        "SELECT id, text, context FROM record WHERE id > ? ORDER BY id LIMIT ?", (after_id, _BATCH)
    ).fetchall()
    return list(rows)


def _recreate(connection: apsw.Connection) -> None:
    """Drop the derived tables, whole or broken, and create them as the schema has them."""
    connection.execute("REINDEX").fetchall()
    _drop(connection, "record_fts")
    _drop(connection, "session_fts")
    for table in ("vector_packed", "record_packed", "kind", "record_terms", "term"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _derived_statements():
        connection.execute(statement).fetchall()


def _drop(connection: apsw.Connection, table: str) -> None:
    """Drop a virtual table even when its module cannot open it."""
    try:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    except apsw.Error:
        for (shadow,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ? || '\\_%' ESCAPE '\\'",
            (table,),
        ).fetchall():
            connection.execute(f'DROP TABLE "{shadow}"')
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        connection.execute("DELETE FROM sqlite_schema WHERE name = ?", (table,))
        connection.execute("PRAGMA writable_schema = RESET").fetchall()


def _derived_statements() -> list[str]:
    """The statements of the schema that create derived tables."""
    wanted = (
        "CREATE TABLE kind ",
        "CREATE TABLE record_packed ",
        "CREATE TABLE vector_packed ",
        "CREATE TABLE term ",
        "CREATE TABLE record_terms ",
        "CREATE VIRTUAL TABLE record_fts ",
        "INSERT INTO record_fts ",
        "CREATE VIRTUAL TABLE session_fts ",
    )
    code = "\n".join(line for line in MIGRATIONS[0].splitlines() if not line.startswith("--"))
    return [statement for part in code.split(";") if (statement := part.strip()).startswith(wanted)]


def _open_epoch(connection: apsw.Connection) -> None:
    connection.execute(
        "INSERT INTO meta VALUES ('lexicon_epoch', '1') "
        "ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
    )


def _mend_vectors(connection: apsw.Connection) -> None:
    """Leave only whole sets of sound vectors of one embedder; records without go back to pending.

    Token codes that cannot be right go too; `reembed` makes them again.
    """
    connection.execute(
        "UPDATE embedder SET active = 0 WHERE id != (SELECT e.id FROM embedder e WHERE e.active "
        "ORDER BY (SELECT count(*) FROM vector v WHERE v.embedder_id = e.id) DESC, e.id LIMIT 1)"
    )
    connection.execute(
        "DELETE FROM vector WHERE record_id NOT IN (SELECT id FROM record) OR embedder_id NOT IN "
        "(SELECT id FROM embedder) OR length(value) != (SELECT 4 * dimension FROM embedder e WHERE e.id = embedder_id)"
    )
    connection.execute(
        "DELETE FROM token_code WHERE vector_id NOT IN (SELECT id FROM vector) OR typeof(codes) != 'blob' "
        "OR length(codes) % 8"
    )
    bad = vectors.unsound(connection)
    connection.execute("DELETE FROM vector WHERE record_id IN (SELECT value FROM carray(?))", (id_array(bad),))
    connection.execute(
        "DELETE FROM vector WHERE (record_id, embedder_id) IN (SELECT record_id, embedder_id FROM vector "
        "GROUP BY record_id, embedder_id HAVING max(part) + 1 != count(*))"
    )
    for state, other, exists in (("pending", "embedding_state = 'embedded'", "NOT EXISTS"),
                                 ("embedded", "embedding_state != 'embedded'", "EXISTS")):  # fmt: skip
        connection.execute(
            f"UPDATE record SET embedding_state = '{state}' WHERE {other} AND {exists} (SELECT 1 FROM vector v "
            "JOIN embedder e ON e.id = v.embedder_id AND e.active WHERE v.record_id = record.id)"
        )
