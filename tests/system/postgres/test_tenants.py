"""A tenant's connection, stolen, reads and changes nothing of another: tried with SQL, for every table there is."""

from __future__ import annotations

import itertools

import pytest

from tests.raising import raises

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

import psycopg
from psycopg import errors, sql

from recallite import Memory
from recallite.model.records import NewRecord
from recallite_postgres.server import RULES, TENANT_FUNCTIONS
from recallite_postgres.tenant_calls import Tenants
from recallite_server.http.access_tokens import Tokens
from tests.unit.core.memory.support import WordEmbedder

SECRET = "zanzibar"
# What a tenant that has stored nothing sees: the memory's own facts, itself, and which row ids changed when.
SEEN_BY_ALL = {"meta", "embedder", "feed", "tenant", "scope"}
_numbers = itertools.count(1)

HIDDEN = {"term", "embedding_cache", "access_token", "synced"}


class Tenancy:
    """A memory with three tenants: Bob has rows in every table, Ada none, and Cid writes."""

    def __init__(self, server):
        number = next(_numbers)
        self.server, self.schema = server, f"tenancy_{number}"
        self.ada, self.bob, self.cid = (f"{name}_{number}" for name in ("ada", "bob", "cid"))
        for role in (self.ada, self.bob, self.cid):
            server.execute(f"CREATE ROLE {role} LOGIN")
        self.owner = self.memory(None)
        tenants = Tenants(self.owner)
        tenants.grant(self.ada, "/users/ada")
        tenants.grant(self.bob, "/users/bob")
        tenants.grant(self.cid, "/users/cid")
        fill(self.owner.scoped("/users/bob"))
        Tokens(self.owner).create(scope=f"/users/bob/{SECRET}", name=SECRET)
        self.fill_rest()

    def memory(self, role):
        user = {} if role is None else {"user": role}
        return Memory(self.server.address(schema=self.schema, **user), embedder=WordEmbedder())

    def connect(self, role=None):
        user = {} if role is None else {"user": role}
        connection = psycopg.connect(self.server.address(**user), autocommit=True)
        connection.execute(f"SET search_path = {self.schema}, public, pg_temp")
        return connection

    def as_owner(self, statement, *values):
        with self.connect() as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def fill_rest(self):
        """Rows that take a language model, a late-interaction model or a broken text to come by."""
        self.as_owner(
            "INSERT INTO judgement SELECT min(id), max(id), 0.5, %s, 1 FROM record WHERE recorded_until IS NULL", SECRET
        )
        self.as_owner("INSERT INTO uncompared SELECT max(id), max(id), '{}' FROM record WHERE recorded_until IS NULL")
        self.as_owner("INSERT INTO refusal SELECT r.id, e.id, %s FROM record r, embedder e ORDER BY 1 LIMIT 1", SECRET)
        self.as_owner("INSERT INTO token_code SELECT id, decode(repeat('00', 8), 'hex') FROM vector ORDER BY 1 LIMIT 1")
        self.as_owner(
            "INSERT INTO embedding_cache (content_hash, embedder_id, parts, used) "
            "SELECT content_hash, e.id, content_hash, 1 FROM record, embedder e ORDER BY record.id LIMIT 1"
        )
        self.as_owner(
            "INSERT INTO synced (key, name, state, number) SELECT '1', %s, content_hash, 1 FROM record LIMIT 1", SECRET
        )
        self.as_owner(
            "INSERT INTO consolidation (scope_id, trigger_id, replayed_id, created_at, compressed, pruned, replayed, "
            "promoted, error) SELECT id, 1, 1, 1, 1, 1, 1, 1, %s FROM scope WHERE path = '/users/bob'",
            SECRET,
        )
        self.as_owner(
            "INSERT INTO occurrence (record_id, at, text) SELECT max(id), 1, %s FROM record WHERE recorded_until IS "
            "NULL",
            SECRET,
        )

    def tables(self):
        return [
            name
            for (name,) in self.as_owner(
                "SELECT relname::text FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN "
                "('r', 'p', 'v', 'm', 'f') ORDER BY 1",
                self.schema,
            )
        ]

    def dump(self, connection, table):
        """The rows of a table, as the role of a connection sees them; None if it may not."""
        try:
            return sorted(row for (row,) in connection.execute(f"SELECT t::text FROM {table} t"))
        except errors.InsufficientPrivilege:
            return None

    def everything(self):
        with self.connect() as connection:
            return {table: self.dump(connection, table) for table in self.tables()}

    def close(self):
        self.owner.close()
        self.server.execute(f"DROP SCHEMA {self.schema} CASCADE")
        for role in (self.ada, self.bob, self.cid):
            self.server.execute(f"DROP OWNED BY {role} CASCADE")
            self.server.execute(f"DROP ROLE {role}")


