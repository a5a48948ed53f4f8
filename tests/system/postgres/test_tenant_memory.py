"""A memory that a tenant opens is its scope; who has which scope is the owner's to say."""

from __future__ import annotations

import itertools
import threading
from operator import attrgetter

import pytest

from tests.raising import raises

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite import Memory
from recallite.errors import (
    AccessDenied,
    InvalidInput,
    NotFound,
    StoreError,
)
from recallite.recall.request import recall_arguments
from recallite_cli.run import run
from recallite_postgres import server
from recallite_postgres.tenant_calls import Tenants
from recallite_server.http.access_tokens import Tokens
from tests.unit.core.memory.support import WordEmbedder

_numbers = itertools.count(1)
TEXTS = (
    "Ada drinks green tea in the morning", "Ada's sister lives in Paris", "the meeting about tea is on Monday",
    "Ada moved to Berlin", "green paint is sold out", "always answer in French",
)  # fmt: skip


@pytest.fixture
def roles(postgres_server):
    """Makes roles that can log in, gone after the test."""
    made = []

    def make(options=""):
        made.append(f"tenant_{next(_numbers)}")
        postgres_server.execute(f"CREATE ROLE {made[-1]} LOGIN {options}")
        return made[-1]

    yield make
    postgres_server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY (%s) AND pid <> pg_backend_pid()",
        made,
    )
    for name in made:
        postgres_server.execute(f"DROP OWNED BY {name} CASCADE")
        postgres_server.execute(f"DROP ROLE {name}")


@pytest.fixture
def opened(postgres_server, postgres_address, roles):
    """Opens the memory, as its owner or as a role; closed before its role is gone, which a close would wait for."""
    memories = []
    schema = postgres_address.rpartition("schema=")[2]

    def open_as(role=None, **options):
        user = {} if role is None else {"user": role}
        options = {"embedder": WordEmbedder(), **options}
        memories.append(Memory(postgres_server.address(schema=schema, **user), **options))
        return memories[-1]

    yield open_as
    for memory in memories:
        memory.close()


@pytest.fixture
def owner(opened):
    return opened()


@pytest.fixture
def ada(owner, opened, roles):
    """A tenant of /users/ada, in a memory where others have stored the same texts."""
    for scope in ("/users/ada", "/users/ada/work", "/users/bob", "/"):
        owner.remember_many([{"text": f"{text} ({scope})", "scope": scope, "tags": ["all", scope]} for text in TEXTS])
    role = roles()
    Tenants(owner).grant(role, "/users/ada")
    return opened(role)


def plain(records):
    return [(each.id, each.text, each.scope, each.tags) for each in records]


def test_what_a_tenant_reads_is_what_the_owner_reads_in_its_scope(owner, ada):
    scoped = owner.scoped("/users/ada")
    for memory in (scoped, ada):
        memory.sessions.open("chat").append("user", "hello")
    assert plain(ada.list()) == plain(scoped.list())
    assert len(ada.list()) == 2 * len(TEXTS)
    assert (ada.tags(), ada.scopes(), ada.count()) == (scoped.tags(), scoped.scopes(), scoped.count())
    assert ada.list(tags=["/users/bob"]) == ada.list(scope="/users/bob") == []
    for query in (*TEXTS, "tea", "Where does Ada live?", "nothing of this"):
        for options in ({}, {"scope": "/work"}, {"mode": "keyword"}, {"mode": "vector"}, {"where": {"tags": "all"}}):
            found, expected = (memory.recall(query, limit=20, **recall_arguments(options)) for memory in (ada, scoped))
            assert [(hit.id, hit.text, hit.scope) for hit in found] == [
                (hit.id, hit.text, hit.scope) for hit in expected
            ]
            # The one is asked a moment after the other, and is older.
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], rel=1e-4)
    figures = {"path", "index", "notes"}
    told, expected = (
        {key: value for key, value in vars_of(memory.store.stats()).items() if key not in figures}
        for memory in (ada, scoped)
    )
    assert told == expected
    assert [info.messages for info in ada.sessions.list()] == [info.messages for info in scoped.sessions.list()]


def vars_of(stats):
    return {name: getattr(stats, name) for name in stats.__struct_fields__}


def test_what_a_tenant_writes_is_in_its_scope(owner, ada):
    record = ada.remember("Ada plays the violin", scope="/music", tags=["new tag"], source="diary", kind="hobby")
    assert record.scope == "/music"
    assert owner.get(record.id).scope == "/users/ada/music"
    assert owner.get(record.id).tags == ("new tag",)
    ada.update(record.id, text="Ada plays the cello", tags=["all", "newer tag"])
    assert [each.text for each in owner.history(record.id)] == ["Ada plays the violin", "Ada plays the cello"]
    assert ada.recall("cello")[0].id == owner.recall("cello")[0].id == record.id
    ada.knowledge.ingest(b"# Strings\n\nA cello has four strings.", name="strings.md")
    assert ada.knowledge.search("four strings")[0].text == owner.knowledge.search("four strings")[0].text
    other = ada.remember("Ada has a bow")
    ada.link(record.id, other.id)
    ada.supersede(other.id, ada.remember("Ada lost her bow").id)
    foreign = owner.list(scope="/users/bob")[0]
    for call in (ada.get, ada.forget, lambda id: ada.update(id, text="x"), lambda id: ada.link(record.id, id)):
        with pytest.raises(NotFound):
            call(foreign.id)
    before = owner.count(scope="/users/bob")
    ada.forget(scope="/")
    assert ada.count() == 0
    assert owner.count(scope="/users/bob") == before
    assert owner.store.verify().problems == ()


