"""Many rows that are inserted at once are the same as those inserted one by one, and are all there or none."""

from __future__ import annotations

import pytest

from recallite.derivation import derive
from recallite.errors import Conflict, StoreError, StoreUnavailable
from recallite.store.opening import open_store
from recallite_postgres.repositories import BY_TEXT
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises
from tests.system.postgres.proxy import Proxy
from tests.unit.core.store.contract.support import EMBEDDER, row, vector

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite_postgres import connection

COUNT = 4 * connection.FEWEST_ROWS


@pytest.fixture
def store(postgres_address):
    opened = open_store(postgres_address, derive=derive)
    yield opened
    opened.close()


@pytest.fixture
def stores(store, postgres_server, postgres_address, role):
    """The store as its owner has it, and as a tenant of the whole of it does."""
    name, password = role()
    store.grant_tenant(name, "/")
    schema = postgres_address.rpartition("schema=")[2]
    tenant = open_store(postgres_server.address(user=name, password=password, schema=schema), derive=derive)
    yield {"owner": store, "tenant": tenant}
    tenant.close()


def rows(count, prefix):
    for number in range(count):
        yield row(
            f"{prefix}{number}",
            f"text ä {number} '\\{{}}",
            tags=("one", f"tag{number % 3}"),
            context=None if number % 2 else "Ada",
            importance=number / count if number % 3 else 1,
            pinned=number % 2 == 0,
            position=None if number % 4 else number,
            source="book" if number % 5 else None,
            vectors=(vector(number),),
        )


def insert(writer, every):
    return writer.records.insert(every, writer.vectors.register_embedder(**EMBEDDER))


def sizes(store):
    """How many rows each table has, but for words and tags, which are added in a transaction of their own."""
    with store.read() as reader:
        tables = reader.connection.execute(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() "
            "AND tablename NOT IN ('term', 'tag', 'kind', 'scope')"
        ).fetchall()
        return {name: reader.connection.execute(f"SELECT count(*) FROM {name}").get for (name,) in tables}


SELECTS = (
    "SELECT kind, text, context, importance, pinned, position, content_hash, indexed, recorded_until FROM record WHERE "
    "id {}",
    "SELECT place, tag_id FROM record_tag WHERE record_id {}",
    "SELECT terms, counts FROM record_terms WHERE record_id {}",
    "SELECT part, value, embedder_id FROM vector WHERE record_id {}",
    "SELECT keys, frames FROM statement WHERE record_id {}",
)


def test_many_rows_are_as_single_ones_are(stores, monkeypatch):
    monkeypatch.setattr(connection, "_ROWS_OF_ARRAYS", 7)
    found = {}
    for who, prefix, batch in (("owner", "many", COUNT), ("tenant", "of a tenant", COUNT), ("owner", "single", 1)):
        with stores[who].atomic() as writer:
            every, ids = [*rows(COUNT, prefix)], []
            for start in range(0, COUNT, batch):
                ids += insert(writer, every[start : start + batch])
            within = f"BETWEEN {ids[0]} AND {ids[-1]}"
            found[prefix] = [sorted(map(repr, writer.connection.execute(sql.format(within)))) for sql in SELECTS]
            # PostgreSQL refuses COPY to whom row-level security confines.
            assert writer._inserter._table("record").confined == (who == "tenant")
    assert found["many"] == found["of a tenant"] == found["single"]
    assert [len(each) for each in found["many"][:4]] == [COUNT, 2 * COUNT, COUNT, COUNT]


@pytest.mark.parametrize("who", ["owner", "tenant"])
def test_many_rows_that_the_server_refuses_leave_nothing(stores, who, postgres_server):
    store, schema = stores[who], stores["owner"].path.rpartition("schema=")[2]
    with stores["owner"].atomic() as writer:
        insert(writer, [*rows(COUNT, "before")])
    before = sizes(stores["owner"])
    with raises(Conflict, "exists"), store.atomic() as writer:
        insert(writer, [*rows(COUNT, "new"), row("before3")])
    assert sizes(stores["owner"]) == before
    postgres_server.execute(
        f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"'BEGIN RAISE division_by_zero; END'; CREATE TRIGGER refuse BEFORE INSERT ON {schema}.vector "
        f"FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"
    )
    with pytest.raises(StoreError, match="SQLSTATE 22012"), store.atomic() as writer:
        insert(writer, [*rows(COUNT, "new")])
    assert sizes(stores["owner"]) == before


def test_of_a_transaction_the_refused_part_alone_is_undone(store):
    with store.atomic() as writer:
        insert(writer, [*rows(COUNT, "first")])
        with raises(Conflict, "exists"), store.atomic() as inner:
            insert(inner, [*rows(COUNT, "second"), row("first3")])
        insert(writer, [*rows(COUNT, "third")])
    with store.read() as reader:
        kept = reader.connection.execute("SELECT public_id FROM record").fetchall()
    assert sorted(kept) == sorted((each.public_id,) for prefix in ("first", "third") for each in rows(COUNT, prefix))


@pytest.mark.parametrize("when", ["before", "during", "after"])
@pytest.mark.parametrize("at", [b"COPY record (", b"the last of many", b"COPY vector ("])
def test_many_rows_whose_connection_ends_leave_nothing(store, postgres_server, postgres_address, at, when):
    with store.atomic() as writer:
        insert(writer, [*rows(COUNT, "before")])
    before = sizes(store)
    with Proxy(postgres_server.socket) as proxy:
        other = open_store(proxy.address(schema=postgres_address.rpartition("schema=")[2]), derive=derive)
        try:
            cut = proxy.cut_at(at, when=when)
            with raises(StoreUnavailable, "connection_lost", match="nothing was written"), other.atomic() as writer:
                insert(writer, [*rows(COUNT, "new"), row("last", "the last of many")])
            assert cut.wait(LAST_RESORT_SECONDS)
            assert sizes(store) == before
            with other.atomic() as writer:
                insert(writer, [*rows(COUNT, "new")])
        finally:
            other.close()
    assert sizes(store)["record"] == before["record"] + COUNT


def test_equal_texts_are_found_by_their_index(store):
    with store.atomic() as writer:
        insert(writer, [*rows(64 * COUNT, "row")])
    store.compact()
    with store.read() as reader:
        plan = reader.connection.execute(
            f"EXPLAIN {BY_TEXT}",
            (reader.byte_array([bytes([place] * 8) for place in range(20)]),),
        ).fetchall()
    assert any("Index Cond: (text_key = ANY" in line for (line,) in plan), plan