def fill(memory):
    """Something of every service, with a word that only this memory has."""
    old = memory.remember(f"the password is {SECRET}", tags=[SECRET], source=SECRET, metadata={"key": SECRET})
    new = memory.remember(NewRecord(f"the key lies in {SECRET}", scope=f"/{SECRET}", kind=SECRET, topic=SECRET))
    memory.update(old.id, text=f"the password was {SECRET}")
    memory.link(old.id, new.id)
    newest = memory.remember(f"nothing is in {SECRET} any more")
    memory.supersede(old.id, newest.id, reason=SECRET)
    memory.remember(f"always call me {SECRET}")
    memory.recall(SECRET)
    session = memory.sessions.open(SECRET, provider=SECRET)
    session.append("user", SECRET)
    session.end(snapshot=True, summary=SECRET)
    memory.sessions.open(SECRET).append("user", SECRET)
    memory.working.add(SECRET)
    memory.working.save()
    memory.procedures.save(SECRET, SECRET, pattern=SECRET)
    memory.procedures.record_outcome(SECRET, True)
    memory.experience.record(task_type=SECRET, tools=[SECRET], success=True)
    memory.experience.record_recovery(tool=SECRET, error=SECRET, recovery=SECRET)
    memory.consolidator.run()
    memory.knowledge.ingest(f"# {SECRET}\n\n{SECRET} is far".encode(), name=f"{SECRET}.md")


@pytest.fixture(scope="module")
def tenancy(postgres_server):
    made = Tenancy(postgres_server)
    yield made
    made.close()


@pytest.fixture
def ada(tenancy):
    with tenancy.connect(tenancy.ada) as connection:
        yield connection


def refused(connection, statement, *values):
    """Whether a statement fails, or finds and changes no row."""
    try:
        cursor = connection.execute(statement, values or None)
    except psycopg.Error:
        return True
    return cursor.rowcount == 0


def test_every_table_has_rules_for_tenants(tenancy):
    assert set(tenancy.tables()) == RULES.keys() | HIDDEN
    without = tenancy.as_owner(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p') "
        "AND NOT relrowsecurity", tenancy.schema,
    )  # fmt: skip
    assert without == []


def test_a_tenant_sees_no_row_of_another_in_any_table(tenancy, ada):
    everything = tenancy.everything()
    assert [table for table, rows in everything.items() if not rows] == [], "fill() writes no row of these"
    seen = {table: tenancy.dump(ada, table) for table in everything}
    assert {table for table, rows in seen.items() if rows} <= SEEN_BY_ALL
    assert {table for table, rows in seen.items() if rows is None} == HIDDEN
    assert [table for table, rows in seen.items() if SECRET in str(rows)] == []
    assert seen["tenant"] == [row for row in everything["tenant"] if tenancy.ada in row]
    assert [row for row in seen["scope"] if "/users/ada" not in row] == []


