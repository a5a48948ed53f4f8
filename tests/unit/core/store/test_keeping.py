"""The promise on the file format: each version opens the stores of all released ones, reads them and writes to them.

There is one store of each schema in `stores/`. Before 0.1.0 is released, a change of the schema makes the store of
schema 1 anew: `python -m tests.unit.core.store.keeping`. After that it adds to `MIGRATIONS`, and a store to `stores/`.
"""

import hashlib
import lzma

import apsw
import pytest

from recallite import Memory
from recallite.store.sqlite import connection
from recallite.store.sqlite.schema import MIGRATIONS, SCHEMA_VERSION
from tests.unit.core.memory.support import PLAIN
from tests.unit.core.store.keeping import STORES, tables

NUMBERS = range(1, SCHEMA_VERSION + 1)
# Of the statements that make a schema in PostgreSQL, by its version: servers are not kept as files.
SHA256_IN_POSTGRESQL = {1: "ff881cd84b9638a8f380724a952586eb3e34c58458c63bc9035d3bfc0be35956"}
TO_DO = (
    "the schema changed: until 0.1.0 is released, make its store anew (python -m tests.unit.core.store.keeping) or "
    "write down its new hash; after that, add the change to MIGRATIONS first"
)


@pytest.fixture(params=NUMBERS)
def stored(request, tmp_path):
    """A copy of the store that a version of this schema wrote."""
    path = tmp_path / "agent.db"
    path.write_bytes(lzma.decompress((STORES / f"schema_{request.param}.db.xz").read_bytes()))
    return path


def schema_of(path):
    """The SQL of each table, index, view and trigger but for spaces, without what SQLite's FTS5 makes."""
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as database:
        rows = database.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    return {name: sql.split() for name, sql in rows if not name.startswith("sqlite_")}


def test_there_is_a_store_of_each_schema():
    assert {file.name for file in STORES.iterdir()} == {f"schema_{number}.db.xz" for number in NUMBERS}


def test_a_store_that_was_opened_has_the_schema_of_a_new_one(stored, tmp_path):
    for path in (stored, tmp_path / "new.db"):
        Memory(path, settings=PLAIN).close()
    assert schema_of(stored) == schema_of(tmp_path / "new.db"), TO_DO


def test_the_schema_in_postgresql_is_the_one_that_was_written_down():
    pytest.importorskip("psycopg")
    from recallite_postgres.server import SCHEMA, SCHEMA_VERSION

    assert SHA256_IN_POSTGRESQL.get(SCHEMA_VERSION) == hashlib.sha256(SCHEMA.encode()).hexdigest(), TO_DO


def test_a_schema_is_brought_to_the_next_in_place(stored, monkeypatch):
    monkeypatch.setattr(connection, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE later (id)"))
    monkeypatch.setattr(connection, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    with Memory(stored, settings=PLAIN) as memory:
        assert memory.recall("green tea", limit=1)
    assert "later" in schema_of(stored)


def test_the_store_has_rows_in_every_table(stored):
    with apsw.Connection(str(stored), flags=apsw.SQLITE_OPEN_READONLY) as database:
        for name in tables(database):
            assert database.execute(f"SELECT count(*) FROM {name}").get > 0, f"the store has no {name}"


def test_a_stored_store_is_sound_and_says_what_was_put_into_it(stored):
    with Memory(stored) as memory:
        assert memory.store.verify().ok
        for mode in ("keyword", "vector", "hybrid"):
            assert memory.recall("What does Grace like?", scope="/team", mode=mode, limit=1)[0].text.startswith(
                "Grace likes tea"
            )
        oslo = memory.recall("Where does Ada live?", scope="/team/ada", limit=1)[0]
        assert (oslo.text, oslo.scope) == ("Ada lives in Oslo", "/team/ada")
        assert memory.knowledge.search("What is restarted first?", scope="/docs", limit=1)[0].text


def test_a_stored_store_is_written_to(stored):
    with Memory(stored) as memory:
        count = memory.count()
        kept = memory.remember("Barbara keeps the spare key", scope="/team")
        oslo = memory.recall("Where does Ada live?", scope="/team/ada", limit=1)[0]
        memory.update(oslo.id, text="Ada lives in Bergen")
        memory.link(kept.id, oslo.id)
    with Memory(stored) as memory:
        assert memory.count() == count + 1
        assert [version.text for version in memory.history(oslo.id)][-1] == "Ada lives in Bergen"
        assert memory.recall("Who has the spare key?", limit=1)[0].id == kept.id
        memory.forget(kept.id)
        memory.store.rebuild()
        memory.store.vacuum()
        assert memory.count() == count
        assert memory.store.verify().ok