def test_what_the_owner_changes_a_tenant_sees(owner, ada):
    assert ada.recall("accordion")[:1] != []
    record = owner.remember("an accordion", scope="/users/ada", tags=["box"])
    assert ada.recall("accordion")[0].tags == ("box",)
    moved = owner.remember("a harmonium in the cellar", scope="/users/bob", tags=["bellows"])
    assert "bellows" not in [each.tag for each in ada.tags()]
    owner.update(moved.id, scope="/users/ada/cellar")
    assert ada.recall("harmonium")[0].tags == ("bellows",)
    owner.forget([record.id, moved.id])
    assert {hit.id for hit in ada.recall("accordion harmonium")}.isdisjoint({record.id, moved.id})
    assert owner.store.verify().problems == ()
    assert owner.store.rebuild().problems == ()
    assert ada.recall("violin or tea")[:1] != []


def test_a_tenant_has_and_forgets_what_a_memory_said_before_it_was_moved(owner, ada):
    moved = owner.remember("a harmonium in the cellar", scope="/users/bob")
    owner.update(moved.id, text="a harmonium in the attic")
    owner.update(moved.id, scope="/users/ada")
    texts = ["a harmonium in the cellar", "a harmonium in the attic"]
    assert [version.text for version in ada.history(moved.id)] == texts
    assert ada.forget(moved.id).versions == 1


def test_what_is_of_the_whole_memory_is_refused(ada, tmp_path):
    for verb in ("store.verify", "store.rebuild", "store.vacuum", "store.reembed", "review.judge"):
        with raises(StoreError, "denied", match=f"{verb} works on the whole memory.*/users/ada.*ask its owner"):
            attrgetter(verb)(ada)()
    with raises(StoreError, "denied", match="whole memory"):
        ada.store.backup(tmp_path / "copy.db")
    with raises(StoreError, "denied", match="whole memory"):
        ada.forget(ada.list()[0].id, receipt=True)
    with raises(StoreError, "denied", match="tenants works on the whole memory"):
        Tenants(ada)
    tokens = Tokens(ada)
    for call in (tokens.create, tokens.list, lambda: tokens.revoke("x")):
        with raises(StoreError, "denied", match="access tokens are of the whole memory"):
            call()
    with pytest.raises(AccessDenied):
        tokens.grant("rct_unknown")


def test_an_id_of_another_is_taken_and_nothing_is_stored(owner, ada):
    owner.remember("of Bob", id="profile", scope="/users/bob")
    before = ada.count()
    for write in (lambda: ada.remember("of Ada", id="profile"),
                  lambda: ada.remember_many([{"text": "of Ada", "id": "profile"}, "another"])):  # fmt: skip
        with pytest.raises(InvalidInput, match="taken by a memory outside") as raised:
            write()
        assert getattr(raised.value, "error", raised.value).reason == "exists"
    assert ada.count() == before