def test_a_tenant_changes_and_removes_no_row_of_another(tenancy, ada):
    before = tenancy.everything()
    for table in before:
        (column,) = ada.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND attgenerated = '' "
            "ORDER BY attnum DESC LIMIT 1", (table,),
        ).fetchone()  # fmt: skip
        for statement in (
            "UPDATE {0} SET {1} = {1}", "DELETE FROM {0}", "TRUNCATE {0}", "TRUNCATE {0} CASCADE",
            "MERGE INTO {0} t USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE",
            "SELECT * FROM {0} FOR UPDATE", "ALTER TABLE {0} DISABLE ROW LEVEL SECURITY", "DROP TABLE {0} CASCADE",
            "DROP POLICY tenant ON {0}", "CREATE POLICY mine ON {0} USING (true)",
            "CREATE INDEX ON {0} ({1})", "CREATE RULE r AS ON SELECT TO {0} DO INSTEAD SELECT 1",
            "ALTER TABLE {0} OWNER TO CURRENT_USER", "COMMENT ON TABLE {0} IS 'x'", "COPY {0} FROM PROGRAM 'true'",
        ):  # fmt: skip
            if table in SEEN_BY_ALL and "FOR UPDATE" in statement:
                continue
            assert refused(ada, statement.format(table, column)), statement.format(table, column)
    assert tenancy.everything() == before


def test_a_tenant_puts_no_row_where_another_sees_it(tenancy, ada):
    """Even who knows all numbers of a row cannot store one like it."""
    for table, rows in tenancy.everything().items():
        if table in ("feed", "tenant"):
            continue
        columns = [
            name
            for (name,) in ada.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND attgenerated = ''",
                (table,),
            )
        ]
        assert rows
        ((row,),) = tenancy.as_owner(f"SELECT to_json(t)::text FROM {table} t LIMIT 1")
        for left_out in ((), ("id",)):
            chosen = sql.SQL(", ").join(sql.Identifier(name) for name in columns if name not in left_out)
            statement = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM json_populate_record(null::{}, %s)").format(
                sql.Identifier(table), chosen, chosen, sql.Identifier(tenancy.schema, table)
            )
            with pytest.raises(errors.InsufficientPrivilege):
                ada.execute(statement, (row,))


