"""Hits that cover a whole story: spread over time or sources, by option or for questions that ask for it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recallite import AsyncMemory, Memory
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.recall.order import RELEVANT_SHARE
from recallite.recall.request import recall_arguments
from recallite_tools import call
from recallite_tools.action import Call, DocumentAccess
from recallite_tools.calling import SERVER_TOOLS, execute
from tests.unit.core.memory.support import PLAIN, scored

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
DIMENSION = 8
QUERY = np.eye(DIMENSION, dtype=np.float32)[0]
ALONE = {"vector": QUERY, "half_life_days": 0, "neighbor_boost": 0.0, "importance_weight": 0.0}


def toward(cosine: float) -> np.ndarray:
    vector = np.zeros(DIMENSION)
    vector[0], vector[1] = cosine, np.sqrt(1 - cosine * cosine)
    return vector.astype(np.float32)


def add(memory: Memory, day: float, cosine: float, **fields: object) -> str:
    moment = BEGIN + timedelta(days=day)
    return memory.remember(
        NewRecord(f"entry {day:g} {cosine:g}", created_at=moment, vector=toward(cosine), **fields)
    ).id


def days(hits: list) -> list[int]:
    return [(hit.created_at - BEGIN).days for hit in hits]


@pytest.fixture
def diary(memory):
    """A busy first week that answers best, and a weaker record in each of nine later months."""
    for place in range(20):
        add(memory, place / 4, 0.9 - place / 1000)
    for month in range(1, 10):
        add(memory, 30 * month, 0.6)
    add(memory, 300, 0.05)
    return memory


def ask(memory: Memory, query: str = "zzz", **options: object):
    return memory.recall(query, **recall_arguments({**ALONE, "limit": 10, **options}))


def test_the_best_come_from_one_week_and_the_spread_from_all_months(diary):
    assert max(days(ask(diary))) < 5
    hits = ask(diary, diversify_by="time")
    assert hits.diversify_by == "time"
    assert len(hits) == 10
    assert sum(day >= 30 for day in days(hits)) >= 5
    assert max(days(hits)) >= 240


def test_spread_hits_come_in_order_of_time_and_keep_their_scores(diary):
    best = dict(scored(ask(diary, limit=30)))
    hits = ask(diary, diversify_by="time")
    assert days(hits) == sorted(days(hits))
    assert dict(scored(hits)).items() <= best.items()
    assert 0.9 in [round(hit.signals["cosine"], 3) for hit in hits]  # the best is always among them


def test_what_is_not_relevant_fills_no_period(diary):
    """Few hits rather than weak ones: the record of the tenth month has a twentieth of the best cosine."""
    hits = ask(diary, diversify_by="time", limit=50)
    assert len(hits) == 29
    assert min(hit.signals["spread"] for hit in hits) >= RELEVANT_SHARE * max(hit.signals["spread"] for hit in hits)


def test_age_does_not_end_a_story(memory):
    """Where recency counts, an old record has half the score of a new one; in a story it is as relevant."""
    old = [add(memory, day, 0.8) for day in range(0, 100, 10)]
    new = [add(memory, day, 0.8) for day in np.linspace(1000, 1001, 30).tolist()]
    asked = {**ALONE, "half_life_days": 90, "as_of": BEGIN + timedelta(days=1001, hours=1), "limit": 10}
    assert {hit.id for hit in memory.recall("zzz", **recall_arguments(asked))} <= set(new)
    assert (
        len({hit.id for hit in memory.recall("zzz", **recall_arguments({"diversify_by": "time", **asked}))} & set(old))
        >= 2
    )


def test_one_record_of_long_ago_takes_one_period_only(memory):
    add(memory, -20_000, 0.5)
    for day in range(100):
        add(memory, day, 0.5 + day / 1000)
    found = days(ask(memory, diversify_by="time"))
    assert found[0] == -20_000
    assert sum(day < 50 for day in found[1:]) >= 3


def test_spreading_takes_what_adds_most(memory):
    """The hits are those that a greedy choice takes one by one, the n-th of a source counting a n-th."""
    random = np.random.default_rng(5)
    cosines = np.round(random.uniform(0.5, 0.95, 60), 3)
    ids = [add(memory, 0, cosine, source=f"talk {place % 7}") for place, cosine in enumerate(cosines.tolist())]
    relevance = {hit.id: hit.signals["spread"] for hit in ask(memory, limit=60)}
    left, taken, held = list(ids), [], dict.fromkeys(range(7), 0)
    for _ in range(12):
        gain = {id: relevance[id] / (held[ids.index(id) % 7] + 1) for id in left}
        best = max(left, key=gain.__getitem__)
        left.remove(best)
        taken.append(best)
        held[ids.index(best) % 7] += 1
    hits = ask(memory, diversify_by="source", limit=12)
    assert {hit.id for hit in hits} == set(taken)
    assert len({hit.source.id for hit in hits}) == 7


def test_sources_take_turns_and_a_record_without_one_is_by_itself(memory):
    for place in range(10):
        add(memory, place, 0.9, source="long talk", position=place)
    for place in range(4):
        add(memory, 20 + place, 0.7, source=f"talk {place}", position=0)
    lone = [add(memory, 40 + place, 0.7) for place in range(2)]
    assert {hit.source.id for hit in ask(memory, limit=6)} == {"long talk"}
    hits = ask(memory, limit=9, diversify_by="source")
    assert {hit.source.id for hit in hits if hit.source} == {"long talk", *(f"talk {n}" for n in range(4))}
    assert set(lone) <= {hit.id for hit in hits}


def test_with_groups_every_source_gives_one_hit_and_time_is_covered(memory):
    for place in range(60):
        add(memory, place, 0.9 - (place // 3) / 100, source=f"talk {place // 3}", position=place % 3)
    hits = ask(memory, diversify_by="one_per_source_over_time")
    assert len({hit.source.id for hit in hits}) == 10
    assert days(hits) == sorted(days(hits))
    assert max(days(hits)) > 45


def test_a_token_budget_keeps_what_adds_most(diary):
    whole = ask(diary, diversify_by="time")
    hits = ask(diary, diversify_by="time", token_budget=30)
    assert 1 < len(hits) < len(whole)
    assert hits.left_out == len(whole) - len(hits)
    assert max(hits, key=lambda hit: hit.score) == max(whole, key=lambda hit: hit.score)
    assert max(days(hits)) >= 30  # not the first days alone
    assert days(hits) == sorted(days(hits))


def test_events_are_placed_by_when_they_happened(memory):
    first = memory.remember("the flat in Porto", created_at=BEGIN, valid_from=BEGIN + timedelta(days=9))
    second = memory.remember("the house in Porto", created_at=BEGIN + timedelta(days=1))
    assert [hit.id for hit in memory.recall("Porto", diversify_by="time")] == [second.id, first.id]


def test_records_of_one_moment_come_by_source_and_position(memory):
    for place in (2, 0, 1):
        memory.remember(NewRecord(f"Porto {place}", source="b", position=place, created_at=BEGIN))
    memory.remember(NewRecord("Porto 9", source="a", position=9, created_at=BEGIN))
    assert [hit.text for hit in memory.recall("Porto", diversify_by="time")] == [
        "Porto 9", "Porto 0", "Porto 1", "Porto 2",
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{"mode": "vector"}, {"mmr_lambda": 0.5}, {"fusion": "rrf"}, {"profile": "hermes"}])
def test_spreading_goes_with_other_options(diary, options):
    hits = ask(diary, diversify_by="time", **options)
    assert days(hits) == sorted(days(hits))
    assert scored(hits) == scored(ask(diary, diversify_by="time", **options))


def test_filters_and_scopes_hold(memory):
    for day in range(40):
        add(memory, day, 0.9, scope="/a" if day % 2 else "/b")
    hits = ask(memory, diversify_by="time", since=BEGIN + timedelta(days=10), scope="/a")
    assert {hit.scope for hit in hits} == {"/a"}
    assert min(days(hits)) >= 10
    inside = memory.scoped("/a").recall("zzz", **recall_arguments({**ALONE, "limit": 10, "diversify_by": "time"}))
    assert {hit.scope for hit in inside} == {"/"}
    assert inside.diversify_by == "time"


def test_nothing_spreads_to_nothing(memory):
    assert memory.recall("anything", diversify_by="time") == []
    memory.remember("one", created_at=BEGIN)
    assert len(memory.recall("one", diversify_by="time", limit=1)) == 1


@pytest.mark.parametrize("wrong", ["day", "", 1, ["time"]])
def test_other_values_are_refused(memory, wrong):
    with pytest.raises(InvalidInput, match="diversify_by is"):
        memory.recall("x", diversify_by=wrong)


def test_explain_says_that_others_cover_more(diary):
    best = ask(diary)
    spread = {hit.id for hit in ask(diary, diversify_by="time")}
    out = next(hit.id for hit in best if hit.id not in spread)
    told = diary.review.explain("zzz", out, limit=10, **recall_arguments({**ALONE, "diversify_by": "time"}))
    assert (told.returned, told.stage) == (False, "spread")
    assert "periods" in told.reason
    assert diary.review.explain(
        "zzz", min(spread), limit=10, **recall_arguments({**ALONE, "diversify_by": "time"})
    ).returned


# ── questions that ask for a story ─────────────────────────────────────────────────────────────────────────────────

QUESTION = "In what order did I bring up the garden?"


@pytest.fixture
def talk(memory):
    """What a user says about a garden over a year, and what an assistant answers at more length."""
    for month in range(12):
        moment = BEGIN + timedelta(days=30 * month)
        memory.remember(f"I did work {month} in the garden", context="user", created_at=moment)
        memory.remember("The garden, the garden: a garden wants order", context="assistant", created_at=moment)
    return memory


def test_a_question_about_a_story_is_spread_and_keeps_its_text(talk):
    hits = talk.recall(QUESTION, limit=8)
    assert (hits.query, hits.diversify_by) == (QUESTION, "time")
    assert days(hits) == sorted(days(hits))
    assert {hit.context for hit in hits} == {"user"}
    assert not any("order" in gap or "bring" in gap for gap in hits.evidence_gaps)


def test_other_questions_and_other_profiles_are_ranked(talk):
    for hits in (
        talk.recall("garden", limit=8),
        talk.recall(QUESTION, limit=8, profile={"adaptive": False}),
        talk.recall(QUESTION, limit=8, profile="reeve"),
        talk.recall(QUESTION, limit=8, mode="keyword"),
    ):
        assert hits.diversify_by is None
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_many_questions_are_answered_each_in_its_own_way(talk):
    questions = ["garden", QUESTION, "work 3", "How did the garden change over time?"]
    together = talk.recall_many(questions, limit=6)
    assert [hits.diversify_by for hits in together] == [None, "time", None, "time"]
    assert [hits.query for hits in together] == questions
    for question, hits in zip(questions, together, strict=True):
        alone = talk.recall(question, limit=6)
        assert (scored(hits), hits.evidence_gaps) == (scored(alone), alone.evidence_gaps)


def test_explain_follows_the_same_question(talk):
    hits = talk.recall(QUESTION, limit=8)
    told = talk.review.explain(QUESTION, hits[3].id, limit=8)
    assert (told.query, told.returned, told.rank) == (QUESTION, True, 4)


def test_the_twin_answers_alike(path):
    async def main():
        async with AsyncMemory(path, settings=PLAIN) as memory:
            for day in range(20):
                await memory.remember(f"garden {day}", created_at=BEGIN + timedelta(days=day))
            return await memory.recall("garden", diversify_by="time", limit=5), await memory.recall(QUESTION, limit=5)

    spread, adapted = asyncio.run(main())
    with Memory(path, settings=PLAIN) as memory:
        assert scored(spread) == scored(memory.recall("garden", diversify_by="time", limit=5))
        assert scored(adapted) == scored(memory.recall(QUESTION, limit=5))
    assert adapted.diversify_by == "time"


def test_the_tool_and_that_of_the_server_spread_where_they_are_asked_to(talk):
    asked = {"query": "garden", "limit": 4, "diversify_by": "time"}
    told = call("memory", {"action": "recall", **asked}, memory=talk)
    for answer in (told, execute(SERVER_TOOLS["recall"], asked, Call(talk, "/", DocumentAccess()))):
        times = [result["created_at"] for result in answer["results"]]
        assert times == sorted(times)
        assert len(set(times)) == 4


def test_parts_of_a_long_question_are_spread_too(talk):
    question = "Which work did the garden need this year? And what did the assistant say of its order and plants?"
    hits = talk.recall(question, limit=6, diversify_by="time", profile={"long_query_chars": 40})
    assert hits.sub_queries
    assert hits.diversify_by == "time"
    assert days(hits) == sorted(days(hits))
