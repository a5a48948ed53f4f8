"""A language model judges what the rules leave open: in the background, or when asked, and never twice."""

from __future__ import annotations

import asyncio
import json

import pytest

from recallite import AsyncMemory, Memory
from recallite.errors import InvalidInput, LanguageModelError
from recallite.model.settings import WritePolicy
from tests.unit.core.memory.support import PLAIN

TEA, NO_TEA, COFFEE = "Alice likes tea", "Alice does not like tea", "Alice prefers coffee"


class Scripted:
    """Says the same of every pair; keeps what it was asked."""

    def __init__(self, outcome="independent", failing=0):
        self.outcome, self.failing, self.asked = outcome, failing, []

    def complete(self, messages, *, schema=None, max_tokens=None):
        pairs = json.loads(messages[1]["content"])
        self.asked.append([(each["older"]["text"], each["newer"]["text"]) for each in pairs])
        if self.failing:
            self.failing -= 1
            raise LanguageModelError("the budget is spent")
        assert schema is not None
        return json.dumps({"answers": [{"pair": each["pair"], "outcome": self.outcome} for each in pairs]})


@pytest.fixture
def open_with(path):
    """Opens the store with a language model."""
    opened = []

    def opening(model):
        opened.append(Memory(path, settings=PLAIN, language_model=model))
        return opened[-1]

    yield opening
    for memory in opened:
        memory.close()


def links(memory, id):
    return [(each.type, each.reason) for each in memory.neighbors(id)]


def test_what_the_rules_leave_open_is_judged_in_the_background(open_with):
    model = Scripted("supersedes")
    memory = open_with(model)
    old, new = memory.remember(TEA), memory.remember(NO_TEA)
    assert [each.id for each in new.contradictions] == [old.id]
    assert memory._engine.background.wait(60)
    assert model.asked == [[(TEA, NO_TEA)]]
    assert memory.get(old.id).superseded_by == (new.id,)
    assert links(memory, new.id) == [("supersedes", "language model")]
    memory.restore(old.id)
    assert memory.count() == 2
    assert memory.store.verify().problems == ()


@pytest.mark.parametrize(
    ("outcome", "left"), [("contradicts", [("contradicts", "language model")]), ("independent", [])]
)
def test_its_answer_takes_the_place_of_what_the_rules_said(open_with, outcome, left):
    memory = open_with(Scripted(outcome))
    memory.remember(TEA)
    new = memory.remember(NO_TEA)
    assert memory._engine.background.wait(60)
    assert (links(memory, new.id), memory.count()) == (left, 2)


def test_a_pair_is_shown_in_order_of_time(open_with):
    model = Scripted()
    memory = open_with(model)
    memory.remember(NO_TEA, valid_from="2026-03-02T00:00:00Z")
    memory.remember(TEA, valid_from="2026-03-01T00:00:00Z")
    assert memory._engine.background.wait(60)
    assert model.asked == [[(TEA, NO_TEA)]]


def test_what_is_certain_is_not_asked(open_with):
    model = Scripted()
    memory = open_with(model)
    memory.remember_many(["Dana lives in Oslo", "Dana lives in Rome now", "Dana lives in Rome now", "Eve has a dog"])
    memory.remember_many([TEA, NO_TEA], policy=WritePolicy(judge=False))
    assert memory._engine.background.wait(60)
    assert (model.asked, memory.review.judge().waiting) == ([], 0)


def test_nothing_is_queued_without_a_language_model(open_with):
    memory = open_with(None)
    memory.remember_many([TEA, NO_TEA])
    with pytest.raises(InvalidInput, match="needs a language model"):
        memory.review.judge()
    assert open_with(Scripted()).review.judge().waiting == 0


def test_nothing_is_lost_where_the_model_fails(open_with):
    model = Scripted("contradicts", failing=1)
    memory = open_with(model)
    new = [memory.remember(text) for text in (TEA, NO_TEA)][1]
    assert memory._engine.background.wait(60)
    assert links(memory, new.id) == [("contradicts", "negation")]
    assert any("budget is spent" in note for note in memory.store.stats().notes)
    memory.close()
    again = open_with(Scripted("supersedes"))
    judged = again.review.judge()
    assert (judged.superseded, judged.contradicting, judged.independent, judged.waiting) == (1, 0, 0, 0)


def test_a_model_that_answers_something_else_changes_nothing(open_with):
    class Babbling(Scripted):
        def complete(self, messages, *, schema=None, max_tokens=None):
            return '{"answers": [{"pair": 1, "outcome": "replaced"}]}'

    memory = open_with(Babbling())
    new = [memory.remember(text) for text in (TEA, NO_TEA)][1]
    assert memory._engine.background.wait(60)
    assert links(memory, new.id) == [("contradicts", "negation")]
    with pytest.raises(LanguageModelError, match="not the JSON"):
        memory.review.judge()


def test_at_most_so_many_pairs_are_asked(open_with):
    model = Scripted(failing=1)
    memory = open_with(model)
    memory.remember_many([f"{name} {verb} tea" for name in "ABCD" for verb in ("likes", "does not like")])
    assert memory._engine.background.wait(60)
    waiting = memory.review.judge(limit=0 + 1).waiting
    assert waiting == memory.review.judge(limit=1).waiting + 1
    assert memory.review.judge().waiting == 0


def test_what_changed_while_the_model_thought_is_not_marked(open_with):
    class Slow(Scripted):
        def complete(self, messages, *, schema=None, max_tokens=None):
            memory.update(old.id, text=f"Alice likes {len(self.asked)} cups of cocoa")
            return super().complete(messages, schema=schema, max_tokens=max_tokens)

    model = Slow("supersedes", failing=1)
    memory = open_with(model)
    old, _ = memory.remember(TEA), memory.remember(NO_TEA)
    assert memory._engine.background.wait(60)
    model.failing = 0
    assert memory.review.judge().superseded == 0
    assert memory.count() == 2


def test_a_forgotten_record_waits_no_more(open_with):
    memory = open_with(Scripted(failing=9))
    old = memory.remember(TEA)
    memory.remember(NO_TEA)
    assert memory._engine.background.wait(60)
    memory.forget(old.id)
    memory._engine.language_model.failing = 0
    assert memory.review.judge().waiting == 0


def test_it_can_be_awaited(path):
    async def judged():
        async with AsyncMemory(path, settings=PLAIN, language_model=Scripted("contradicts", failing=1)) as memory:
            await memory.remember_many([TEA, NO_TEA])
            memory._now()._engine.background.wait(60)
            return await memory.review.judge()

    assert asyncio.run(judged()).contradicting == 1
