"""Messages of sessions are made by sessions alone, and expire as memories do."""

from __future__ import annotations

import pytest

from recallite import Memory, tools
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord


def test_no_memory_becomes_a_message(memory):
    kept = memory.remember("Ada lives in Oslo")
    with pytest.raises(InvalidInput, match="update makes no message of a memory"):
        memory.update(kept.id, kind="session_message")
    memory.store.rebuild()
    assert memory.get(kept.id).kind == "memory"


def test_an_expired_message_is_purged(memory):
    session = memory.sessions.open("s")
    session.append("user", "The door code is on the fridge")
    session.append("user", "Thanks")
    (found,) = memory.list(sessions=True, where={"text": {"contains": "fridge"}})
    memory.update(found.id, expires_at="2020-01-01")
    assert memory.store.purge_expired().records == 1
    assert [message["content"] for message in session.messages()] == ["Thanks"]


def test_what_a_tool_remembers_of_a_message_is_a_memory(memory):
    memory.sessions.open("s").append("user", "I prefer aisle seats")
    written = tools.call("memory", {"action": "write", "text": "I prefer aisle seats"}, memory=memory)
    assert written["outcome"] == "created"
    assert [record.text for record in memory.list()] == ["I prefer aisle seats"]


@pytest.mark.parametrize("reopened", [False, True])
def test_messages_of_a_session_are_no_neighbours_of_memories_with_its_id_as_source(path, reopened):
    with Memory(path) as memory:
        session = memory.sessions.open("s")
        texts = ["Ada lives in Oslo", "Her flat is on the fourth floor", "The rent is due on Mondays"]
        for position, text in enumerate(texts):
            memory.remember(NewRecord(text, source="s", position=position))
            session.append("user", f"Message {position}")
        if not reopened:
            assert _chain(memory) == texts
    with Memory(path) as memory:
        assert _chain(memory) == texts


def _chain(memory):
    index = memory._engine.index
    with memory._engine.store.read() as reader:
        index.hold(reader)
        try:
            (row,) = index.table.rows_of(index.table.ids)[:1].tolist()
            rows = []
            while row >= 0:
                rows.append(int(index.table.ids[row]))
                row = int(index.graph.next[row])
        finally:
            index.lock.release_reading()
        return [reader.records.fetch(rows)[row_id].text for row_id in rows]
