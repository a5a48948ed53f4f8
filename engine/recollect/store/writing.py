"""Inserting records. Every function runs inside `Store.atomic()` and leaves derived tables and the feed in step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
from msgspec import Struct

from recollect.records import EmbeddingState
from recollect.store import feed, refusals, vectors
from recollect.store.lexicon import Lexicon

__all__ = [
    "COLUMNS",
    "Row",
    "insert",
    "intern_scopes",
    "intern_sources",
    "next_id",
    "put_tags",
    "put_words",
    "refused_rows",
    "vector_rows",
]


class Row(Struct, kw_only=True):
    """A record as it is written: checked, tokenised and, where it could be, embedded."""

    public_id: str
    kind: str
    scope: str
    text: str
    context: str | None
    importance: float
    base_importance: float | None = None
    pinned: bool
    topic: str | None
    source: str | None
    position: int | None
    created_at: int
    event_at: int | None
    updated_at: int
    expires_at: int | None
    valid_from: int
    valid_to: int | None = None
    metadata: str | None
    content_hash: bytes
    words: Sequence[str]
    tags: tuple[str, ...] = ()
    vectors: tuple[bytes, ...] = ()
    codes: tuple[bytes, ...] = ()
    pending: bool = False
    refused: str | None = None
    access_count: int = 0
    accessed_at: int | None = None

    @property
    def embedding_state(self) -> EmbeddingState:
        """embedded, refused (by the embedder, which says why), pending (the embedder failed) or none (keyword only)."""
        if self.vectors:
            return "embedded"
        return "refused" if self.refused is not None else "pending" if self.pending else "none"


COLUMNS = (
    "public_id, kind, scope_id, text, context, importance, base_importance, pinned, topic, source_id, position, "
    "created_at, event_at, updated_at, expires_at, valid_from, valid_to, metadata, content_hash, embedding_state"
)
_INSERT = f"INSERT INTO record (id, {COLUMNS}) VALUES (?, {', '.join('?' * 20)})"


def insert(
    connection: apsw.Connection,
    lexicon: Lexicon,
    rows: Sequence[Row],
    embedder: vectors.EmbedderRow | None,
) -> list[int]:
    """Insert records with tags, vectors, words and one feed row; returns their row ids, consecutive."""
    if not rows:
        return []
    first = next_id(connection)
    ids = list(range(first, first + len(rows)))
    scopes = intern_scopes(connection, {row.scope for row in rows})
    sources = intern_sources(connection, {(scopes[row.scope], row.source) for row in rows if row.source is not None})
    connection.executemany(
        _INSERT,
        (
            (
                record_id,
                row.public_id,
                row.kind,
                scopes[row.scope],
                row.text,
                row.context,
                row.importance,
                row.base_importance,
                row.pinned,
                row.topic,
                None if row.source is None else sources[scopes[row.scope], row.source],
                row.position,
                row.created_at,
                row.event_at,
                row.updated_at,
                row.expires_at,
                row.valid_from,
                row.valid_to,
                row.metadata,
                row.content_hash,
                row.embedding_state,
            )
            for record_id, row in zip(ids, rows, strict=True)
        ),
    )
    put_tags(connection, [(record_id, row.tags) for record_id, row in zip(ids, rows, strict=True) if row.tags])
    put_words(connection, lexicon, ids, [row.words for row in rows])
    if embedder is not None:
        vectors.insert(connection, embedder, vector_rows(ids, rows))
        refusals.add(connection, embedder.id, refused_rows(ids, rows))
    accessed = [
        (record_id, row.access_count, row.accessed_at)
        for record_id, row in zip(ids, rows, strict=True)
        if row.accessed_at is not None
    ]
    if accessed:
        connection.executemany("INSERT INTO access (record_id, count, accessed_at) VALUES (?, ?, ?)", accessed)
    feed.append(connection, "insert", first, ids[-1])
    return ids


def put_words(
    connection: apsw.Connection, lexicon: Lexicon, ids: Sequence[int], documents: Sequence[Sequence[str]]
) -> None:
    """Store the term lists of records, and their words for FTS5."""
    connection.executemany(
        "INSERT INTO record_terms (record_id, terms, counts) VALUES (?, ?, ?)",
        [
            (record_id, *term_list)
            for record_id, term_list in zip(ids, lexicon.number(connection, documents), strict=True)
        ],
    )
    connection.executemany(
        "INSERT INTO record_fts (rowid, words) VALUES (?, ?)",
        [(record_id, " ".join(words)) for record_id, words in zip(ids, documents, strict=True)],
    )


def put_tags(connection: apsw.Connection, tagged: Sequence[tuple[int, tuple[str, ...]]]) -> None:
    """Store tags in their order, new names added."""
    names = tuple({name for _, tags in tagged for name in tags})
    if not names:
        return
    connection.execute("INSERT OR IGNORE INTO tag (name) SELECT value FROM carray(?)", (apsw.carray(names),))
    tag_ids = dict(
        connection.execute(
            "SELECT name, id FROM tag WHERE name IN (SELECT value FROM carray(?))", (apsw.carray(names),)
        )
    )
    connection.executemany(
        "INSERT INTO record_tag (record_id, place, tag_id) VALUES (?, ?, ?)",
        [(record_id, place, tag_ids[name]) for record_id, tags in tagged for place, name in enumerate(tags)],
    )


def intern_scopes(connection: apsw.Connection, paths: set[str]) -> dict[str, int]:
    """The id of each scope, new ones added."""
    names = tuple(paths)
    connection.execute("INSERT OR IGNORE INTO scope (path) SELECT value FROM carray(?)", (apsw.carray(names),))
    return dict(
        connection.execute(
            "SELECT path, id FROM scope WHERE path IN (SELECT value FROM carray(?))", (apsw.carray(names),)
        )
    )


def intern_sources(connection: apsw.Connection, keys: set[tuple[int, str]]) -> dict[tuple[int, str], int]:
    """The id of each (scope id, name), new ones added; two statements a scope."""
    names_of: dict[int, list[str]] = {}
    for scope_id, name in keys:
        names_of.setdefault(scope_id, []).append(name)
    found: dict[tuple[int, str], int] = {}
    for scope_id in sorted(names_of):
        names = apsw.carray(tuple(sorted(names_of[scope_id])))
        connection.execute(
            "INSERT INTO source (scope_id, name) SELECT ?, value FROM carray(?) WHERE true ON CONFLICT DO NOTHING",
            (scope_id, names),
        )
        rows: Any = connection.execute(
            "SELECT name, id FROM source WHERE scope_id = ? AND name IN (SELECT value FROM carray(?))",
            (scope_id, names),
        )
        found.update({(scope_id, name): source_id for name, source_id in rows})
    return found


def vector_rows(ids: Sequence[int], rows: Sequence[Row]) -> list[tuple[int, int, bytes, bytes | None]]:
    """Every part of these rows, as `vectors.insert` takes them."""
    return [
        part
        for record_id, row in zip(ids, rows, strict=True)
        for part in vectors.Parts(row.vectors, row.codes).rows(record_id)
    ]


def refused_rows(ids: Sequence[int], rows: Sequence[Row]) -> dict[int, str]:
    """Why rows were refused, by row id, as `refusals.add` takes it."""
    return {record_id: row.refused for record_id, row in zip(ids, rows, strict=True) if row.refused is not None}


def next_id(connection: apsw.Connection) -> int:
    """The row id that the next record will get."""
    following: int = connection.execute(
        "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'record'), 0) + 1"
    ).get
    return following
