"""Stores of LangGraph and LangMem."""

from __future__ import annotations

from datetime import UTC, datetime

import apsw
import pytest

from recallite import Memory
from recallite.errors import InvalidInput, NotADatabase
from recallite_connect.importers import import_from

# As langgraph-checkpoint-sqlite 3.1 leaves it; values are JSON as bytes.
STORE = """CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value text NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    expires_at TIMESTAMP, ttl_minutes REAL, PRIMARY KEY (prefix, key))"""
ITEMS = [
    ("memories.ada", "k1", b'{"content":{"content":"Ada works on payments"},"kind":"Memory"}', None),
    ("memories.ada", "k2", b'{"text":"Bo is on call","importance":3}', "2096-11-23 10:46:19.488108+00:00"),
    (
        "profiles.ada",
        "p",
        b'{"kind":"Profile","content":{"name":"Ada","age":36,"likes":["tea","go"],"pet":null}}',
        None,
    ),
    ("raw", "k", b'{"a":{"b":[1,{"c":2}]}}', None),
    ("broken", "k", b'{"a', None),
    ("empty", "k", b"{}", None),
]


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store.db"
    database = apsw.Connection(str(path))
    database.execute(STORE)
    for prefix, key, value, expires in ITEMS:
        database.execute(
            "INSERT INTO store VALUES (?, ?, ?, '2026-03-21 09:46:19', '2026-03-21 09:46:19', ?, NULL)",
            (prefix, key, value, expires),
        )
    database.close()
    return path


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


def test_items_are_memories_in_the_scope_of_their_namespace(memory, store):
    done = import_from(memory, "langgraph", store, scope="/team")
    assert {(each.scope, each.text) for each in memory.list()} == {
        ("/team/memories/ada", "Ada works on payments"),
        ("/team/memories/ada", "Bo is on call"),
        ("/team/profiles/ada", "name: Ada\nage: 36\nlikes: tea, go"),
        ("/team/raw", "a: b: 1, c: 2"),
    }
    ada, bo = memory.get("langgraph:/team/memories.ada/k1"), memory.get("langgraph:/team/memories.ada/k2")
    assert ada.metadata == {"namespace": ["memories", "ada"], "key": "k1", "kind": "Memory"}
    assert ada.created_at == datetime(2026, 3, 21, 9, 46, 19, tzinfo=UTC)
    assert (bo.metadata["importance"], bo.expires_at) == (3, datetime(2096, 11, 23, 10, 46, 19, 488108, tzinfo=UTC))
    assert [each.reason.partition(": ")[0] for each in done.troubles] == ["the item broken/k", "the item empty/k"]


def test_a_changed_item_is_a_version(memory, store):
    import_from(memory, "langgraph", store)
    database = apsw.Connection(str(store))
    database.execute("UPDATE store SET value = '{\"text\":\"Bo is off\"}' WHERE key = 'k2'")
    database.close()
    done = import_from(memory, "langgraph", store)
    assert (done.created, done.updated, done.unchanged) == (0, 1, 3)
    assert [each.text for each in memory.history("langgraph:memories.ada/k2")] == ["Bo is on call", "Bo is off"]


def test_a_database_of_another_kind_is_refused(memory, store, tmp_path):
    database = apsw.Connection(str(store))
    database.execute("DROP TABLE store")
    database.close()
    with pytest.raises(InvalidInput, match="no store of LangGraph"):
        import_from(memory, "langgraph", store)
    text = tmp_path / "a.json"
    text.write_text("{}")
    with pytest.raises(NotADatabase):
        import_from(memory, "langgraph", text)


def test_an_item_that_is_nested_too_deeply_is_reported(memory, tmp_path):
    connection = apsw.Connection(str(tmp_path / "deep.db"))
    connection.execute("CREATE TABLE store (prefix, key, value, created_at)")
    for key, value in (("a", '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}"), ("b", '{"text": "plain"}')):
        connection.execute("INSERT INTO store VALUES ('p', ?, ?, '2026-01-01')", (key, value))
    connection.close()
    done = import_from(memory, "langgraph", tmp_path / "deep.db")
    assert (done.created, ["p/a" in each.reason for each in done.troubles]) == (1, [True])
