"""`Settings(sql_search=True)`: search by words and vectors in SQL, kept by triggers whoever writes."""

from __future__ import annotations

import apsw
import numpy as np
import pytest
import sqlite_vec

from recallite import Memory, NewRecord, Settings
from recallite.errors import InvalidInput, StoreError
from recallite.store.sqlite import connection as connections

SEARCHED = Settings(embedder="none", sql_search=True)
PLAIN = Settings(embedder="none")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


def answers(path, query):
    """What a program finds that opens the file with nothing but SQLite."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        sql = "SELECT content, scope, kind FROM memory_search WHERE query MATCH ? ORDER BY rank"
        return connection.execute(sql, (query,)).fetchall()
    finally:
        connection.close()


def names(path):
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def test_memories_and_chunks_are_found_by_words_stems_and_without_accents(path, tmp_path):
    (tmp_path / "guide.md").write_text("# Brewing\n\nGrind the beans for a cappuccino.")
    with Memory(path, settings=SEARCHED) as memory:
        memory.remember("We migrated to MySQL", scope="/team")
        memory.remember_many(f"The café {number} opens late" for number in range(70))
        memory.knowledge.ingest(tmp_path / "guide.md")
        assert answers(path, "migrating AND mysql") == [("We migrated to MySQL", "/team", "memory")]
        assert len(answers(path, "cafe")) == 70
        ((_, _, kind),) = answers(path, '"grind the beans"')
        assert kind == "chunk"
        assert memory.store.verify().problems == ()


def test_it_follows_changes_deletions_and_a_process_without_the_setting(path):
    with Memory(path, settings=SEARCHED) as memory:
        opening = memory.remember("The library opens at nine")
        memory.remember("Ada lives in Oslo")
    with Memory(path, settings=PLAIN) as memory:
        memory.update(opening.id, text="The library opens at ten")
        bergen = memory.remember("Ada lives in Bergen")
        assert answers(path, "nine") == []
        assert answers(path, "ten") == [("The library opens at ten", "/", "memory")]
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        current = connection.execute("SELECT content, current FROM memory_search WHERE query MATCH 'ada'").fetchall()
        connection.close()
        assert sorted(current) == [("Ada lives in Bergen", 1), ("Ada lives in Oslo", 0)]
        memory.forget(bergen.id)
        assert answers(path, "bergen") == []
        assert memory.store.verify().problems == ()


def test_what_is_erased_is_in_no_segment(path):
    with Memory(path, settings=SEARCHED) as memory:
        secret = memory.remember("The velociraptor password is swordfish")
        memory.remember("Something else")
        assert memory.forget(secret.id, receipt=True).receipt.complete
    assert b"velociraptor" not in path.read_bytes()


def test_a_store_gets_it_when_opened_so_and_loses_it_by_a_rebuild_without_the_setting(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("The striped zebra")
    assert "memories_fts" not in names(path)
    with Memory(path, settings=SEARCHED):
        assert answers(path, "zebra") == [("The striped zebra", "/", "memory")]
    with Memory(path, settings=PLAIN) as memory:
        memory.store.rebuild()
    assert not {name for name in names(path) if name.startswith(("memories_fts", "memory_search"))}


def test_verify_names_what_it_lacks_and_rebuild_mends_it(path):
    with Memory(path, settings=SEARCHED) as memory:
        memory.remember("The striped zebra")
        connection = apsw.Connection(str(path))
        connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('delete-all')")
        connection.close()
        assert [problem.name for problem in memory.store.verify().problems] == [
            "record that SQL does not find by its words"
        ]
        memory.store.rebuild()
        assert memory.store.verify().problems == ()
    assert answers(path, "zebra")


def test_an_address_of_a_server_has_none():
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidInput, match="sql_search makes tables in a file"):
        Memory("postgresql://user@localhost/none", settings=SEARCHED)


def connected(path):
    """The file as another program opens it, with sqlite-vec."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    return connection


