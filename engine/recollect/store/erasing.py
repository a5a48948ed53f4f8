"""Proof of an erasure: what stood in the store of some records, and whether any of its bytes still stand in the files.

Files are searched as bytes, not by queries: free pages, the slack of a page, a WAL and the sidecar count too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import apsw

from recollect.store import feed, sessions
from recollect.store.arrays import id_array
from recollect.store.byte_search import LEAST_BYTES, found_in
from recollect.store.raw import RawDatabase
from recollect.store.sidecar import part_of, path_of
from recollect.store.store import Store

__all__ = [
    "Traces",
    "add_names_gone",
    "drop_cached_vectors",
    "drop_unused_scopes",
    "found_in_files",
    "rows_by_table",
    "standing_in_tables",
    "traces",
]

# What is taken of a longer value, every so many bytes.
_PIECE_BYTES = 32
_EVERY_BYTES = 2048
_TEXTS = "text, context, topic, metadata, public_id"
_VECTORS = (
    "SELECT value FROM vector WHERE record_id IN (SELECT value FROM carray(?1))",
    "SELECT p.value FROM vector v JOIN vector_packed p USING (id) WHERE v.record_id IN (SELECT value FROM carray(?1))",
    "SELECT c.codes FROM vector v JOIN token_code c ON c.vector_id = v.id "
    "WHERE v.record_id IN (SELECT value FROM carray(?1))",
)
_NAMES = {
    ("term", "text"): "SELECT text FROM term WHERE id IN (SELECT value FROM carray(?))",
    ("tag", "name"): "SELECT name FROM tag WHERE id IN "
    "(SELECT tag_id FROM record_tag WHERE record_id IN (SELECT value FROM carray(?)))",
    ("source", "name"): "SELECT name FROM source WHERE id IN "
    "(SELECT source_id FROM record WHERE id IN (SELECT value FROM carray(?)))",
    ("scope", "path"): "SELECT path FROM scope WHERE id IN "
    "(SELECT scope_id FROM record WHERE id IN (SELECT value FROM carray(?)))",
}
# What the services keep of a scope, as columns by table.
_OF_SCOPES = {
    "session": ("name",),
    "session_snapshot": ("messages", "summary", "key_decisions"),
    "tool_pattern": ("task_type", "pattern"),
    "error_recovery": ("error_pattern", "error", "recovery"),
    "working_state": ("items",),
}
_IN_SCOPES = ("record", "source", "consolidation", *_OF_SCOPES)
# Tables of SQLite's modules: their rows are no rows of ours.
_SHADOWS = ("record_fts_", "session_fts_", "sqlite_")


class Traces:
    """Byte sequences of what is to be erased. `skipped` counts values that are too short to be told from chance."""

    def __init__(self) -> None:
        self.pieces: set[bytes] = set()
        self.skipped = 0
        # Words, tags, sources and scopes that go only where nothing else has them, by table and column.
        self.names: dict[tuple[str, str], set[str]] = {}

    def add(self, value: object) -> None:
        """Note the beginning, the end and places between of a text or BLOB."""
        data = value.encode() if isinstance(value, str) else value
        if not isinstance(data, bytes) or not data:
            return
        if len(data) < LEAST_BYTES:
            self.skipped += 1
            return
        for start in (*range(0, len(data), _EVERY_BYTES), max(0, len(data) - _PIECE_BYTES)):
            piece = data[start : start + _PIECE_BYTES]
            if len(piece) >= LEAST_BYTES and any(piece):
                self.pieces.add(piece)


def traces(connection: apsw.Connection, record_ids: Sequence[int], scopes: Iterable[str]) -> Traces:
    """What stands in the store of these open records with their closed versions, and of the services in `scopes`."""
    found = Traces()
    versions = _with_versions(connection, record_ids)
    for row in connection.execute(
        f"SELECT {_TEXTS} FROM record WHERE id IN (SELECT value FROM carray(?))", (id_array(versions),)
    ):
        for value in row:
            found.add(value)
    for statement in _VECTORS:
        for (value,) in connection.execute(statement, (id_array(versions),)):
            found.add(value)
    for (table, column), statement in _NAMES.items():
        ids = _terms(connection, versions) if table == "term" else versions
        found.names[table, column] = {name for (name,) in connection.execute(statement, (id_array(ids),))}
    for scope in scopes:
        condition, bound = sessions.within(scope)
        within = f"scope_id IN (SELECT id FROM scope WHERE {condition})"
        statements = [f"SELECT {', '.join(names)} FROM {table} WHERE {within}" for table, names in _OF_SCOPES.items()]
        statements.append(
            f"SELECT content, message FROM session_message WHERE session_id IN (SELECT id FROM session WHERE {within})"
        )
        statements.append(
            f"SELECT title, d.metadata, o.name FROM document d JOIN source o ON o.id = d.source_id WHERE o.{within}"
        )
        for statement in statements:
            for row in connection.execute(statement, bound):
                for value in row:
                    found.add(value)
    return found


def add_names_gone(connection: apsw.Connection, sought: Traces) -> None:
    """Note the names that are gone by now; a word that stands in a message of a session is not."""
    for (table, column), names in sought.names.items():
        kept: Any = connection.execute(
            f"SELECT {column} FROM {table} WHERE {column} IN (SELECT value FROM carray(?))",
            (apsw.carray((*names, "")),),
        )
        for name in names - {row[0] for row in kept}:
            if len(name.encode()) >= LEAST_BYTES and not (table == "term" and _in_a_message(connection, name)):
                sought.add(name)


def _in_a_message(connection: apsw.Connection, word: str) -> bool:
    quoted = '"' + word.replace('"', '""') + '"'
    found = connection.execute("SELECT 1 FROM session_fts WHERE session_fts MATCH ? LIMIT 1", (quoted,))
    return found.fetchone() is not None


def drop_cached_vectors(connection: apsw.Connection, record_ids: Sequence[int]) -> None:
    """Before these records are deleted, in the same transaction: remove their vectors that are kept by hash."""
    connection.execute(
        "DELETE FROM embedding_cache WHERE content_hash IN (SELECT content_hash FROM record "
        "WHERE id IN (SELECT value FROM carray(?)))",
        (id_array(_with_versions(connection, record_ids)),),
    )


def drop_unused_scopes(connection: apsw.Connection) -> None:
    """In a write transaction: remove the names of scopes in which nothing stands any more."""
    unused = " AND ".join(f"NOT EXISTS (SELECT 1 FROM {table} t WHERE t.scope_id = scope.id)" for table in _IN_SCOPES)
    connection.execute(f"DELETE FROM scope WHERE path != '/' AND {unused}")
    if connection.changes():
        feed.append(connection, "reload", 0)  # their numbers may be given anew


def rows_by_table(connection: apsw.Connection) -> dict[str, int]:
    """The number of rows of every table of ours."""
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        if not name.startswith(_SHADOWS) and name not in ("record_fts", "session_fts", "feed", "meta")
    ]
    return {name: connection.execute(f'SELECT count(*) FROM "{name}"').get for name in tables}


def files_of(path: str) -> list[Path]:
    """The database, its WAL and its sidecar, as far as they exist."""
    every = (path, f"{path}-wal", path_of(path), part_of(path))
    return [Path(each) for each in every if Path(each).exists()]


def standing_in_tables(connection: apsw.Connection, pieces: Iterable[bytes]) -> tuple[dict[str, int], set[bytes]]:
    """In how many rows of which columns any of these byte sequences stands, as {"table.column": rows}; and which do."""
    columns: Any = connection.execute(
        "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c "
        "WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND c.type IN ('TEXT', 'BLOB', '')"
    ).fetchall()
    rows: dict[str, int] = {}
    standing: set[bytes] = set()
    sought = tuple(pieces)
    for table, column in columns:
        if not sought or table.startswith(_SHADOWS):
            continue
        holds = f'instr(CAST(t."{column}" AS BLOB), s.value)'
        here: Any = connection.execute(
            f'SELECT s.value FROM carray(?) s WHERE EXISTS (SELECT 1 FROM "{table}" t WHERE {holds})',
            (apsw.carray(sought),),
        ).fetchall()
        if here:
            values = tuple(value for (value,) in here)
            standing.update(values)
            rows[f"{table}.{column}"] = connection.execute(
                f'SELECT count(*) FROM "{table}" t WHERE EXISTS (SELECT 1 FROM carray(?) s WHERE {holds})',
                (apsw.carray(values),),
            ).get
    return rows, standing


def found_in_files(store: Store, sought: Traces) -> tuple[dict[str, int], set[bytes]]:
    """The size of each file in bytes, by name, and those sequences that stand in any of them.

    Of an encrypted database the pages are searched as they read, free ones too; that takes its size in RAM.
    """
    sizes: dict[str, int] = {}
    found: set[bytes] = set()
    if store.key is not None:
        with store.exclusive() as connection:
            found |= found_in(BytesIO(connection.serialize("main")), sought.pieces)
    else:
        with store.exclusive(), RawDatabase(store.path) as database:
            found |= found_in(database, sought.pieces)
    for file in files_of(store.path):
        # Another handle that writes its sidecar, or removes one, may take a file away meanwhile.
        with suppress(FileNotFoundError):
            sizes[file.name] = file.stat().st_size
            if str(file) != store.path:
                with file.open("rb") as stream:
                    found |= found_in(stream, sought.pieces)
    return sizes, found


def _terms(connection: apsw.Connection, record_ids: Sequence[int]) -> list[int]:
    """The numbers of the words of these records."""
    terms: set[int] = set()
    for (blob,) in connection.execute(
        "SELECT terms FROM record_terms WHERE record_id IN (SELECT value FROM carray(?))", (id_array(record_ids),)
    ):
        terms.update(memoryview(blob).cast("i"))
    return sorted(terms)


def _with_versions(connection: apsw.Connection, record_ids: Sequence[int]) -> list[int]:
    """Row ids of these open records and of their closed versions."""
    closed = connection.execute(
        "SELECT v.id FROM record r JOIN record v ON v.public_id = r.public_id AND v.valid_to IS NOT NULL "
        "WHERE r.id IN (SELECT value FROM carray(?))",
        (id_array(record_ids),),
    )
    return [*record_ids, *(row[0] for row in closed)]
