"""Documents and their chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from recallite.store.rows import read_row, read_rows
from recallite.store.sql.repository import IN_ARRAY, NO_LIMIT, TAGS_SQL, Repository, columns_sql, within
from recallite.store.sql.schema import columns_of
from recallite.store.values import CHUNK_KIND, Chunk, DocumentRow

_SELECT = (
    f"SELECT {columns_sql(DocumentRow._fields, of='d')} FROM document d JOIN source o ON o.id = d.source_id "
    "JOIN scope s ON s.id = o.scope_id"
)
_OWN = columns_of("document", without=("id", "public_id", "source_id", "created_at"))


class Documents(Repository):
    """The table `document`, and the records that are its chunks."""

    def find(self, scope: str, source: str) -> DocumentRow | None:
        """The document of a source in exactly this scope."""
        return _one(self._execute(f"{_SELECT} WHERE s.path = ? AND o.name = ?", (scope, source)))

    def find_many(self, scope: str) -> dict[str, DocumentRow]:
        """The documents of exactly this scope, by source."""
        rows = self._execute(f"{_SELECT} WHERE s.path = ?", (scope,))
        return {row[3]: read_row(row, DocumentRow, "document") for row in rows}

    def with_id(self, public_id: str, scope: str) -> DocumentRow | None:
        """The document with this id in a scope or its descendants; None if it is elsewhere."""
        seen, bound = within(scope)
        return _one(self._execute(f"{_SELECT} WHERE d.public_id = ? AND {seen}", (public_id, *bound)))

    def with_content(self, scope: str, content_hash: bytes) -> list[DocumentRow]:
        """The documents with these bytes in exactly this scope, oldest first."""
        rows = self._execute(f"{_SELECT} WHERE d.content_hash = ? AND s.path = ? ORDER BY d.id", (content_hash, scope))
        return read_rows(rows, DocumentRow, "document")

    def listed(self, scope: str, *, limit: int | None = None) -> list[DocumentRow]:
        """The documents of a scope and its descendants, by source."""
        seen, bound = within(scope)
        rows = self._execute(
            f"{_SELECT} WHERE {seen} ORDER BY o.name, d.id LIMIT ?", (*bound, NO_LIMIT if limit is None else limit)
        )
        return read_rows(rows, DocumentRow, "document")

    def chunks_of(self, source_id: int) -> list[Chunk]:
        """The chunks of a document, in order."""
        rows = self._execute(
            f"SELECT r.id, r.text, r.context, r.position, r.metadata, r.created_at, {TAGS_SQL}, r.embedding_state "
            "FROM record r "
            f"WHERE r.source_id = ? AND r.kind = '{CHUNK_KIND}' AND r.recorded_until IS NULL ORDER BY r.position, r.id",
            (source_id,),
        )
        return read_rows(rows, Chunk, "chunk")

    def put(self, scope: str, source: str, public_id: str, columns: dict[str, Any]) -> None:
        """Insert or replace the document of a source; `columns` are the fields of `DocumentRow` that are not keys."""
        scope_id = self._tx.scopes.intern({scope})[scope]
        source_id = self._tx.scopes.intern_sources({(scope_id, source)})[scope_id, source]
        values = [columns[name] for name in _OWN]
        self._execute(
            f"INSERT INTO document (public_id, source_id, created_at, {', '.join(_OWN)}) "
            f"VALUES (?, ?, ?, {', '.join('?' * len(_OWN))}) ON CONFLICT (source_id) DO UPDATE SET "
            + ", ".join(f"{name} = excluded.{name}" for name in _OWN),
            (public_id, source_id, columns["updated_at"], *values),
        )

    def note_read(self, seen: Sequence[tuple[int | None, int, int, bytes]]) -> None:
        """Note (inode, time, row id, content hash) of files that were read, for documents that have this content."""
        self._execute_many("UPDATE document SET inode = ?, read_at = ? WHERE id = ? AND content_hash = ?", seen)

    def move_chunks(self, moved: Sequence[tuple[Chunk, int, str | None, int, Sequence[str]]]) -> None:
        """Change position, metadata, time of creation and tags of chunks whose text is the same."""
        changed, tagged = [], []
        for chunk, position, metadata, created_at, tags in moved:
            if (chunk.position, chunk.metadata, chunk.created_at) != (position, metadata, created_at):
                changed.append((position, metadata, created_at, chunk.id))
            if tuple(msgspec.json.decode(chunk.tags)) != tuple(tags):
                tagged.append((chunk.id, tuple(tags)))
        self._execute_many("UPDATE record SET position = ?, metadata = ?, created_at = ? WHERE id = ?", changed)
        reworded = self._tx.records.replace_tags(tagged)
        if reworded:
            self._tx.changes.append_ids("text", reworded)
        ids = sorted({row[3] for row in changed} | {row_id for row_id, _ in tagged})
        if ids:
            self._tx.changes.append_ids("update", ids)

    def rename_source(self, document: DocumentRow, source: str) -> None:
        """Rename the source of a document; no other source of the scope may have the name."""
        self._execute("UPDATE source SET name = ? WHERE id = ?", (source, document.source_id))

    def delete(self, rows: Iterable[DocumentRow]) -> int:
        """Purge documents with their chunks; returns how many chunks."""
        sources = [row.source_id for row in rows]
        self._execute(f"DELETE FROM document WHERE source_id {IN_ARRAY}", (self._id_array(sources),))
        chunks = self._column(
            f"SELECT id FROM record WHERE kind = '{CHUNK_KIND}' AND recorded_until IS NULL AND source_id {IN_ARRAY}",
            (self._id_array(sources),),
        )
        self._tx.records.delete(chunks)
        self._tx.scopes.drop_empty_sources(sources)
        return len(chunks)

    def sources_of(self, record_ids: Sequence[int]) -> list[int]:
        """The source ids of the documents of which these records are chunks."""
        return self._column(
            f"SELECT DISTINCT source_id FROM record WHERE kind = '{CHUNK_KIND}' AND source_id IS NOT NULL "
            f"AND id {IN_ARRAY}",
            (self._id_array(record_ids),),
        )

    def settle(self, source_ids: Sequence[int]) -> None:
        """Delete documents that have lost all chunks, and have those that lost some chunked again at the next read."""
        left = f"(SELECT count(*) FROM record r WHERE r.source_id = document.source_id AND r.kind = '{CHUNK_KIND}')"
        self._execute(
            f"UPDATE document SET chunking = '', chunks = {left} WHERE source_id {IN_ARRAY} AND chunks > {left}",
            (self._id_array(source_ids),),
        )
        self._execute(
            f"DELETE FROM document WHERE source_id {IN_ARRAY} AND chunks = 0 AND chunking = ''",
            (self._id_array(source_ids),),
        )
        self._tx.scopes.drop_empty_sources(source_ids)

    def purge_scope(self, scope: str) -> int:
        """Remove every document of a scope and those below it; returns how many there were."""
        documents = self.listed(scope)
        self.delete(documents)
        return len(documents)


def _one(rows: Any) -> DocumentRow | None:
    row = rows.fetchone()
    return None if row is None else read_row(row, DocumentRow, "document")
