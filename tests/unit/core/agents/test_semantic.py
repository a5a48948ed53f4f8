"""Semantic memory (seed 002): summary, verified, importance 0.5, links made by themselves at cosine 0.85."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from recallite.agents.tiers import RecordFields
from recallite.errors import InvalidInput, NotFound
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from tests.unit.core.memory.support import PLAIN, state, unit


def near(seed, cosine, dimension=16):
    """A unit vector at this cosine to unit(1)."""
    import numpy as np

    base = unit(1, dimension).astype(np.float64)
    other = unit(seed, dimension).astype(np.float64)
    other -= (other @ base) * base
    other /= np.linalg.norm(other)
    return (cosine * base + np.sqrt(1 - cosine**2) * other).astype(np.float32)


def test_semantic_keeps_summary_verified_tags_and_importance(either):
    record = either.semantic.add("MySQL 8 serves orders since May", summary="Orders: MySQL", verified=True, tags=["db"])
    assert (record.kind, record.importance, record.tags) == ("memory", 0.5, ("db",))
    assert record.metadata == {"summary": "Orders: MySQL", "verified": True}
    assert either.semantic.get(record.id) == either.get(record.id)
    assert [hit.id for hit in either.semantic.search("which database serves orders")] == [record.id]
    seen = either.semantic.get(record.id)
    assert (seen.access_count, seen.accessed_at is None) == (1, False)
    assert either.semantic.recent() == [seen]


def test_a_tier_takes_the_fields_of_every_record():
    assert RecordFields.__annotations__.keys() <= set(NewRecord.__struct_fields__)


def test_semantic_is_marked_as_verified_and_keeps_its_metadata(memory):
    record = memory.semantic.add("Water boils at 100 degrees", metadata={"from": "school"})
    assert record.metadata == {"from": "school"}
    assert memory.semantic.verify(record.id).metadata == {"from": "school", "verified": True}
    assert memory.semantic.verify(record.id, False).metadata == {"from": "school", "verified": False}
    assert memory.history(record.id)[-1].text == record.text


def test_auto_link_from_cosine_085_on_and_ten_links_at_most():
    with Memory(":memory:", settings=PLAIN) as memory:
        close = [
            memory.semantic.add(f"close {n}", vector=near(n, 0.86 + n / 1000), auto_link=False) for n in range(2, 14)
        ]
        far = memory.semantic.add("far", vector=near(20, 0.84), auto_link=False)
        other = memory.episodes.log("an episode says the same", vector=near(21, 0.99))
        written = memory.semantic.add("the newcomer", vector=unit(1))
        links = memory.neighbors(written.id)
        assert len(links) == 10
        ends = {link.source if link.target == written.id else link.target for link in links}
        assert ends == {record.id for record in close[-10:]}
        assert far.id not in ends
        assert other.id not in ends
        assert {link.type for link in links} == {"similar"}
        strengths = sorted(link.strength for link in links)
        assert strengths == pytest.approx([0.86 + n / 1000 for n in range(4, 14)], abs=1e-5)


def test_auto_link_may_be_left_out_and_follows_the_settings_where_they_say():
    with Memory(":memory:", settings=Settings(embedder="none", write=WritePolicy(link_cosine=0.95))) as memory:
        memory.semantic.add("old", vector=near(2, 0.9))
        assert memory.neighbors(memory.semantic.add("linked by nothing", vector=unit(1)).id) == []
        memory.semantic.add("the same", vector=near(3, 0.99), auto_link=False)
        assert [memory.neighbors(record.id) for record in memory.semantic.recent()] == [[], [], []]


def test_real_texts_are_linked_by_their_meaning(embedded):
    first = embedded.semantic.add("The new movie is awesome")
    embedded.semantic.add("Deploys go out on Friday evening")
    second = embedded.semantic.add("The new movie is so great")
    (link,) = embedded.neighbors(second.id)
    assert {link.source, link.target} == {first.id, second.id}
    assert link.strength == pytest.approx(0.89, abs=0.02)


def test_agents_are_isolated_by_their_id(either):
    either.semantic.add("ada's secret plan", agent="ada")
    bobs = either.semantic.add("bob's public plan", agent="bob")
    assert bobs.scope == "/agents/bob"
    assert [hit.text for hit in either.semantic.search("plan", agent="bob")] == ["bob's public plan"]
    assert [record.text for record in either.semantic.recent(agent="ada")] == ["ada's secret plan"]
    handle = either.scoped("/agents/ada")
    assert [record.scope for record in handle.semantic.recent()] == ["/"]
    with pytest.raises(NotFound):
        handle.semantic.get(bobs.id)
    with pytest.raises(NotFound):
        handle.semantic.verify(bobs.id)


def test_recent_is_newest_first_and_only_knowledge(memory):
    for number in range(3):
        memory.semantic.add(f"fact {number}")
    memory.episodes.log("an episode")
    assert [record.text for record in memory.semantic.recent(2)] == ["fact 2", "fact 1"]
    with pytest.raises(NotFound, match="is no memory: its kind is 'episode'"):
        memory.semantic.get(memory.episodes.recent()[0].id)


@pytest.mark.parametrize("agent", ["a/b", "/a", "..", ".", "", "  ", " a", "a\nb", "a\x00b", 7, b"a", "x" * 600])
def test_an_agent_id_is_one_segment(memory, agent):
    before = state(memory)
    calls = [
        lambda: memory.semantic.add("x", agent=agent),
        lambda: memory.semantic.recent(agent=agent),
        lambda: memory.episodes.log("x", agent=agent),
        lambda: memory.procedures.save("x", "y", agent=agent),
        lambda: memory.experience.record(task_type="x", tools=["y"], success=True, agent=agent),
        lambda: memory.experience.tips("x", agent=agent),
        lambda: memory.sessions.open("x", agent=agent),
        lambda: memory.consolidator.run(agent),
        lambda: memory.bootstrap(agent, "x", 100),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match=r"agent|scope"):
            call()
    assert state(memory) == before
    assert memory.sessions.list() == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"importance": float("nan")}, "importance is nan"),
        ({"summary": 7}, "summary is 7"),
        ({"verified": "yes"}, "verified is 'yes': give True or False"),
        ({"auto_link": 1}, "auto_link is 1"),
        ({"metadata": {"verified": True}}, "metadata has the key 'verified', which is an argument of its own"),
    ],
)
def test_bad_knowledge_is_refused(memory, fields, message):
    with pytest.raises(InvalidInput, match=message):
        memory.semantic.add("x", **fields)
    assert memory.count() == 0
