"""Tables of documents and of the embedding cache, and views of them with readable names.

They belong to the initial migration. A document's chunks are records of kind "chunk" with its source.
"""

from __future__ import annotations

__all__ = ["DOCUMENT_SCHEMA"]


def _iso(column: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%fZ', {column} / 1e6, 'unixepoch')"


DOCUMENT_SCHEMA = f"""
-- Documents: the bytes that were read, and how they were chunked.
CREATE TABLE document (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    public_id    TEXT NOT NULL UNIQUE,
    source_id    INTEGER NOT NULL UNIQUE REFERENCES source(id),
    title        TEXT,
    media_type   TEXT NOT NULL,
    content_hash BLOB NOT NULL,
    chunking     TEXT NOT NULL,
    size_bytes   INTEGER NOT NULL,
    mtime_ns     INTEGER,
    inode        INTEGER,
    read_at      INTEGER NOT NULL,
    metadata     TEXT,
    -- The part of the metadata that the caller gave; it is kept when the bytes change.
    given        TEXT,
    problem      TEXT,
    chunks       INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
);
CREATE INDEX document_hash ON document(content_hash);

-- Derived: vectors by the hash of text and context, so that no text is embedded twice. `used` is a counter; the lowest
-- is the least recently used.
CREATE TABLE embedding_cache (
    id           INTEGER PRIMARY KEY,
    content_hash BLOB NOT NULL,
    embedder_id  INTEGER NOT NULL REFERENCES embedder(id) ON DELETE CASCADE,
    parts        BLOB NOT NULL,
    codes        BLOB,
    used         INTEGER NOT NULL,
    UNIQUE (content_hash, embedder_id)
);
CREATE INDEX embedding_cache_used ON embedding_cache(used);

CREATE VIEW documents AS
SELECT d.public_id AS id, o.name AS source, d.title, d.media_type, s.path AS scope, d.chunks, d.size_bytes,
       lower(hex(d.content_hash)) AS content_hash, d.metadata, d.problem,
       {_iso("d.created_at")} AS created_at, {_iso("d.updated_at")} AS updated_at
  FROM document d
  JOIN source o ON o.id = d.source_id
  JOIN scope s ON s.id = o.scope_id;

-- label is the first tag; in the index of a workspace it is the label of the file.
CREATE VIEW chunks AS
SELECT r.public_id AS id, d.public_id AS document_id, o.name AS source, r.position, r.text AS content, r.context,
       json_extract(r.metadata, '$.lines[0]') AS start_line, json_extract(r.metadata, '$.lines[1]') AS end_line,
       json_extract(r.metadata, '$.page') AS page, r.metadata, r.embedding_state,
       (SELECT t.name FROM record_tag rt JOIN tag t ON t.id = rt.tag_id WHERE rt.record_id = r.id AND rt.place = 0)
           AS label
  FROM document d
  JOIN source o ON o.id = d.source_id
  JOIN record r ON r.source_id = d.source_id AND r.kind = 'chunk' AND r.valid_to IS NULL;
"""