def test_two_tenants_write_at_the_same_time(owner, opened, roles):
    memories = []
    for name in ("ada", "bob"):
        role = roles()
        Tenants(owner).grant(role, f"/{name}")
        memories.append(opened(role))
    faults = []

    def write(memory, name):
        try:
            for number in range(10):
                memory.remember(f"{name} counts to {number}", tags=["shared", f"{name} {number}"])
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=write, args=each) for each in zip(memories, ("ada", "bob"), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert [memory.count() for memory in memories] == [10, 10]
    assert len(memories[0].tags()) == 11
    assert len(owner.tags()) == 21
    assert owner.store.verify().problems == ()


def test_a_tenant_within_the_scope_of_another(owner, opened, roles):
    outer, inner = roles(), roles()
    Tenants(owner).grant(outer, "/team")
    Tenants(owner).grant(inner, "/team/ada")
    team, ada = opened(outer), opened(inner)
    team.remember("of the team", scope="/ada", tags=["ours"])
    assert plain(ada.list()) == [(ada.list()[0].id, "of the team", "/", ("ours",))]
    ada.remember("of Ada", tags=["mine"])
    assert {each.tag for each in team.tags()} == {"ours", "mine"}
    team.remember("above", tags=["hidden"])
    assert {each.tag for each in ada.tags()} == {"ours", "mine"}
    assert owner.store.verify().problems == ()


def test_a_tenant_of_everything_is_still_no_owner(owner, opened, roles):
    role = roles()
    Tenants(owner).grant(role, "/")
    owner.remember("somewhere", scope="/deep/below", tags=["x"])
    everything = opened(role)
    assert everything.list()[0].scope == "/deep/below"
    assert plain(everything.list()) == plain(owner.list())
    with raises(StoreError, "denied"):
        everything.store.verify()


def test_the_first_to_store_a_vector_names_the_embedder(owner, opened, roles):
    role = roles()
    Tenants(owner).grant(role, "/ada")
    opened(role).remember("the first memory")
    assert owner.store.stats().embedder == "words"
    opened(role, embedder=WordEmbedder()).remember("the second memory")
    assert owner.store.stats().vectors == 2


def test_a_tenant_loses_what_is_revoked_also_where_it_is_open(owner, ada):
    tenants = Tenants(owner)
    (tenant,) = tenants.list()
    assert (tenant.scope, tenant.role in ada.path) == ("/users/ada", True)
    tenants.revoke(tenant.role)
    with pytest.raises(StoreError):
        ada.list()
    with pytest.raises(StoreError):
        ada.remember("too late")
    with raises(StoreError, "unsupported", match="may not use the schema"):
        Memory(ada.path)
    assert tenants.list() == []
    with pytest.raises(NotFound, match="has no scope"):
        tenants.revoke(tenant.role)
    tenants.grant(tenant.role, "/users/bob")
    assert {each.scope for each in Memory(ada.path, embedder="none").list()} == {"/"}


def test_one_role_has_one_scope_and_the_last_is_it(owner, opened, roles):
    role = roles()
    tenants = Tenants(owner)
    owner.remember("in a", scope="/a")
    owner.remember("in b", scope="/b")
    tenants.grant(role, "/a")
    assert [each.text for each in opened(role).list()] == ["in a"]
    tenants.grant(role, "/b")
    assert [each.text for each in opened(role).list()] == ["in b"]
    assert [(each.role, each.scope) for each in tenants.list()] == [(role, "/b")]


def test_roles_that_no_policy_confines_are_refused(owner, roles, postgres_server):
    tenants = Tenants(owner)
    cases = [
        ("postgres", "is a superuser"),
        (roles("BYPASSRLS"), "has BYPASSRLS"),
        (roles("REPLICATION"), "has REPLICATION"),
        (roles("IN ROLE pg_read_all_data"), "member of pg_read_all_data"),
        ("nobody_here", "has no role"),
    ]
    for role, said in cases:
        with pytest.raises(InvalidInput, match=said):
            tenants.grant(role, "/a")
    for role, scope, reason in (("x", "a/b", "filter"), ("", "/a", "value"), ("x" * 64, "/a", "value")):
        with raises(InvalidInput, reason):
            tenants.grant(role, scope)
    assert tenants.list() == []


def test_the_owner_and_its_members_are_refused(postgres_server, postgres_address, roles):
    schema = postgres_address.rpartition("schema=")[2]
    owning = roles()
    member = roles(f"IN ROLE {owning}")
    postgres_server.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {owning}")
    with Memory(postgres_server.address(schema=schema, user=owning), embedder="none") as memory:
        for role in (owning, member):
            with pytest.raises(InvalidInput, match="owns the memory"):
                Tenants(memory).grant(role, "/a")
        other = roles()
        Tenants(memory).grant(other, "/a")
        memory.remember("above")
        with Memory(postgres_server.address(schema=schema, user=other), embedder="none") as tenant:
            assert tenant.list() == []
        with Memory(postgres_server.address(schema=schema, user=member), embedder="none") as whole:
            assert len(whole.list()) == 1


def test_a_role_without_a_scope_is_told_so(owner, opened, roles, postgres_server):
    role = roles()
    schema = owner.path.rpartition("schema=")[2]
    postgres_server.execute(f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}")
    postgres_server.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}")
    with raises(StoreError, "denied", match=f"{role} neither owns the memory nor has a scope"):
        opened(role)


def test_a_tenant_migrates_nothing(owner, ada, monkeypatch):
    monkeypatch.setattr(server, "SCHEMA_VERSION", server.SCHEMA_VERSION + 1)
    with raises(StoreError, "unsupported", match="its owner brings it up to date"):
        Memory(ada.path)


def test_a_file_has_no_tenants(tmp_path):
    with Memory(tmp_path / "store.db", embedder="none") as memory:
        tenants = Tenants(memory)
        for call in (tenants.list, lambda: tenants.grant("ada", "/a"), lambda: tenants.revoke("ada")):
            with pytest.raises(InvalidInput, match="is a file, which has no roles"):
                call()


def test_the_command_line_grants_lists_and_revokes(owner, roles, capsys):
    role = roles()
    assert run(["--db", owner.path, "tenant", "grant", role, "/users/ada"]) == 0
    assert "/users/ada" in capsys.readouterr().err
    assert run(["--db", owner.path, "tenant", "list"]) == 0
    listed = capsys.readouterr().out
    assert role in listed
    assert "/users/ada" in listed
    assert run(["--db", owner.path, "tenant", "revoke", role, "--yes"]) == 0
    assert run(["--db", owner.path, "tenant", "revoke", role, "--yes"]) == 1
    assert Tenants(owner).list() == []
