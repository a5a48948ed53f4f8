"""Tenants in PostgreSQL: roles that are confined to a scope by row-level security.

Every table has row-level security, and what no policy admits nobody sees but the owner of the tables, whom policies do
not confine. The tenant is the role that logged in, `session_user`. Names that others may have (words, tags, kinds,
paths) are given and numbered by functions, which run with the rights of the owner.
"""

from __future__ import annotations

from typing import NamedTuple

_TABLES = """
-- Which role is confined to which scope. What is below the scope is from `below` up to `beyond`, which is excluded.
CREATE TABLE tenant (
    role       TEXT_ PRIMARY KEY,
    scope      TEXT_ NOT NULL,
    below      TEXT_ NOT NULL GENERATED ALWAYS AS (CASE scope WHEN '/' THEN '/' ELSE scope || '/' END) STORED,
    beyond     TEXT_ NOT NULL GENERATED ALWAYS AS (CASE scope WHEN '/' THEN '0' ELSE scope || '0' END) STORED,
    created_at BIGINT NOT NULL
);
-- Derived: the tags that records of a scope have, or had; a tenant reads the names of no others.
CREATE TABLE scope_tag (
    tag_id   BIGINT NOT NULL REFERENCES tag(id) ON DELETE CASCADE,
    scope_id BIGINT NOT NULL REFERENCES scope(id) ON DELETE CASCADE,
    PRIMARY KEY (tag_id, scope_id)
);
CREATE INDEX scope_tag_scope ON scope_tag(scope_id);
"""

# Their bodies are bound to tables and operators when they are created: no search path changes what they mean.
_OWNER = "LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
_FUNCTIONS = f"""
-- One call a statement: as a subquery, its plan would be made again for each table of a statement.
CREATE FUNCTION own_scopes() RETURNS BIGINT[] STABLE {_OWNER} BEGIN ATOMIC
    SELECT ARRAY(SELECT s.id FROM tenant t JOIN scope s ON s.path = t.scope OR (s.path >= t.below AND s.path < t.beyond)
        WHERE t.role = session_user::text);
END;
CREATE FUNCTION note_tags(records BIGINT[]) RETURNS void {_OWNER} BEGIN ATOMIC
    INSERT INTO scope_tag (tag_id, scope_id) SELECT DISTINCT p.tag_id, r.scope_id FROM record_tag p
        JOIN record r ON r.id = p.record_id WHERE p.record_id = ANY (records) ORDER BY 1, 2 ON CONFLICT DO NOTHING;
END;
CREATE FUNCTION numbered_words(words TEXT[]) RETURNS TABLE (text TEXT, id BIGINT) STABLE {_OWNER} BEGIN ATOMIC
    SELECT t.text, t.id FROM term t WHERE t.text = ANY (words);
END;
CREATE FUNCTION add_term_names(names TEXT[]) RETURNS void {_OWNER} BEGIN ATOMIC
    INSERT INTO term (text) SELECT n FROM unnest(names) n ORDER BY n ON CONFLICT DO NOTHING;
END;
CREATE FUNCTION add_kind_names(names TEXT[]) RETURNS void {_OWNER} BEGIN ATOMIC
    INSERT INTO kind (name) SELECT n FROM unnest(names) n ORDER BY n ON CONFLICT DO NOTHING;
END;
-- A path that is none of the tenant's, or is not well formed, is passed over.
CREATE FUNCTION add_scope_names(names TEXT[]) RETURNS void {_OWNER} BEGIN ATOMIC
    INSERT INTO scope (path) SELECT n FROM unnest(names) n JOIN tenant t ON t.role = session_user::text
        WHERE (n = t.scope OR (n >= t.below AND n < t.beyond)) AND length(n) <= 512 AND n ~ '^(/|(/[^/]+)+)$'
            AND n !~ '/[.]{{1,2}}(/|$)' AND n !~ '/[[:space:]]|[[:space:]](/|$)|[[:cntrl:]]'
        ORDER BY n ON CONFLICT DO NOTHING;
END;
CREATE FUNCTION add_tag_names(names TEXT[]) RETURNS void {_OWNER} BEGIN ATOMIC
    INSERT INTO tag (name) SELECT n FROM unnest(names) n ORDER BY n ON CONFLICT DO NOTHING;
    INSERT INTO scope (path) SELECT t.scope FROM tenant t WHERE t.role = session_user::text ON CONFLICT DO NOTHING;
    INSERT INTO scope_tag (tag_id, scope_id) SELECT g.id, s.id FROM tenant t JOIN scope s ON s.path = t.scope
        CROSS JOIN tag g WHERE t.role = session_user::text AND g.name = ANY (names) ORDER BY 1, 2
        ON CONFLICT DO NOTHING;
END;
-- The first who stores a vector names the embedder of the memory.
CREATE FUNCTION name_first_embedder(fingerprint TEXT, name TEXT, dimension BIGINT, vector_type TEXT)
    RETURNS void {_OWNER} BEGIN ATOMIC
    INSERT INTO embedder (fingerprint, name, dimension, vector_type, active)
        SELECT fingerprint, name, dimension, vector_type, true WHERE NOT EXISTS (SELECT FROM embedder e WHERE e.active)
        ON CONFLICT DO NOTHING;
END;
CREATE FUNCTION trim_feed() RETURNS void {_OWNER} BEGIN ATOMIC
    WITH alone AS MATERIALIZED (SELECT pg_try_advisory_xact_lock('feed'::regclass::oid::int, 17) AS got),
    gone AS (DELETE FROM feed f WHERE (SELECT got FROM alone)
        AND f.sequence <= (SELECT max(n.sequence) - 100000 FROM feed n) RETURNING f.xid)
    INSERT INTO meta (key, value) SELECT 'feed_trimmed', max(xid::text::bigint)::text FROM gone HAVING count(*) > 0
        ON CONFLICT (key) DO UPDATE
        SET value = greatest(meta.value::bigint, excluded.value::bigint)::text;
END;
"""