def nearest(path, vector, condition=""):
    sql = f"SELECT content, round(distance, 5) FROM memory_nearest WHERE query MATCH ? AND k = 2 {condition}"
    connection = connected(path)
    try:
        return connection.execute(f"{sql} ORDER BY distance", (np.float32(vector).tobytes(),)).fetchall()
    finally:
        connection.close()


def test_vectors_are_found_from_the_first_one_on(path):
    in_b = "AND scope_id IN (SELECT id FROM scope WHERE path = '/b')"
    with Memory(path, settings=SEARCHED) as memory:
        assert "memories_vec" not in names(path)
        east = memory.remember(NewRecord("east", vector=[1, 0], scope="/a"))
        memory.remember(NewRecord("north", vector=[0, 1], scope="/b"))
        memory.remember("no vector", scope="/b")
        assert nearest(path, [1, 0]) == [("east", 0.0), ("north", 1.0)]
        assert nearest(path, [1, 0], in_b) == [("north", 1.0)]
        memory.update(east.id, scope="/b")
        assert nearest(path, [1, 0], in_b) == [("east", 0.0), ("north", 1.0)]
        assert memory.store.verify().problems == ()
        memory.forget(east.id)
        assert nearest(path, [1, 0]) == [("north", 1.0)]
        assert memory.store.verify().problems == ()


def test_vectors_follow_texts_and_the_embedder(path):
    with Memory(path, settings=Settings(embedder="instant", sql_search=True)) as memory:
        lamp = memory.remember("The lamp is in the attic")
        memory.remember("Ada plays the cello")
        memory.update(lamp.id, text="The lamp is in the cellar")
        (vector,) = memory.embed(["Where is the lamp?"])
        assert nearest(path, vector)[0][0] == "The lamp is in the cellar"
    with Memory(path, settings=Settings(embedder="all-MiniLM-L6-v2")) as memory:
        memory.store.reembed()
        (vector,) = memory.embed(["Who makes music?"])
        assert nearest(path, vector)[0][0] == "Ada plays the cello"
        assert memory.store.verify().problems == ()


def test_verify_names_a_vector_that_sql_does_not_find_and_rebuild_mends_it(path):
    with Memory(path, settings=SEARCHED) as memory:
        memory.remember(NewRecord("east", vector=[1, 0]))
        connection = apsw.Connection(str(path))
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.execute("DELETE FROM memories_vec")
        connection.close()
        assert [problem.name for problem in memory.store.verify().problems] == ["vector that SQL does not find"]
        memory.store.rebuild()
        assert memory.store.verify().problems == ()
    assert nearest(path, [1, 0]) == [("east", 0.0)]


def test_a_vector_that_is_erased_is_nowhere_in_the_file(path):
    with Memory(path, settings=SEARCHED) as memory:
        secret = memory.remember(NewRecord("swordfish", vector=np.linspace(0.1, 1, 384)))
        memory.remember(NewRecord("something else", vector=np.linspace(1, 0.1, 384)))
        value = connected(path).execute("SELECT vector FROM memory_vectors WHERE id = ?", (secret.id,)).get
        assert memory.forget(secret.id, receipt=True).receipt.complete
    assert value[:64] not in path.read_bytes()


def test_without_sqlite_vec_a_write_says_what_it_needs_and_a_rebuild_removes_it(path, monkeypatch):
    with Memory(path, settings=SEARCHED) as memory:
        memory.remember(NewRecord("east", vector=[1, 0]))
    monkeypatch.setattr(connections, "_load_sqlite_vec", lambda _: None)
    with Memory(path, settings=PLAIN) as memory:
        with pytest.raises(StoreError, match="install sqlite-vec, or remove the table"):
            memory.remember(NewRecord("west", vector=[-1, 0]))
        assert [hit.text for hit in memory.recall("east")] == ["east"]
        memory.store.rebuild()
        memory.remember(NewRecord("west", vector=[-1, 0]))
        assert memory.store.verify().problems == ()
