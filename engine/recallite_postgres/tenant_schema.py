"""Tenants in PostgreSQL: roles that are confined to a scope by row-level security.

Every table has row-level security, and what no policy admits nobody sees but the owner of the tables, whom policies do
not confine. The tenant is the role that logged in, `session_user`. Names that others may have (words, tags, kinds,
paths) are given and numbered by functions, which run with the rights of the owner.
"""

from __future__ import annotations

from typing import NamedTuple

from recallite.store.sql.schema import Table
from recallite_postgres.schema import TABLES

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
    """A tenant's rights on the rows of a table: it sees those for which `sees` is true, and writes those for which
    `writes` is; empty: `sees`.
    """

    sees: str
    privileges: str = "SELECT, INSERT, UPDATE, DELETE"
    writes: str = ""


_READ = "SELECT"
# The array is made once for a table of a statement, and an index takes it.
_OWN = "ANY ((SELECT own_scopes())::bigint[])"
_OWNERS = ("record", "vector", "source", "session", "session_message")


def _seen(table: Table) -> str:
    """The condition for rows of the tenant's scopes, or of rows that it sees."""
    if "scope_id" in table.columns:
        return f"scope_id = {_OWN}"
    return " AND ".join(
        f"EXISTS (SELECT FROM {owner} o WHERE o.id = {table.name}.{column})"
        for owner in _OWNERS
        for column in table.references_to(owner)
    )


def _issued(table: str) -> str:
    """The condition that a sequence has given the number of a new row: nobody takes those of later rows."""
    return f"{table}.id <= (SELECT q.last_value FROM {table}_id_seq q)"


_SEEN = {table.name: seen for table in TABLES if (seen := _seen(table))}
RULES: dict[str, Rule] = {
    **{name: Rule(seen) for name, seen in _SEEN.items()},
    "tenant": Rule("role = session_user::text", _READ),
    "scope": Rule(f"id = {_OWN}", _READ),
    "record": Rule(
        _SEEN["record"],
        writes=f"{_SEEN['record']} AND {_issued('record')} AND (record.source_id IS NULL "
        "OR EXISTS (SELECT FROM source o WHERE o.id = record.source_id AND o.scope_id = record.scope_id))",
    ),
    "statement_key": Rule("EXISTS (SELECT FROM record o WHERE o.id = statement_key.record_id)"),
    "record_tag": Rule(
        _SEEN["record_tag"],
        writes=f"{_SEEN['record_tag']} AND EXISTS (SELECT FROM tag g WHERE g.id = record_tag.tag_id)",
    ),
    "uncompared": Rule(
        "EXISTS (SELECT FROM record r WHERE r.id BETWEEN uncompared.first_id AND uncompared.last_id)",
        # All of them are records of the tenant's.
        writes="(SELECT count(*) FROM record r WHERE r.id BETWEEN uncompared.first_id AND uncompared.last_id) "
        "= uncompared.last_id - uncompared.first_id + 1",
    ),
    "vector": Rule(_SEEN["vector"], writes=f"{_SEEN['vector']} AND {_issued('vector')}"),
    # By the index: of all records the first of a kind may be far behind those of others.
    "kind": Rule(
        "EXISTS (SELECT FROM scope s WHERE (SELECT r.id FROM record r WHERE r.scope_id = s.id AND r.kind = kind.name "
        "ORDER BY r.recorded_until LIMIT 1) IS NOT NULL)",
        _READ,
    ),
    "scope_tag": Rule(_SEEN["scope_tag"], _READ),
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
}
"""The rights of a tenant. It has none on other tables: words have no scope, and a cached vector tells that its text is
stored.
"""
SEQUENCES = {"record_id_seq": "SELECT, USAGE", "vector_id_seq": "SELECT, USAGE", "feed_sequence_seq": "USAGE"}
"""A tenant's privileges on sequences; the server numbers the rows of other tables."""
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
    _FUNCTIONS
    + "".join(f"ALTER TABLE {table.name} ENABLE ROW LEVEL SECURITY;\n" for table in TABLES)
    + "".join(_policy(table, rule) for table, rule in RULES.items())
    + "".join(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC;\n" for function in FUNCTIONS)
)
