"""The schema in SQLite, and views on it for other programs.

`PRAGMA user_version` has the version of the schema, and `application_id` says that the file is ours.
"""

from __future__ import annotations

from recallite.model.authority import AUTHORITIES, rank_of
from recallite.store.sql.schema import TABLES, Table, table
from recallite.store.sql.services import SESSION_UPDATED

# Views with readable names and ISO times: they run on SQLite 3.40 and later, and show rows with invalid values
# unchanged. The scope of an agent is `<scope>/agents/<agent>`.


def _iso(column: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%fZ', {column} / 1e6, 'unixepoch')"


# A path up to its last slash.
_PARENT = "rtrim(path, replace(path, '/', ''))"

_AUTHORITY = " ".join(
    ["CASE r.authority", *(f"WHEN {rank_of(name)} THEN '{name}'" for name in AUTHORITIES), "ELSE r.authority END"]
)

VIEWS = f"""
CREATE VIEW memories AS
SELECT r.public_id AS id, r.text AS content, r.kind, s.path AS scope, r.context, r.importance, r.pinned,
       {_AUTHORITY} AS authority, r.topic, o.name AS source, r.position, r.metadata,
       (SELECT json_group_array(t.name) FROM record_tag rt JOIN tag t ON t.id = rt.tag_id
         WHERE rt.record_id = r.id) AS tags,
       {_iso("r.created_at")} AS created_at,
       {_iso("r.valid_from")} AS valid_from,
       {_iso("r.valid_until")} AS valid_until,
       {_iso("r.updated_at")} AS updated_at,
       {_iso("r.expires_at")} AS expires_at,
       {_iso("r.superseded_at")} AS superseded_at,
       {_iso("r.held_until")} AS held_until,
       coalesce(a.count, 0) AS access_count, r.embedding_state
  FROM record r
  JOIN scope s ON s.id = r.scope_id
  LEFT JOIN source o ON o.id = r.source_id
  LEFT JOIN access a ON a.record_id = r.id
 WHERE r.recorded_until IS NULL AND r.kind NOT IN ('chunk', 'session_message');  -- which have views of their own

-- With sqlite-vec loaded, of vectors that are kept as float32:
-- SELECT text, vec_distance_cosine(vector, :query) AS distance ... ORDER BY distance LIMIT 5.
CREATE VIEW memory_vectors AS
SELECT r.public_id AS id, r.text, r.kind, s.path AS scope,
       {_iso("r.created_at")} AS created_at,
       {_iso("r.superseded_at")} AS superseded_at, v.part, v.value AS vector
  FROM vector v
  JOIN embedder e ON e.id = v.embedder_id AND e.active
  JOIN record r ON r.id = v.record_id AND r.recorded_until IS NULL
  JOIN scope s ON s.id = r.scope_id;

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


# The tables.

APPLICATION_ID = 0x52656361  # "Reca"
# A single write leaves 0.56 of what it does at 8192 in the WAL, and takes 0.92 of the time. Two 384-dimensional float32
# vectors fill a page, and five one of 8192: a record takes 400 bytes more, and bulk writing 1.05 times as long.
PAGE_SIZE_BYTES = 4096

_TYPES = {
    "SERIAL": "INTEGER PRIMARY KEY AUTOINCREMENT",
    # AUTOINCREMENT would write a page of `sqlite_sequence` with each record; `meta` is written with each commit.
    "NEW_ID": "INTEGER PRIMARY KEY",
    "ID": "INTEGER PRIMARY KEY",
    "FLAG": "INTEGER NOT NULL CHECK ({name} IN (0, 1))",
}


def _key_lists(name: str) -> tuple[Table, ...]:
    """The tables of records that are listed by random keys; see `key_lists`."""
    return (
        # Ids are random, so that no two runs of a file ever share one, and what a process keeps of a run stays valid.
        # `keys` are int64, ascending; in the same order `offsets` are the row ids of the records less `first_id`,
        # uint32 (both little-endian).
        table(f"{name}_run", """
            id INTEGER PRIMARY KEY
            first_id INTEGER NOT NULL
            keys, offsets BLOB NOT NULL
        """, derived=True),
        # The records that no longer count in a run; they go when the run is next written.
        table(f"{name}_unlisted", "record_id INTEGER PRIMARY KEY", derived=True),
        # Records that were listed again, as with another text, and count no longer in a run.
        table(f"{name}_key", """
            key, record_id INTEGER NOT NULL
            PRIMARY KEY (key, record_id)
        """, derived=True),
    )  # fmt: skip


_MORE = {
    # Of the commit that wrote a row: a random number, which no other commit has.
    "feed": "commit_name INTEGER NOT NULL"
}
_TABLES = (
    *(shared.also(_MORE.get(shared.name, "")) for shared in TABLES),
    # The keys of the records that a new one may repeat or supersede: open, and not superseded.
    *_key_lists("statement"),
    # All open records by the first 8 bytes of their hash, which do not depend on case, spaces or quote marks.
    *_key_lists("text"),
)
# For programs that change a kind.
_TRIGGER = """
CREATE TRIGGER record_kind AFTER UPDATE OF kind ON record
WHEN NOT EXISTS (SELECT 1 FROM kind WHERE name = new.kind) BEGIN
    INSERT INTO kind (name) VALUES (new.kind);
END;
"""


def _create_sql(table: Table) -> str:
    return table.create_sql(_TYPES, unnumbered=" WITHOUT ROWID")


DERIVED = {table.name: _create_sql(table) for table in _TABLES if table.derived}
"""The statements that create the tables which `rebuild` makes anew, by name."""
SCHEMA = "".join([*map(_create_sql, _TABLES), _TRIGGER, VIEWS])
"""The statements that make a new file."""
MIGRATIONS: tuple[str, ...] = ()
"""The statements that bring a file of each released schema, from 1 on, to the next."""
SCHEMA_VERSION = 1 + len(MIGRATIONS)
