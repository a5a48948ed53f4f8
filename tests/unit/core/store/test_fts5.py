"""`Settings(fts5=True)`: full-text search in SQL over memories and chunks, kept by triggers whoever writes."""

from __future__ import annotations

import apsw
import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput

FTS5 = Settings(embedder="none", fts5=True)
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
    with Memory(path, settings=FTS5) as memory:
        memory.remember("We migrated to MySQL", scope="/team")
        memory.remember_many(f"The café {number} opens late" for number in range(70))
        memory.knowledge.ingest(tmp_path / "guide.md")
        assert answers(path, "migrating AND mysql") == [("We migrated to MySQL", "/team", "memory")]
        assert len(answers(path, "cafe")) == 70
        ((_, _, kind),) = answers(path, '"grind the beans"')
        assert kind == "chunk"
        assert memory.store.verify().problems == ()


def test_it_follows_changes_deletions_and_a_process_without_the_setting(path):
    with Memory(path, settings=FTS5) as memory:
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
    with Memory(path, settings=FTS5) as memory:
        secret = memory.remember("The velociraptor password is swordfish")
        memory.remember("Something else")
        assert memory.forget(secret.id, receipt=True).receipt.complete
    assert b"velociraptor" not in path.read_bytes()


def test_a_store_gets_it_when_opened_so_and_loses_it_by_a_rebuild_without_the_setting(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("The striped zebra")
    assert "memories_fts" not in names(path)
    with Memory(path, settings=FTS5):
        assert answers(path, "zebra") == [("The striped zebra", "/", "memory")]
    with Memory(path, settings=PLAIN) as memory:
        memory.store.rebuild()
    assert not {name for name in names(path) if name.startswith(("memories_fts", "memory_search"))}


def test_verify_names_what_it_lacks_and_rebuild_mends_it(path):
    with Memory(path, settings=FTS5) as memory:
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
    with pytest.raises(InvalidInput, match="fts5 makes a table in a file"):
        Memory("postgresql://user@localhost/none", settings=FTS5)
