"""Documents and their chunks, as rows. What writes runs inside `Store.atomic()`, what reads inside `read()` too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from recollect.store import changing, feed, sessions
from recollect.store.arrays import id_array
from recollect.store.rows import read_row
from recollect.store.writing import intern_scopes, intern_sources, put_tags

__all__ = [
    "KIND",
    "Chunk",
    "DocumentRow",
    "chunks_of",
    "delete",
    "find",
    "find_many",
    "listed",
    "move_chunks",
    "note_read",
    "purge_scope",
    "put",
    "rename_source",
    "settle",
    "sources_of",
    "with_content",
    "with_id",
]

KIND = "chunk"


class DocumentRow(NamedTuple):
    """A document as it is stored; times are microseconds since 1970 UTC, `mtime_ns` is the file's, in nanoseconds."""

    id: int
    public_id: str
    source_id: int
    source: str
    scope: str
    title: str | None
    media_type: str
    content_hash: bytes
    chunking: str
    size_bytes: int
    mtime_ns: int | None
    inode: int | None
    read_at: int
    metadata: str | None
    problem: str | None
    chunks: int
    created_at: int
    updated_at: int


class Chunk(NamedTuple):
    """A stored chunk: its row id, what it says, and what may change without embedding it again."""

    id: int
    text: str
    context: str | None
    position: int
    metadata: str | None
    created_at: int
    tags: str
    embedding_state: str


_SELECT = (
    "SELECT d.id, d.public_id, d.source_id, o.name, s.path, d.title, d.media_type, d.content_hash, d.chunking, "
    "d.size_bytes, d.mtime_ns, d.inode, d.read_at, d.metadata, d.problem, d.chunks, d.created_at, d.updated_at "
    "FROM document d JOIN source o ON o.id = d.source_id JOIN scope s ON s.id = o.scope_id"
)
_OWN = (
    "title", "media_type", "content_hash", "chunking", "size_bytes", "mtime_ns", "inode", "read_at", "metadata",
    "problem", "chunks", "updated_at",
)  # fmt: skip


def find(connection: apsw.Connection, scope: str, source: str) -> DocumentRow | None:
    """The document of this source in this very scope."""
    return _one(connection.execute(f"{_SELECT} WHERE s.path = ? AND o.name = ?", (scope, source)))


def find_many(connection: apsw.Connection, scope: str) -> dict[str, DocumentRow]:
    """Every document of this very scope, by source."""
    rows = connection.execute(f"{_SELECT} WHERE s.path = ?", (scope,))
    return {row[3]: read_row(row, DocumentRow, "document") for row in rows}


def with_id(connection: apsw.Connection, public_id: str, scope: str) -> DocumentRow | None:
    """The document with this id, where it stands in a scope or below; a foreign id is absent like a missing one."""
    seen, bound = _within(scope)
    return _one(connection.execute(f"{_SELECT} WHERE d.public_id = ? AND {seen}", (public_id, *bound)))


def with_content(connection: apsw.Connection, scope: str, content_hash: bytes) -> list[DocumentRow]:
    """The documents of these bytes in this very scope, oldest first."""
    rows = connection.execute(f"{_SELECT} WHERE d.content_hash = ? AND s.path = ? ORDER BY d.id", (content_hash, scope))
    return [read_row(row, DocumentRow, "document") for row in rows]


def listed(connection: apsw.Connection, scope: str, *, limit: int | None = None) -> list[DocumentRow]:
    """The documents of a scope and those below it, in the order of their sources."""
    seen, bound = _within(scope)
    rows = connection.execute(
        f"{_SELECT} WHERE {seen} ORDER BY o.name, d.id LIMIT ?", (*bound, -1 if limit is None else limit)
    )
    return [read_row(row, DocumentRow, "document") for row in rows]


def chunks_of(connection: apsw.Connection, source_id: int) -> list[Chunk]:
    """The chunks of a document, in order."""
    rows = connection.execute(
        "SELECT r.id, r.text, r.context, r.position, r.metadata, r.created_at, "
        "(SELECT json_group_array(t.name ORDER BY rt.place) FROM record_tag rt JOIN tag t ON t.id = rt.tag_id "
        "WHERE rt.record_id = r.id), r.embedding_state FROM record r "
        f"WHERE r.source_id = ? AND r.kind = '{KIND}' AND r.valid_to IS NULL ORDER BY r.position, r.id",
        (source_id,),
    )
    return [read_row(row, Chunk, "chunk") for row in rows]


