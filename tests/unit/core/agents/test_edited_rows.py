"""Rows that another program has edited: what reads them says which, as StoreCorrupt, and the rest can be read."""

from __future__ import annotations

from datetime import timedelta

import pytest

from recallite import Memory
from recallite.errors import StoreCorrupt
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, raw

NOT_UTF8 = "CAST(x'ff61' AS TEXT)"
EVERY = {
    "sessions": lambda memory: memory.sessions.list(),
    "session search": lambda memory: memory.sessions.search("hello"),
    "snapshots": lambda memory: memory.episodes.snapshots(),
    "cycles": lambda memory: memory.consolidator.cycles(),
    "procedures": lambda memory: memory.procedures.list(),
    "tips": lambda memory: memory.experience.tips("task", "grep", "no such file"),
    "list": lambda memory: memory.list(kinds=["memory"]),
    "recall": lambda memory: memory.recall("walrus", kinds=["memory"]),
    "bootstrap": lambda memory: memory.bootstrap(None, "deploy"),
}
READERS = {
    "session": {"sessions"},
    "session_message": {"sessions"},
    "session_snapshot": {"snapshots"},
    "procedure_use": {"procedures"},
    "tool_pattern": {"tips"},
    "error_recovery": {"tips"},
    "consolidation": {"cycles"},
    "record": {"list", "recall"},
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("store") / "agent.db")
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("the walrus", context="zoo", metadata={"a": 1})
        memory.episodes.log("event")
        memory.consolidator.run()
        memory.procedures.save("deploy", "Run the script")
        memory.sessions.open("s", provider="p").append("user", "hello")
        memory.episodes.snapshot("s", summary="greeting", started_at="2026-01-01T00:00:00Z")
        for _ in range(2):
            memory.experience.record(task_type="task", tools=["grep"], success=True)
        memory.experience.record_recovery(tool="grep", error="no such file", recovery="look first")
    return path


@pytest.fixture
def edited(filled, tmp_path):
    opened = []

    def edit(table, column, value):
        source, target = raw(filled), raw(str(tmp_path / "edited.db"))
        with target.backup("main", source, "main") as backup:
            backup.step()
        source.close()
        target.execute("PRAGMA ignore_check_constraints = 1")
        chosen = "WHERE kind = 'memory'" if table == "record" else ""
        target.execute(f"UPDATE {table} SET {column} = {value} {chosen}")
        target.close()
        opened.append(Memory(str(tmp_path / "edited.db"), settings=PLAIN))
        return opened[0]

    yield edit
    for memory in opened:
        memory.close()


@pytest.mark.parametrize(
    ("table", "column", "value", "said", "readers"),
    [
        ("session", "provider", NOT_UTF8, "not UTF-8", ["sessions"]),
        ("session", "provider", "x'ff'", "session 1: provider is not what was stored", ["sessions"]),
        ("session_message", "created_at", "''", "session 1: updated_at is not", ["sessions"]),
        ("session_snapshot", "summary", "x'ff'", "snapshot .*: summary is not", ["snapshots", "bootstrap"]),
        ("session_snapshot", "started_at", "'abc'", "snapshot .*: started_at is not", ["snapshots", "bootstrap"]),
        ("session_snapshot", "messages", "'[1]'", "snapshot .* is not what was stored", ["snapshots", "bootstrap"]),
        ("procedure_use", "use_count", "''", "procedure_use of .*: use_count is not", ["procedures", "bootstrap"]),
        ("tool_pattern", "task_type", "x'ff'", "tool_pattern .*: task_type is not", ["bootstrap"]),
        ("tool_pattern", "pattern", NOT_UTF8, "not UTF-8", ["tips", "bootstrap"]),
        ("error_recovery", "error_pattern", "x'ff'", "error_recovery 'grep': error_pattern is not", ["tips"]),
        ("consolidation", "created_at", "-9223372036854775808", "consolidation 1: created_at is not", ["cycles"]),
        ("consolidation", "error", NOT_UTF8, "not UTF-8", ["cycles"]),
        ("record", "text", NOT_UTF8, "not UTF-8", ["list", "recall", "bootstrap"]),
        ("record", "text", "x'ff'", "record .*: text is not", ["list", "recall", "bootstrap"]),
        ("record", "context", "x'ff'", "record .*: context is not", ["list", "recall", "bootstrap"]),
        ("record", "importance", "''", "record .*: importance is not", ["list", "recall", "bootstrap"]),
        (
            "record",
            "valid_from",
            "9223372036854775807",
            "record .*: valid_from is not",
            ["list", "recall", "bootstrap"],
        ),
        ("record", "metadata", "''", "metadata of record", ["list", "recall", "bootstrap"]),
        ("record", "metadata", "'[1]'", "metadata of record", ["list", "recall", "bootstrap"]),
    ],
)
def test_an_edited_row_is_store_corrupt_and_other_tables_can_be_read(edited, table, column, value, said, readers):
    memory = edited(table, column, value)
    for name in readers:
        with pytest.raises(StoreCorrupt, match=said):
            EVERY[name](memory)
    for name in EVERY.keys() - READERS[table] - {"bootstrap"}:
        EVERY[name](memory)


@pytest.mark.parametrize("value", [NOT_UTF8, "x'ff'", "'{'", "'null'", "1e308"])
def test_a_message_that_was_edited_is_named_and_can_be_skipped(edited, value):
    memory = edited("session_message", "message", value)
    memory.sessions.get("s").append("user", "goes on")
    with raises(StoreCorrupt, "message", match="session 's', message 0"):
        memory.sessions.get("s").messages()
    assert memory.sessions.get("s").messages(skip_damaged=True) == [{"role": "user", "content": "goes on"}]
    with raises(StoreCorrupt, "message"):
        memory.episodes.snapshot("s")


@pytest.mark.parametrize("column", ["name", "provider"])
def test_a_session_that_cannot_be_read_can_be_removed(edited, column):
    memory = edited("session", column, NOT_UTF8)
    with pytest.raises(StoreCorrupt):
        memory.sessions.list()
    assert memory.sessions.cleanup(timedelta(0)) == 1
    assert memory.sessions.list() == []


@pytest.mark.parametrize("column", ["text", "context"])
def test_verify_counts_a_text_that_is_none(edited, column):
    problems = [problem.name for problem in edited("record", column, "x'ff'").store.verify().problems]
    assert "record whose text was changed outside Recallite" in problems