def test_what_a_tenant_stores_names_nothing_of_another(tenancy):
    cid = tenancy.connect(tenancy.cid)
    with tenancy.memory(tenancy.cid) as memory:
        mine = memory.remember("tea in the morning", tags=["mine"])
        other = memory.remember("coffee in the evening")
        memory.link(mine.id, other.id)
    ((own,), (second,)) = cid.execute("SELECT id FROM record ORDER BY id").fetchall()
    ((foreign, scope, source),) = tenancy.as_owner(
        "SELECT id, scope_id, source_id FROM record WHERE source_id IS NOT NULL LIMIT 1"
    )
    ((tag,),) = tenancy.as_owner("SELECT id FROM tag WHERE name = %s", SECRET)
    with pytest.raises(errors.InsufficientPrivilege):
        cid.execute("SELECT * FROM term")
    for statement in (
        f"UPDATE record SET scope_id = {scope} WHERE id = {own}",
        f"UPDATE record SET source_id = {source} WHERE id = {own}",
        f"UPDATE record SET id = id + 1000000 WHERE id = {own}",
        f"UPDATE record_tag SET tag_id = {tag}",
        f"INSERT INTO record_tag VALUES ({own}, 7, {tag})",
        f"UPDATE link SET target_id = {foreign}",
        f"INSERT INTO link VALUES ({own}, {foreign}, 'related', 1, 1)",
        f"INSERT INTO link VALUES ({foreign}, {own}, 'related', 1, 1)",
        f"INSERT INTO supersession (old_id, new_id, holds_from, known_from, strength) "
        f"VALUES ({foreign}, {own}, 1, 1, 1)",
        f"INSERT INTO judgement VALUES ({foreign}, {own}, 1, 'x', 1)",
        f"UPDATE vector SET record_id = {foreign}",
        f"INSERT INTO scope_tag VALUES ({tag}, (SELECT id FROM scope LIMIT 1))",
        "INSERT INTO feed (first_id, last_id, operation) VALUES (0, 0, 'reload')",
        "INSERT INTO feed (first_id, last_id, operation) VALUES (0, 9223372036854775807, 'update')",
        "INSERT INTO feed (xid, first_id, last_id, operation) VALUES ('3', 0, 0, 'update')",
        "INSERT INTO meta VALUES ('feed_trimmed', '9')",
        "UPDATE tenant SET scope = '/'",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            cid.execute(statement)
    # What is there and what is not there are refused alike.
    messages = set()
    for number in (foreign, 10**15):
        with pytest.raises(errors.InsufficientPrivilege) as raised:
            cid.execute("INSERT INTO link VALUES (%s, %s, 'related', 1, 1)", (own, number))
        messages.add(str(raised.value))
    assert len(messages) == 1
    assert second != own
    cid.close()


def test_no_way_around_the_policies(tenancy, ada):
    for statement in (
        f"SET ROLE {tenancy.bob}", "SET ROLE postgres", f"SET SESSION AUTHORIZATION {tenancy.bob}",
        f"GRANT {tenancy.bob} TO {tenancy.ada}", f"ALTER ROLE {tenancy.ada} BYPASSRLS",
        f"CREATE TABLE {tenancy.schema}.mine (x int)", f"CREATE VIEW {tenancy.schema}.mine AS SELECT 1",
        f"CREATE FUNCTION {tenancy.schema}.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TRIGGER t BEFORE INSERT ON record FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        f"CREATE SCHEMA mine AUTHORIZATION {tenancy.bob}", "CREATE EXTENSION dblink",
        "SELECT pg_read_file('PG_VERSION')",
        "COPY record TO PROGRAM 'cat'", "ALTER FUNCTION trim_feed() OWNER TO CURRENT_USER",
        "SELECT setval('record_id_seq', 1)", "SELECT nextval('term_id_seq')", "SELECT nextval('scope_id_seq')",
        "CREATE TEMP TABLE t (r bigint REFERENCES record(id))", "SELECT * FROM pg_statistic", "SELECT * FROM pg_authid",
        "ALTER DEFAULT PRIVILEGES FOR ROLE postgres GRANT ALL ON TABLES TO PUBLIC",
        f"ALTER SCHEMA {tenancy.schema} RENAME TO mine", "DROP FUNCTION trim_feed()",
    ):  # fmt: skip
        with pytest.raises(psycopg.Error):
            ada.execute(statement)
    ada.execute("SET row_security = off")
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        ada.execute("SELECT * FROM record")


def test_objects_of_a_tenant_see_what_it_sees(tenancy, ada):
    """A temporary table with the name of ours, a function that tells what it is given, and a view."""
    notices = []
    ada.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    ada.execute(
        "CREATE TEMP TABLE tenant AS SELECT current_user::text AS role, '/' AS scope, '/' AS below, '0' AS beyond"
    )
    ada.execute("CREATE TEMP TABLE scope AS SELECT generate_series(1, 100)::bigint AS id, '/'::text AS path")
    ada.execute(
        "CREATE FUNCTION pg_temp.tell(text) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS "
        "$$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
    )
    ada.execute("SET search_path = pg_temp, " + tenancy.schema)
    ada.execute(f"CREATE TEMP VIEW all_records AS SELECT * FROM {tenancy.schema}.record")
    found = ada.execute("SELECT text FROM all_records WHERE pg_temp.tell(text)").fetchall()
    for table in set(tenancy.tables()) - HIDDEN:
        ada.execute(f"SELECT 1 FROM {tenancy.schema}.{table} t WHERE pg_temp.tell(t::text)")
    found += ada.execute(
        f"SELECT id FROM {tenancy.schema}.record r WHERE 1 / (length(r.text) - length(r.text) + 1) = 0"
    )
    assert notices
    assert SECRET not in str((found, notices))
    plan = ada.execute(f"EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM {tenancy.schema}.record").fetchall()
    assert SECRET not in str(plan)


def test_statistics_of_columns_are_hidden(tenancy, ada):
    tenancy.as_owner("ANALYZE")
    for view in ("pg_stats", "pg_stats_ext", "pg_stats_ext_exprs"):
        rows = ada.execute(f"SELECT * FROM {view} WHERE schemaname = %s", (tenancy.schema,)).fetchall()
        assert SECRET not in str(rows)
    rows = ada.execute(
        "SELECT tablename FROM pg_stats WHERE schemaname = %s AND tablename <> 'embedder'", (tenancy.schema,)
    ).fetchall()
    assert rows == []


def test_functions_with_the_rights_of_the_owner_give_nothing_away(tenancy, ada):
    defined = tenancy.as_owner(
        "SELECT count(*) FROM pg_proc WHERE pronamespace = %s::regnamespace AND prosecdef "
        "AND NOT EXISTS (SELECT FROM aclexplode(proacl) a WHERE a.grantee = 0)", tenancy.schema,
    )  # fmt: skip
    of_owner = tenancy.as_owner(
        "SELECT count(*) FROM pg_proc WHERE pronamespace = %s::regnamespace AND prosecdef", tenancy.schema
    )
    assert defined == of_owner == [(len(TENANT_FUNCTIONS),)]
    everything = tenancy.everything()
    numbers = [each for (each,) in tenancy.as_owner("SELECT id FROM record")]
    ada.execute("SELECT note_tags(%s)", (numbers,))
    ada.execute(
        "SELECT add_scope_names(%s)", (["/users/bob/mine", "/users/ada/../bob", "/users/ada/x/", "/users/adam"],)
    )
    ada.execute("SELECT name_first_embedder('mine', 'mine', 3, 'float32')")
    ada.execute("SELECT trim_feed()")
    ada.execute("SELECT add_term_names(%s)", ([SECRET],))
    ada.execute("SELECT add_kind_names(%s)", ([SECRET],))
    assert tenancy.everything() == everything
    # The number of a word that is given, whoever has it: this is what remains to be learnt.
    assert [word for word, _ in ada.execute("SELECT * FROM numbered_words(%s)", ([SECRET, "nowhere"],))] == [SECRET]
    assert [table for table in everything if SECRET in str(tenancy.dump(ada, table))] == []
    ada.execute("SELECT add_tag_names(%s)", ([SECRET],))
    assert [table for table in everything if SECRET in str(tenancy.dump(ada, table))] == ["tag"]
    tenancy.as_owner("DELETE FROM scope_tag WHERE scope_id = (SELECT id FROM scope WHERE path = '/users/ada')")


def test_others_of_the_server_are_let_in_nowhere(tenancy):
    stranger = f"stranger_{next(_numbers)}"
    tenancy.server.execute(f"CREATE ROLE {stranger} LOGIN")
    try:
        with tenancy.connect(stranger) as connection:
            for table in tenancy.tables():
                with pytest.raises(errors.InsufficientPrivilege):
                    connection.execute(f"SELECT * FROM {tenancy.schema}.{table}")
        # With all privileges, but no scope: policies admit it nowhere.
        tenancy.server.execute(f"GRANT USAGE ON SCHEMA {tenancy.schema} TO {stranger}")
        tenancy.server.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {tenancy.schema} TO {stranger}")
        with tenancy.connect(stranger) as connection:
            seen = {table for table in tenancy.tables() if tenancy.dump(connection, table)}
        assert seen == {"meta", "embedder", "feed"}
    finally:
        tenancy.server.execute(f"DROP OWNED BY {stranger} CASCADE")
        tenancy.server.execute(f"DROP ROLE {stranger}")


def test_an_id_that_another_has_is_taken(tenancy):
    """Ids are of the whole memory: who guesses one learns that it is there."""
    from recallite.errors import Conflict

    tenancy.owner.remember("the first", id="chosen", scope="/users/bob")
    with tenancy.memory(tenancy.ada) as memory:
        with raises(Conflict, "exists", match="outside this scope"):
            memory.remember("the second", id="chosen")
        assert memory.list(limit=5) == [each for each in memory.list() if each.id != "chosen"][:5]