class Rule(NamedTuple):
    """What a tenant may do with the rows of a table: those of which `sees` is true, and what it writes is `writes`."""

    sees: str
    privileges: str = "SELECT, INSERT, UPDATE, DELETE"
    writes: str = ""


# The array is made once for a table of a statement, and an index takes it.
_OWN = "ANY ((SELECT own_scopes())::bigint[])"
_MINE = f"scope_id = {_OWN}"
_READ = "SELECT"


def _of_record(table: str, *columns: str) -> str:
    each = columns or ("record_id",)
    return " AND ".join(f"EXISTS (SELECT FROM record r WHERE r.id = {table}.{column})" for column in each)


def _issued(table: str) -> str:
    """The number of a new row is one that the sequence has given: nobody takes those of later rows."""
    return f"{table}.id <= (SELECT q.last_value FROM {table}_id_seq q)"


RULES: dict[str, Rule] = {
    "tenant": Rule("role = session_user::text", _READ),
    "scope": Rule(f"id = {_OWN}", _READ),
    **{
        table: Rule(_MINE)
        for table in ("source", "session", "session_snapshot", "tool_pattern", "error_recovery", "consolidation",
                      "working_state")
    },
    "record": Rule(
        _MINE,
        writes=f"{_MINE} AND {_issued('record')} AND (record.source_id IS NULL "
        "OR EXISTS (SELECT FROM source o WHERE o.id = record.source_id AND o.scope_id = record.scope_id))",
    ),
    **{
        table: Rule(_of_record(table))
        for table in ("access", "occurrence", "statement", "statement_key", "refusal", "record_terms", "standing",
                      "procedure_use")
    },
    "record_tag": Rule(
        _of_record("record_tag"),
        writes=f"{_of_record('record_tag')} AND EXISTS (SELECT FROM tag g WHERE g.id = record_tag.tag_id)",
    ),
    "link": Rule(_of_record("link", "source_id", "target_id")),
    "supersession": Rule(_of_record("supersession", "old_id", "new_id")),
    "judgement": Rule(_of_record("judgement", "old_id", "new_id")),
    "uncompared": Rule(
        "EXISTS (SELECT FROM record r WHERE r.id BETWEEN uncompared.first_id AND uncompared.last_id)",
        # All of them are records of the tenant's.
        writes="(SELECT count(*) FROM record r WHERE r.id BETWEEN uncompared.first_id AND uncompared.last_id) "
        "= uncompared.last_id - uncompared.first_id + 1",
    ),
    "vector": Rule(_of_record("vector"), writes=f"{_of_record('vector')} AND {_issued('vector')}"),
    "token_code": Rule("EXISTS (SELECT FROM vector v WHERE v.id = token_code.vector_id)"),
    "document": Rule("EXISTS (SELECT FROM source o WHERE o.id = document.source_id)"),
    "session_message": Rule("EXISTS (SELECT FROM session s WHERE s.id = session_message.session_id)"),
    "session_words": Rule("EXISTS (SELECT FROM session_message m WHERE m.id = session_words.message_id)"),
    # By the index: of all records the first of a kind may be far behind those of others.
    "kind": Rule(
        "EXISTS (SELECT FROM scope s WHERE (SELECT r.id FROM record r WHERE r.scope_id = s.id AND r.kind = kind.name "
        "ORDER BY r.recorded_until LIMIT 1) IS NOT NULL)",
        _READ,
    ),
    "scope_tag": Rule(_MINE, _READ),
    "tag": Rule("EXISTS (SELECT FROM scope_tag g WHERE g.tag_id = tag.id)", _READ),
    "embedder": Rule("true", _READ),
    "meta": Rule(
        "key IN ('application', 'schema_version', 'identity', 'lexicon_epoch', 'feed_trimmed', 'index_snapshot', "
        "'purpose', 'unfinished_copy')",
        "SELECT, INSERT",
        writes="key = 'identity'",
    ),
    # Row ids, and when they changed, of the whole memory. The bounds keep others from reading endless ranges.
    "feed": Rule(
        "true",
        "SELECT, INSERT",
        writes="operation <> 'reload' AND last_id BETWEEN first_id AND first_id + 100000 "
        "AND last_id <= (SELECT q.last_value FROM record_id_seq q)",
    ),
}  # fmt: skip
"""What a tenant sees and writes; of a table that is not here, nothing."""
HIDDEN = ("term", "embedding_cache", "access_token")
"""Tables of which a tenant has nothing. Words have no scope, and a cached vector tells that its text is stored."""
SEQUENCES = {"record_id_seq": "SELECT, USAGE", "vector_id_seq": "SELECT, USAGE", "feed_sequence_seq": "USAGE"}
"""What a tenant may do with sequences; of other tables the server numbers the rows."""
FUNCTIONS = (
    "own_scopes()",
    "note_tags(BIGINT[])",
    "numbered_words(TEXT[])",
    "add_term_names(TEXT[])",
    "add_kind_names(TEXT[])",
    "add_scope_names(TEXT[])",
    "add_tag_names(TEXT[])",
    "name_first_embedder(TEXT, TEXT, BIGINT, TEXT)",
    "trim_feed()",
)
"""The functions that run with the rights of the owner."""


def _policy(table: str, rule: Rule) -> str:
    check = f" WITH CHECK ({rule.writes})" if rule.writes else ""
    return f"CREATE POLICY tenant ON {table} USING ({rule.sees}){check};\n"


TENANT_SCHEMA = (
    _TABLES
    + _FUNCTIONS
    + "".join(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;\n" for table in (*RULES, *HIDDEN))
    + "".join(_policy(table, rule) for table, rule in RULES.items())
    + "".join(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC;\n" for function in FUNCTIONS)
)
