"""What the services keep stays in its scope, and goes with it."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.errors import NotFound
from tests.unit.core.memory.support import PLAIN

NOTHING = dict.fromkeys(
    ("sessions", "session_messages", "snapshots", "tool_patterns", "error_recoveries", "consolidations",
     "working_memories", "documents"), 0,
)  # fmt: skip


def fill(memory, agent):
    memory.semantic.add("a fact", agent=agent)
    memory.knowledge.ingest(b"# A guide", name="guide.md", scope="/" if agent is None else f"/agents/{agent}")
    memory.episodes.log("an episode", agent=agent)
    memory.procedures.save("a way", "of doing", agent=agent)
    memory.procedures.record_outcome("a way", True, agent=agent)
    memory.experience.record(task_type="query", tools=["x"], success=True, agent=agent)
    memory.experience.record_recovery(tool="x", error="y", recovery="z", agent=agent)
    memory.sessions.open("s", agent=agent).append("user", "secret words")
    memory.episodes.snapshot("s", agent=agent)
    memory.consolidator.run(agent)
    working = memory.working if agent is None else memory.working.agent(agent)
    working.add("in mind")
    working.save()


FULL = dict.fromkeys(NOTHING, 1)


def test_forgetting_an_agents_scope_removes_all_that_services_keep_of_it(memory):
    fill(memory, "ada")
    fill(memory, "ad")
    before = memory.scoped("/agents/ad").store.stats().services
    gone = memory.forget(scope="/agents/ada")
    assert (gone.records, gone.services) == (4, 7)
    assert memory.scoped("/agents/ada").store.stats().services == NOTHING
    assert memory.scoped("/agents/ad").store.stats().services == before == FULL
    assert memory.sessions.search("secret", agent="ada") == []
    assert len(memory.sessions.search("secret")) == 1
    assert memory.procedures.list(agent="ada") == []
    assert memory.consolidator.cycles("ada") == []
    assert memory.store.verify().problems == ()


def test_forgetting_everything_leaves_nothing_and_a_filter_leaves_the_services(memory):
    fill(memory, "ada")
    fill(memory, None)
    memory.forget(scope="/", kinds=["episode"])
    memory.forget(kinds=["memory", "procedure"])
    assert memory.store.stats().services["sessions"] == 2
    assert memory.forget(scope="/").services == 14
    assert memory.store.stats().services == NOTHING
    assert memory.count() == 0


def test_a_scoped_handle_forgets_its_own_only(memory):
    fill(memory, "ada")
    fill(memory, "bob")
    memory.scoped("/agents/ada").forget(scope="/")
    assert memory.scoped("/agents/ada").store.stats().services == NOTHING
    assert memory.scoped("/agents/bob").store.stats().services == FULL


def test_a_scoped_handle_sees_nothing_outside_it(memory):
    fill(memory, "ada")
    fill(memory, None)
    handle = memory.scoped("/elsewhere")
    assert handle.sessions.list() == handle.sessions.search("secret") == []
    assert handle.episodes.recent() == handle.semantic.recent() == handle.procedures.list() == []
    assert handle.episodes.last_snapshot() is None
    assert handle.consolidator.cycles() == []
    assert handle.working.load() == []
    assert handle.experience.tips(None) == handle.experience.tips(None, "x", "y") == []
    with pytest.raises(NotFound):
        handle.episodes.get(memory.episodes.recent()[0].id)
    with pytest.raises(NotFound):
        handle.procedures.get(memory.procedures.list()[0].id)
    fill(handle, "ada")
    assert handle.sessions.list()[0].scope == "/agents/ada"
    assert memory.sessions.list()[0].scope == "/elsewhere/agents/ada"


def test_a_backup_carries_the_services(path, tmp_path):
    with Memory(path, settings=PLAIN) as memory:
        fill(memory, "ada")
        services = memory.store.stats().services
        copy = memory.store.backup(tmp_path / "copy.db")
    with Memory(copy, settings=PLAIN) as memory:
        assert memory.store.stats().services == services == FULL
        assert memory.sessions.open("s", agent="ada").messages() == [{"role": "user", "content": "secret words"}]
        assert memory.procedures.get("a way", agent="ada").use_count == 1
