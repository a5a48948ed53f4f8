"""Messages of sessions are made by sessions alone, and expire as memories do."""

from __future__ import annotations

import pytest

from recallite.doors import tools
from recallite.errors import InvalidInput


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
