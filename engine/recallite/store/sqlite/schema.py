"""The schema, as numbered migrations. `PRAGMA user_version` says which have run; `application_id` says it is ours.

`record` holds one row per version of a memory. The open version (`recorded_until IS NULL`) keeps its row id for life,
so
links, tags and access counts stay with it; a changed text moves the old version to a row of its own.
Times are microseconds since 1970 UTC; the views show them as ISO 8601.
"""

from __future__ import annotations

from recallite.store.sqlite.key_lists_schema import KEY_LISTS_SCHEMA
from recallite.store.sqlite.service_schema import SERVICE_SCHEMA
from recallite.store.sqlite.supersession_schema import SUPERSESSION_SCHEMA

APPLICATION_ID = 0x52656361  # "Reca"
# Five 384-dimensional float32 vectors fill a page of 8192; at 4096 two do, and bulk writing took 1.7 times as long.
PAGE_SIZE_BYTES = 8192

_INITIAL = f"""
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE scope (
    id   INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE
);

CREATE TABLE source (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id INTEGER NOT NULL REFERENCES scope(id),
    name     TEXT NOT NULL,
    metadata TEXT,
    UNIQUE (scope_id, name)
);
CREATE INDEX source_name ON source(name);

CREATE TABLE record (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    public_id       TEXT NOT NULL,
    kind            TEXT NOT NULL,
    scope_id        INTEGER NOT NULL REFERENCES scope(id),
    text            TEXT NOT NULL,
    context         TEXT,
    importance      REAL NOT NULL DEFAULT 0.5 CHECK (importance BETWEEN 0 AND 1),
    -- The importance that ranking uses, if consolidation has lowered `importance`; recency applies at query time.
    base_importance REAL CHECK (base_importance BETWEEN 0 AND 1),
    pinned          INTEGER NOT NULL DEFAULT 0,
    topic           TEXT,
    source_id       INTEGER REFERENCES source(id),
    position        INTEGER,
    created_at      INTEGER NOT NULL,
    -- When what the text says begins and ends to hold (the end is excluded); NULL: from created_at; a moment, or open.
    valid_from        INTEGER,
    valid_until     INTEGER,
    -- 1: both were found in the text, and not given.
    valid_resolved  INTEGER NOT NULL DEFAULT 0 CHECK (valid_resolved IN (0, 1)),
    updated_at      INTEGER NOT NULL,
    expires_at      INTEGER,
    -- How long it lives from when it is touched, in microseconds; NULL: expires_at is moved by nobody.
    expires_after   INTEGER CHECK (expires_after > 0),
    recorded_from      INTEGER NOT NULL,
    recorded_until        INTEGER,
    -- Derived from `supersession`, for all versions of a record: since when the store knows that it is superseded,
    -- until when (NULL: no successor expires), and when it stopped to hold.
    superseded_at    INTEGER,
    superseded_until INTEGER,
    held_until       INTEGER,
    metadata        TEXT,
    content_hash    BLOB NOT NULL,
    embedding_state TEXT NOT NULL CHECK (embedding_state IN ('embedded', 'pending', 'refused', 'none')),
    -- 0: recall leaves it out. Nothing is derived from it, so that no index has it.
    indexed         INTEGER NOT NULL DEFAULT 1 CHECK (indexed IN (0, 1))
);
CREATE UNIQUE INDEX record_public_id ON record(public_id) WHERE recorded_until IS NULL;
CREATE INDEX record_version ON record(public_id, recorded_until) WHERE recorded_until IS NOT NULL;
-- With what says whether a version is current, so that the records of scopes are counted in the index alone.
CREATE INDEX record_scope ON record(scope_id, kind, recorded_until, expires_at, superseded_at, superseded_until);
CREATE INDEX record_source ON record(source_id, position) WHERE source_id IS NOT NULL;
CREATE INDEX record_topic ON record(topic) WHERE topic IS NOT NULL;
CREATE INDEX record_expires ON record(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX record_unembedded ON record(id) WHERE embedding_state != 'embedded';
CREATE INDEX record_superseded ON record(superseded_until) WHERE superseded_until IS NOT NULL;

CREATE TABLE access (
    record_id   INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE,
    count       INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL
);

CREATE TABLE tag (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE record_tag (
    record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
    place     INTEGER NOT NULL,
    tag_id    INTEGER NOT NULL REFERENCES tag(id),
    PRIMARY KEY (record_id, place)
) WITHOUT ROWID;
CREATE INDEX record_tag_by_tag ON record_tag(tag_id, record_id);

CREATE TABLE link (
    source_id  INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
    target_id  INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
    type       TEXT NOT NULL,
    strength   REAL NOT NULL CHECK (strength BETWEEN 0 AND 1),
    created_at INTEGER NOT NULL,
    reason     TEXT,
    PRIMARY KEY (source_id, target_id, type)
) WITHOUT ROWID;
CREATE INDEX link_target ON link(target_id);
{SUPERSESSION_SCHEMA}
{KEY_LISTS_SCHEMA}
CREATE TABLE embedder (
    id          INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    dimension   INTEGER NOT NULL,
    vector_type TEXT NOT NULL DEFAULT 'float32' CHECK (vector_type IN ('float32', 'float16')),
    active      INTEGER NOT NULL DEFAULT 0
);

-- The original vectors, little-endian: float32, as sqlite-vec reads them, or float16 where the embedder's row says so.
-- A text longer than the embedder's window has several parts.
CREATE TABLE vector (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    record_id   INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
    part        INTEGER NOT NULL,
    embedder_id INTEGER NOT NULL REFERENCES embedder(id),
    value       BLOB NOT NULL
);
CREATE UNIQUE INDEX vector_record ON vector(record_id, part, embedder_id);

-- Texts that an embedder refused; they are not sent to it again.
CREATE TABLE refusal (
    record_id   INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
    embedder_id INTEGER NOT NULL REFERENCES embedder(id) ON DELETE CASCADE,
    reason      TEXT NOT NULL,
    PRIMARY KEY (record_id, embedder_id)
) WITHOUT ROWID;

-- Derived: kinds with a number. A write numbers those of new records; the trigger is for programs that change a kind.
CREATE TABLE kind (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE TRIGGER record_kind AFTER UPDATE OF kind ON record
WHEN NOT EXISTS (SELECT 1 FROM kind WHERE name = new.kind) BEGIN
    INSERT INTO kind (name) VALUES (new.kind);
END;
-- Derived: for late interaction, 1 bit per component of the vector of each token, in order; may be absent.
CREATE TABLE token_code (
    vector_id INTEGER PRIMARY KEY REFERENCES vector(id) ON DELETE CASCADE,
    codes     BLOB NOT NULL
);
-- For counts and sizes without reading the codes.
CREATE INDEX token_code_size ON token_code(length(codes));

-- Derived: numbered words, and for each record its words (ascending, packed as `store/sql/term_lists.py` does) with
-- their counts and flags (uint8), as `text/record_words.py` has them.
CREATE TABLE term (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL UNIQUE
);
CREATE TABLE record_terms (
    record_id INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE,
    terms     BLOB NOT NULL,
    counts    BLOB NOT NULL
);

-- Derived: the records that are standing instructions ("instruction") or preferences ("preference").
CREATE TABLE standing (
    record_id INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE,
    name      TEXT NOT NULL
);

-- The change feed: what an in-memory index has to read again. A row covers the ids first..last.
CREATE TABLE feed (
    sequence  INTEGER PRIMARY KEY AUTOINCREMENT,
    first_id  INTEGER NOT NULL,
    last_id   INTEGER NOT NULL,
    operation TEXT NOT NULL CHECK (operation IN ('insert', 'text', 'update', 'delete', 'link', 'frames', 'reload'))
);

CREATE VIEW memories AS
SELECT r.public_id AS id, r.text AS content, r.kind, s.path AS scope, r.context, r.importance, r.pinned, r.topic,
       o.name AS source, r.position, r.metadata,
       (SELECT json_group_array(t.name) FROM record_tag rt JOIN tag t ON t.id = rt.tag_id
         WHERE rt.record_id = r.id) AS tags,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.valid_from / 1e6, 'unixepoch') AS valid_from,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.valid_until / 1e6, 'unixepoch') AS valid_until,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.updated_at / 1e6, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.expires_at / 1e6, 'unixepoch') AS expires_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.superseded_at / 1e6, 'unixepoch') AS superseded_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.held_until / 1e6, 'unixepoch') AS held_until,
       coalesce(a.count, 0) AS access_count, r.embedding_state
  FROM record r
  JOIN scope s ON s.id = r.scope_id
  LEFT JOIN source o ON o.id = r.source_id
  LEFT JOIN access a ON a.record_id = r.id
 WHERE r.recorded_until IS NULL AND r.kind != 'chunk';  -- chunks have a view of their own

-- With sqlite-vec loaded, of vectors that are kept as float32:
-- SELECT text, vec_distance_cosine(vector, :query) AS distance ... ORDER BY distance LIMIT 5.
CREATE VIEW memory_vectors AS
SELECT r.public_id AS id, r.text, r.kind, s.path AS scope,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.superseded_at / 1e6, 'unixepoch') AS superseded_at, v.part, v.value AS vector
  FROM vector v
  JOIN embedder e ON e.id = v.embedder_id AND e.active
  JOIN record r ON r.id = v.record_id AND r.recorded_until IS NULL
  JOIN scope s ON s.id = r.scope_id;
"""

MIGRATIONS: tuple[str, ...] = (_INITIAL + SERVICE_SCHEMA,)
# Schemas up to this one were never released, and had several forms.
UNRELEASED = 9
SCHEMA_VERSION = UNRELEASED + len(MIGRATIONS)