def put(connection: apsw.Connection, scope: str, source: str, public_id: str, columns: dict[str, Any]) -> None:
    """Insert the document of a source, or change it; `columns` are all of `DocumentRow`'s own."""
    scope_id = intern_scopes(connection, {scope})[scope]
    source_id = intern_sources(connection, {(scope_id, source)})[scope_id, source]
    values = [columns[name] for name in _OWN]
    connection.execute(
        f"INSERT INTO document (public_id, source_id, created_at, {', '.join(_OWN)}) "
        f"VALUES (?, ?, ?, {', '.join('?' * len(_OWN))}) ON CONFLICT (source_id) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in _OWN),
        (public_id, source_id, columns["updated_at"], *values),
    )


def note_read(connection: apsw.Connection, seen: Sequence[tuple[int | None, int, int, bytes]]) -> None:
    """(inode, time, row id, content hash) of documents whose files were read at that time and had this content."""
    connection.executemany("UPDATE document SET inode = ?, read_at = ? WHERE id = ? AND content_hash = ?", seen)


def move_chunks(
    connection: apsw.Connection, moved: Sequence[tuple[Chunk, int, str | None, int, Sequence[str]]]
) -> None:
    """Give kept chunks another position, metadata, time of creation or tags, where these differ."""
    changed, tagged = [], []
    for chunk, position, metadata, created_at, tags in moved:
        if (chunk.position, chunk.metadata, chunk.created_at) != (position, metadata, created_at):
            changed.append((position, metadata, created_at, chunk.id))
        if tuple(msgspec.json.decode(chunk.tags)) != tuple(tags):
            tagged.append((chunk.id, tuple(tags)))
    connection.executemany("UPDATE record SET position = ?, metadata = ?, created_at = ? WHERE id = ?", changed)
    connection.executemany("DELETE FROM record_tag WHERE record_id = ?", [(row_id,) for row_id, _ in tagged])
    put_tags(connection, tagged)
    ids = sorted({row[3] for row in changed} | {row_id for row_id, _ in tagged})
    if ids:
        feed.append_ids(connection, "update", ids)


def rename_source(connection: apsw.Connection, document: DocumentRow, source: str) -> None:
    """Give a document's source another name, which no other source of its scope has."""
    connection.execute("UPDATE source SET name = ? WHERE id = ?", (source, document.source_id))


def delete(connection: apsw.Connection, rows: Iterable[DocumentRow]) -> int:
    """Purge documents with their chunks and all that belongs to these; returns how many chunks there were."""
    sources = [row.source_id for row in rows]
    connection.execute("DELETE FROM document WHERE source_id IN (SELECT value FROM carray(?))", (id_array(sources),))
    chunks = [
        row[0]
        for row in connection.execute(
            f"SELECT id FROM record WHERE kind = '{KIND}' AND valid_to IS NULL "
            "AND source_id IN (SELECT value FROM carray(?))",
            (id_array(sources),),
        )
    ]
    changing.delete(connection, chunks)
    changing.drop_empty_sources(connection, sources)
    return len(chunks)


def sources_of(connection: apsw.Connection, record_ids: Sequence[int]) -> list[int]:
    """The documents, by source id, of those of these records that are chunks."""
    rows = connection.execute(
        f"SELECT DISTINCT source_id FROM record WHERE kind = '{KIND}' AND id IN (SELECT value FROM carray(?))",
        (id_array(record_ids),),
    )
    return [row[0] for row in rows if row[0] is not None]


def settle(connection: apsw.Connection, source_ids: Sequence[int]) -> None:
    """After chunks were forgotten by themselves: a document without any goes too, one that lacks some is cut anew
    when it is next read.
    """
    standing = f"(SELECT count(*) FROM record r WHERE r.source_id = document.source_id AND r.kind = '{KIND}')"
    connection.execute(
        f"UPDATE document SET chunking = '', chunks = {standing} "
        f"WHERE source_id IN (SELECT value FROM carray(?)) AND chunks > {standing}",
        (id_array(source_ids),),
    )
    connection.execute(
        "DELETE FROM document WHERE source_id IN (SELECT value FROM carray(?)) AND chunks = 0 AND chunking = ''",
        (id_array(source_ids),),
    )
    changing.drop_empty_sources(connection, source_ids)


def purge_scope(connection: apsw.Connection, scope: str) -> int:
    """Remove every document of a scope and those below it; returns how many there were."""
    found = listed(connection, scope)
    delete(connection, found)
    return len(found)


def _within(scope: str) -> tuple[str, tuple[str, ...]]:
    condition, bound = sessions.within(scope)
    return f"s.id IN (SELECT id FROM scope WHERE {condition})", bound


def _one(rows: Any) -> DocumentRow | None:
    row = rows.fetchone()
    return None if row is None else read_row(row, DocumentRow, "document")
