"""Tables of the services, of documents and of the embedding cache, and views of them with readable names.

They are part of the initial migration. Every row of a service belongs to a scope; that of an agent is
`<scope>/agents/<agent>`. The chunks of a document are records of kind "chunk" with its source.
The views run on SQLite 3.40 and later, and show rows with invalid values unchanged.
"""

from __future__ import annotations

from recallite.store.sql.sessions import SESSION_UPDATED


def _iso(column: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%fZ', {column} / 1e6, 'unixepoch')"


# A path up to its last slash.
_PARENT = "rtrim(path, replace(path, '/', ''))"

SERVICE_SCHEMA = f"""
-- Conversations. A message is a row: appending is one small insert, and two processes can append.
CREATE TABLE session (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id   INTEGER NOT NULL REFERENCES scope(id),
    name       TEXT NOT NULL,
    provider   TEXT,
    created_at INTEGER NOT NULL,
    UNIQUE (scope_id, name)
);
CREATE TABLE session_message (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    role       TEXT,
    content    TEXT NOT NULL,
    message    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (session_id, position)
);
-- Derived: the words of `content`, tokenised and stemmed like those of records.
CREATE VIRTUAL TABLE session_fts USING fts5(words, content='', contentless_delete=1, tokenize='ascii');

CREATE TABLE session_snapshot (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    public_id     TEXT NOT NULL UNIQUE,
    scope_id      INTEGER NOT NULL REFERENCES scope(id),
    session       TEXT,
    messages      TEXT NOT NULL,
    summary       TEXT NOT NULL,
    key_decisions TEXT NOT NULL,
    task_ids      TEXT NOT NULL,
    started_at    INTEGER,
    ended_at      INTEGER NOT NULL,
    total_cost    REAL NOT NULL,
    total_tokens  INTEGER NOT NULL
);
CREATE INDEX session_snapshot_scope ON session_snapshot(scope_id, ended_at);

-- How often a procedure was used; its record has name, description and pattern.
CREATE TABLE procedure_use (
    record_id     INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE,
    success_rate  REAL NOT NULL CHECK (success_rate BETWEEN 0 AND 1),
    use_count     INTEGER NOT NULL DEFAULT 0,
    success_count INTEGER NOT NULL DEFAULT 0
);

-- Sums of integers, so that averages are exact; `measured` counts the runs with a figure.
CREATE TABLE tool_pattern (
    scope_id        INTEGER NOT NULL REFERENCES scope(id),
    task_type       TEXT NOT NULL,
    pattern         TEXT NOT NULL,
    total_count     INTEGER NOT NULL,
    success_count   INTEGER NOT NULL,
    total_steps     INTEGER NOT NULL,
    steps_measured  INTEGER NOT NULL,
    total_tokens    INTEGER NOT NULL,
    tokens_measured INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (scope_id, task_type, pattern)
) WITHOUT ROWID;
CREATE TABLE error_recovery (
    scope_id      INTEGER NOT NULL REFERENCES scope(id),
    tool          TEXT NOT NULL,
    error_pattern TEXT NOT NULL,
    error         TEXT NOT NULL,
    recovery      TEXT NOT NULL,
    total_count   INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (scope_id, tool, error_pattern)
) WITHOUT ROWID;

-- What each cycle did; `trigger_id` is the row id of the last episode it saw, `replayed_id` of the last that it
-- replayed with success.
CREATE TABLE consolidation (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id    INTEGER NOT NULL REFERENCES scope(id),
    trigger_id  INTEGER NOT NULL,
    replayed_id INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    compressed  INTEGER NOT NULL,
    pruned      INTEGER NOT NULL,
    replayed    INTEGER NOT NULL,
    promoted    INTEGER NOT NULL,
    error       TEXT,
    UNIQUE (scope_id, trigger_id)
);

CREATE TABLE working_state (
    scope_id   INTEGER PRIMARY KEY REFERENCES scope(id),
    items      TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE VIEW scope_agent AS
SELECT id AS scope_id, path AS scope,
       CASE WHEN substr({_PARENT}, -8) = '/agents/' THEN substr(path, length({_PARENT}) + 1) END AS agent_id
  FROM scope;

CREATE VIEW agent_sessions AS
SELECT s.name AS id, a.agent_id, s.provider,
       '[' || coalesce((SELECT group_concat(CASE WHEN json_valid(message) THEN message ELSE json_quote(message) END)
                          FROM (SELECT m.message FROM session_message m WHERE m.session_id = s.id ORDER BY m.position)),
                       '') || ']' AS messages,
       {_iso("s.created_at")} AS created_at,
       {_iso(SESSION_UPDATED)} AS updated_at,
       a.scope
  FROM session s JOIN scope_agent a USING (scope_id);

CREATE VIEW session_snapshots AS
SELECT t.public_id AS id, a.agent_id, t.session AS session_id, t.messages, t.summary, t.key_decisions, t.task_ids,
       {_iso("t.started_at")} AS started_at, {_iso("t.ended_at")} AS ended_at, t.total_cost, t.total_tokens, a.scope
  FROM session_snapshot t JOIN scope_agent a USING (scope_id);

CREATE VIEW experience_tool_patterns AS
SELECT a.agent_id, p.task_type, p.pattern, p.total_count, p.success_count,
       1.0 * p.success_count / p.total_count AS success_rate,
       1.0 * p.total_steps / nullif(p.steps_measured, 0) AS avg_steps,
       1.0 * p.total_tokens / nullif(p.tokens_measured, 0) AS avg_tokens,
       {_iso("p.created_at")} AS created_at, {_iso("p.updated_at")} AS updated_at, a.scope
  FROM tool_pattern p JOIN scope_agent a USING (scope_id);

CREATE VIEW experience_error_recoveries AS
SELECT a.agent_id, e.tool, e.error_pattern, e.error, e.recovery, e.total_count,
       {_iso("e.created_at")} AS created_at, {_iso("e.updated_at")} AS updated_at, a.scope
  FROM error_recovery e JOIN scope_agent a USING (scope_id);

CREATE VIEW consolidations AS
SELECT c.id, a.agent_id, c.trigger_id, {_iso("c.created_at")} AS created_at, c.compressed, c.pruned, c.replayed,
       c.promoted, c.error, a.scope
  FROM consolidation c JOIN scope_agent a USING (scope_id);

CREATE VIEW episodes AS
SELECT r.public_id AS id, a.agent_id, date(coalesce(r.valid_from, r.created_at) / 1e6, 'unixepoch') AS date,
       r.text AS content, r.metadata ->> '$.task_id' AS task_id, r.metadata ->> '$.event_type' AS event_type,
       r.metadata ->> '$.cost' AS cost, r.metadata ->> '$.duration_ms' AS duration_ms, r.importance, r.pinned,
       r.metadata, {_iso("r.created_at")} AS created_at, a.scope
  FROM record r JOIN scope_agent a USING (scope_id)
 WHERE r.kind = 'episode' AND r.recorded_until IS NULL;

CREATE VIEW procedures AS
SELECT r.public_id AS id, a.agent_id, r.metadata ->> '$.name' AS name, r.metadata ->> '$.description' AS description,
       r.metadata ->> '$.pattern' AS pattern, u.success_rate, coalesce(u.use_count, 0) AS use_count,
       coalesce(u.success_count, 0) AS success_count, {_iso("r.created_at")} AS created_at,
       {_iso("r.updated_at")} AS updated_at, a.scope
  FROM record r JOIN scope_agent a USING (scope_id) LEFT JOIN procedure_use u ON u.record_id = r.id
 WHERE r.kind = 'procedure' AND r.recorded_until IS NULL;

CREATE VIEW working_memory AS
SELECT a.agent_id, j.key AS place, j.value ->> '$.content' AS content, j.value ->> '$.importance' AS importance,
       {_iso("w.updated_at")} AS saved_at, a.scope
  FROM working_state w JOIN scope_agent a USING (scope_id), json_each(w.items) j;

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
-- Access tokens of `recallite serve`. Only the SHA-256 of a token is stored; each is confined to a scope.
CREATE TABLE access_token (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    public_id  TEXT NOT NULL UNIQUE,
    name       TEXT,
    hash       BLOB NOT NULL UNIQUE,
    scope      TEXT NOT NULL,
    read_only  INTEGER NOT NULL DEFAULT 0 CHECK (read_only IN (0, 1)),
    created_at INTEGER NOT NULL,
    expires_at INTEGER
);

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
  JOIN record r ON r.source_id = d.source_id AND r.kind = 'chunk' AND r.recorded_until IS NULL;
"""
