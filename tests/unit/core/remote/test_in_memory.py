"""What a memory does with a language model at a real endpoint, and that it does as well as without when that fails."""

from __future__ import annotations

import json

import pytest

from recallite import Memory, Settings
from recallite.remote import OpenAICompatible
from tests.endpoint import Answer, said

LONG = (
    "I would like to know which database we are using for the shop now, since someone told me that it was changed some "
    "time ago, and also when the ferry to Lisbon leaves on weekdays, because I want to book a ticket for my sister."
)
FACTS = ["We moved from PostgreSQL to MySQL", "The ferry to Lisbon leaves at nine", "The plants are watered on Fridays"]


def without(settings=None):
    memory = Memory(":memory:", settings=settings)
    memory.remember_many(FACTS)
    return memory


def test_adaptive_depth_asks_the_endpoint_for_sub_queries(server):
    assert len(LONG) > 200
    asked = ["Which database do we use?", "When does the ferry to Lisbon leave?"]
    server.script = [said("```json\n" + json.dumps({"queries": asked, "scopes": []}) + "\n```")]
    model = OpenAICompatible(server.url, "tiny")
    with Memory(":memory:", language_model=model) as memory:
        memory.remember_many(FACTS)
        hits = memory.recall(LONG, profile="hermes", limit=2)
        assert hits.sub_queries == tuple(asked)
        assert {hit.text for hit in hits} == set(FACTS[:2])
        memory.recall("Which database?", profile="hermes")
    assert len(server.asked) == 1, "a short question asks no model"


@pytest.mark.parametrize(
    "answer", [Answer({}, 401), Answer(b"<html>"), said("no JSON"), said('{"queries": 7}'), said("{}", finish="length")]
)
def test_a_failing_endpoint_degrades_recall_to_the_split_without_a_model_and_says_so(server, answer):
    server.otherwise = lambda asked: answer
    with without() as plain:
        expected = plain.recall(LONG, profile="hermes")
    with Memory(":memory:", language_model=OpenAICompatible(server.url, "tiny")) as memory:
        memory.remember_many(FACTS)
        hits = memory.recall(LONG, profile="hermes")
    assert hits.sub_queries == expected.sub_queries != ()
    assert [hit.text for hit in hits] == [hit.text for hit in expected]
    assert any("without the language model" in gap for gap in hits.evidence_gaps)


def test_the_consolidator_has_the_endpoint_find_lasting_facts(server):
    fact = {"content": "The team deploys on Mondays", "importance": 0.8, "episodes": [1, 2]}
    server.script = [said(json.dumps({"facts": [fact]}))]
    model = OpenAICompatible(server.url, "tiny")
    with Memory(":memory:", settings=Settings(embedder="none"), language_model=model) as memory:
        episodes = [memory.episodes.log(f"deployed on a Monday, again {n}", agent="ada").id for n in range(2)]
        cycle = memory.consolidator.run("ada", extract=True)
        assert (cycle.promoted, cycle.error) == (1, None)
        (promoted,) = memory.semantic.recent(agent="ada")
        assert promoted.text == fact["content"]
        links = memory.neighbors(promoted.id)
        assert {end for link in links for end in (link.source, link.target)} == {promoted.id, *episodes}
    assert server.asked[0].body["response_format"]["type"] == "json_schema"


def test_a_failing_endpoint_leaves_the_cycle_as_without_a_model_and_says_so(server):
    server.down = True
    model = OpenAICompatible(server.url, "tiny")
    with Memory(":memory:", settings=Settings(embedder="none"), language_model=model) as memory:
        memory.episodes.log("deployed", agent="ada")
        cycle = memory.consolidator.run("ada", extract=True)
        assert (cycle.compressed, cycle.promoted) == (1, 0)
        assert "503" in cycle.error


def test_a_spent_budget_degrades_too(server):
    model = OpenAICompatible(server.url, "tiny", most_calls=0)
    with Memory(":memory:", language_model=model) as memory:
        memory.remember_many(FACTS)
        hits = memory.recall(LONG, profile="hermes")
        assert any("budget of 0 calls is spent" in gap for gap in hits.evidence_gaps)
        assert hits.sub_queries
    assert server.asked == []
