"""Evaluation of questions on a store."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from msgspec import structs

from recallite import AsyncMemory, Filter, Memory, Settings
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.model.reports import Evaluation
from recallite.model.settings import Profile
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import ONLY_STORES


def lost(memory, question, expected, **options):
    """The stage and the reason of the one memory that a question expects."""
    found = memory.review.evaluate([{"question": question, "expected": [expected]}], **options)
    (one,) = found.results[0].expected
    assert found.lost == {one.stage: 1}
    assert one.rank is None
    assert found.missed == found.results
    assert (
        memory.review.explain(question, one.id, limit=options.pop("k", 10), **recall_arguments(options)).reason
        == one.reason
    )
    return one.stage


def test_a_memory_that_a_filter_hides(memory):
    apple = memory.remember("apple", scope="/a")
    assert lost(memory, "apple", apple.id, scope="/b") == "filter"


def test_a_memory_that_neither_signal_finds(memory):
    memory.remember("apple")
    other = memory.remember("nothing of the kind")
    assert lost(memory, "apple", other.id) == "candidates"


def test_a_memory_below_a_minimum(memory):
    memory.remember("apple apple apple pie")
    low = memory.remember("apple and many other words that are about something else")
    assert lost(memory, "apple pie", low.id, min_confidence=0.9) == "threshold"
    assert lost(memory, "apple pie", low.id, min_score=0.9) == "threshold"


def test_a_memory_beyond_the_first_k(memory):
    memory.remember_many([f"apple {'x ' * number}" for number in range(10)])
    order = [hit.id for hit in memory.recall("apple", limit=10, profile={"half_life_days": 0})]
    assert lost(memory, "apple", order[7], k=3, half_life_days=0) == "limit"
    found = memory.review.evaluate([{"question": "apple", "expected": [order[7]]}], k=3, half_life_days=0)
    assert found.results[0].expected[0].candidate_rank == 8


def test_a_memory_that_diversity_moved_down(memory):
    memory.remember("apple pie recipe")
    double = memory.remember("apple pie recipe", policy=ONLY_STORES)
    memory.remember("apple orchard in autumn")
    assert lost(memory, "apple pie", double.id, k=2, mmr_lambda=0.2, half_life_days=0) == "diversify"


def test_a_memory_that_another_of_its_source_stands_for(memory):
    memory.remember(NewRecord("apple apple pie", source="s", position=0))
    other = memory.remember(NewRecord("apple tree", source="s", position=1))
    assert lost(memory, "apple pie", other.id, diversify_by="one_per_source") == "group"


def test_a_memory_of_a_time_that_is_covered_already(memory):
    memory.remember_many(
        [
            {"text": f"apple pie {'x ' * number}", "valid_from": f"2026-0{month}-01"}
            for number, month in enumerate((1, 1, 1, 5, 9))
        ]
    )
    options = {"diversify_by": "time", "half_life_days": 0}
    found = {hit.id for hit in memory.recall("apple pie", limit=3, **recall_arguments(options))}
    left = next(each.id for each in memory.list() if each.valid_from.month == 1 and each.id not in found)
    assert lost(memory, "apple pie", left, k=3, **options) == "spread"


def test_a_memory_that_did_not_fit_the_budget(memory):
    memory.remember("apple pie")
    long = memory.remember("apple " + "word " * 200)
    assert lost(memory, "apple pie", long.id, token_budget=20) == "token_budget"


@pytest.fixture
def fruit(memory):
    """A store with questions about it."""
    memory.remember_many(f"apple {name}" for name in ("pie", "tree", "cider", "juice", "cake"))
    memory.remember_many([{"text": "pear cake", "scope": "/pears"}, {"text": "plum cake", "tags": ["stone"]}])
    return memory


QUESTIONS = [
    {"question": "apple cider", "expected": ["apple cider"]},
    {"question": "cake", "expected": ["apple cake", "pear cake", "plum cake"]},
    {"question": "cake", "expected": ["pear cake"], "scope": "/pears", "id": "scoped"},
    {"question": "tree cake", "expected": ["plum cake"], "tags": ["stone"]},
    {"question": "cherry", "expected": []},
    {"question": "juice", "expected": ["cherry juice"]},
]


def test_the_report_is_made_of_the_answers_of_recall(fruit):
    found = fruit.review.evaluate(QUESTIONS, k=2)
    assert (found.k, found.options, found.counted) == (2, {}, 4)
    assert [each.id for each in found.results] == ["1", "2", "scoped", "4", "5", "6"]
    assert [each.hits for each in found.results] == [
        tuple(hit.id for hit in fruit.recall(each["question"], limit=2, scope=each.get("scope"), tags=each.get("tags")))
        for each in QUESTIONS
    ]  # fmt: skip
    assert found.figures.recall == pytest.approx((1 + 2 / 3 + 1 + 1) / 4)
    assert found.figures.hit == 1
    assert found.lost == {"limit": 1}
    assert [each.id for each in found.missed] == ["2"]
    assert [each.question for each in found.not_stored] == ["6"]
    assert (found.against, found.comparisons) == (None, ())
    assert json.loads(found.to_json())["figures"]["hit"] == 1


def test_the_order_of_the_questions_changes_nothing(fruit):
    there = fruit.review.evaluate(QUESTIONS, k=2, as_of="2999-01-01")
    named = [{**each, "id": one.id} for each, one in zip(QUESTIONS, there.results, strict=True)]
    back = fruit.review.evaluate(named[::-1], k=2, as_of="2999-01-01")
    assert back.results == there.results[::-1]
    assert back.figures == there.figures
    assert (back.lost, back.confidence) == (there.lost, there.confidence)


def test_an_evaluation_gives_the_same_twice(fruit):
    one, other = (
        fruit.review.evaluate(QUESTIONS, k=2, against={"fusion": "rrf"}, as_of="2999-01-01") for _ in range(2)
    )
    assert one == other


def test_confidence_counts_right_hits_and_questions_without_an_answer(fruit):
    found = fruit.review.evaluate([*QUESTIONS, {"question": "apple", "expected": []}], k=2).confidence
    right = [
        hit.confidence
        for each in QUESTIONS[:4]
        for hit in fruit.recall(
            each["question"],
            limit=2,
            **recall_arguments({name: each[name] for name in ("scope", "tags") if name in each}),
        )
        if hit.text in each["expected"]
    ]
    wrong = max(hit.confidence for hit in fruit.recall("apple", limit=2))
    assert (found.right, found.unanswerable) == (5, 2)
    assert [each.min_confidence for each in found.thresholds] == [round(0.1 * step, 1) for step in range(1, 10)]
    for each in found.thresholds:
        assert each.right == sum(value >= each.min_confidence for value in right)
        assert each.unanswerable == (wrong >= each.min_confidence)
    assert found.keeps_95 == pytest.approx(min(right))


def test_a_minimum_that_is_set_still_counts_what_it_dropped(fruit):
    free, strict = (
        fruit.review.evaluate(QUESTIONS, k=2, as_of="2999-01-01", **given) for given in ({}, {"min_confidence": 1})
    )
    assert strict.figures.recall < free.figures.recall
    assert strict.confidence.right >= free.confidence.right
    assert strict.lost["threshold"] > 0


def test_two_runs_are_compared_by_question(fruit):
    found = fruit.review.evaluate(QUESTIONS, k=2, against={"min_confidence": 1.0}, neighbor_boost=0)
    assert found.options == {"neighbor_boost": 0}
    assert found.against.options == {"neighbor_boost": 0, "min_confidence": 1.0}
    assert found.figures == fruit.review.evaluate(QUESTIONS, k=2, neighbor_boost=0).figures
    recall, mrr = found.comparisons
    assert (recall.figure, mrr.figure) == ("recall", "mrr")
    assert not recall.better
    assert len(recall.worse) + recall.equal == found.counted
    assert recall.difference == pytest.approx(found.against.figures.recall - found.figures.recall)
    assert recall.low <= recall.difference <= recall.high


def test_the_other_order_of_two_runs_is_the_mirror_image(fruit):
    there = fruit.review.evaluate(QUESTIONS, k=2, mode="keyword", against={"mode": "hybrid", "min_score": 0.9})
    back = fruit.review.evaluate(
        QUESTIONS, k=2, mode="hybrid", min_score=0.9, against={"mode": "keyword", "min_score": 0.0}
    )
    assert (there.figures, there.against.figures) == (back.against.figures, back.figures)
    for one, other in zip(there.comparisons, back.comparisons, strict=True):
        assert (one.better, one.worse, one.p) == (other.worse, other.better, other.p)
        assert one.difference == -other.difference


def test_an_earlier_evaluation_is_compared_as_it_is(fruit):
    before = fruit.review.evaluate(QUESTIONS, k=2, min_score=0.9, against={"neighbor_boost": 0})
    saved = msgspec.json.decode(before.to_json(), type=Evaluation)
    assert saved == before
    reworded = [{**QUESTIONS[0], "question": "cider"}, *QUESTIONS[1:]]
    found = fruit.review.evaluate(reworded, k=2, against=saved)
    assert found.against == structs.replace(before, against=None, comparisons=())
    assert found.figures == fruit.review.evaluate(reworded, k=2).figures
    both = fruit.review.evaluate(reworded[1:], k=2, against={"min_score": 0.9}).comparisons[0]
    assert found.comparisons[0].difference == both.difference, "the reworded question is not compared"
    with pytest.raises(InvalidInput, match="the earlier evaluation counts the first 2 hits: give k=2"):
        fruit.review.evaluate(QUESTIONS, against=saved)


def test_options_of_every_kind_are_taken_and_named(fruit):
    options = {
        "profile": Profile(neighbor_boost=0),
        "diversify_by": "one_per_source",
        "filter": Filter(scope="/"),
        "token_budget": 50,
    }
    found = fruit.review.evaluate([QUESTIONS[0]], **options, against={"profile": "hermes"})
    assert found.options["profile"]["neighbor_boost"] == 0
    assert found.against.options["profile"] == "hermes"
    assert json.loads(found.to_json())["options"]["token_budget"] == 50


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"neighbor_bost": 0}, "recall has no option 'neighbor_bost'"),
        ({"against": {"neighbor_bost": 0}}, "recall has no option 'neighbor_bost'"),
        ({"against": "keyword"}, "against is 'keyword': give options of recall that differ"),
        ({"against": {"mode": "fuzzy"}}, "mode is 'fuzzy'"),
        ({"against": {"limit": 5}}, "limit is no option here"),
        ({"limit": 5}, "limit is no option here"),
        ({"k": 0}, "k is 0"),
        ({"k": 10_001}, "k is 10001"),
    ],
)
def test_a_bad_option_is_refused(fruit, options, said):
    with pytest.raises(InvalidInput) as raised:
        fruit.review.evaluate(QUESTIONS, **options)
    assert str(raised.value).startswith(said)


def test_the_filter_of_a_question_goes_before_that_of_the_call(fruit):
    found = fruit.review.evaluate(QUESTIONS[2:4], scope="/nowhere")
    assert [each.figures.recall for each in found.results] == [1, 0]
    with pytest.raises(InvalidInput, match=r"^question 1: filter and scope are both given"):
        fruit.review.evaluate(QUESTIONS[2:3], filter=Filter(scope="/pears"))


def test_progress_counts_the_questions_of_both_runs(fruit):
    told = []
    fruit.review.evaluate(
        QUESTIONS, against={"neighbor_boost": 0}, on_progress=lambda done, total: told.append((done, total))
    )
    assert told == [(done, 12) for done in range(1, 13)]


def test_without_a_question_that_counts_there_are_no_figures(memory):
    found = memory.review.evaluate([{"question": "apple", "expected": ["apple"]}, {"question": "x", "expected": []}])
    assert (found.figures, found.counted, found.lost, len(found.not_stored)) == (None, 0, {}, 1)
    assert (found.confidence.right, found.confidence.keeps_95, found.confidence.unanswerable) == (0, None, 1)


def test_the_store_does_not_change(path):
    with Memory(path, settings=Settings(embedder="none", index_snapshot=False)) as memory:
        memory.remember("apple pie")
        memory.review.evaluate([{"question": "apple", "expected": ["apple pie", "plum"]}])
    with Memory(path, settings=Settings(embedder="none", index_snapshot=False)) as memory:
        (kept,) = memory.list()
        assert (kept.access_count, kept.accessed_at) == (0, None)
        memory.recall("apple")
        assert memory.list()[0].access_count == 1


def test_it_writes_nothing_so_it_needs_no_lock(path):
    settings = Settings(embedder="none", busy_timeout_ms=0)
    with Memory(path, settings=settings) as memory, Memory(path, settings=settings) as other:
        memory.remember("apple pie")
        with other._engine.atomic():
            assert (
                memory.review.evaluate([{"question": "apple", "expected": ["apple pie", "plum"]}]).figures.recall == 1
            )


def test_the_asynchronous_twin(path):
    async def ask():
        async with AsyncMemory(path, settings=Settings(embedder="none")) as memory:
            await memory.remember("apple pie")
            return await memory.review.evaluate([{"question": "apple", "expected": ["apple pie"]}], k=3)

    assert asyncio.run(ask()).figures.recall == 1


def test_meaning_is_asked_in_batches(embedded):
    embedded.remember_many(["Ada moved from Oslo to Bergen", "The plants are watered on Fridays"])
    asked = [{"question": f"Where does Ada live, question {number}?", "expected": ["Bergen"]} for number in range(260)]
    found = embedded.review.evaluate(asked, k=1)
    assert found.figures.hit_at_1 == 1
    assert found.counted == 260
