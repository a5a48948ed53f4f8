"""Working memory (seed 002): capacity 7, FIFO or importance, promotion, saved only when asked."""

from __future__ import annotations

import threading
from types import MappingProxyType

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput, NotFound, StoreUnavailable
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, raw, state


def contents(memory):
    return [item.content for item in memory.working]


def test_working_holds_seven_and_the_oldest_goes(memory):
    added = [memory.working.add(f"item {number}") for number in range(9)]
    assert [each.evicted for each in added[:7]] == [None] * 7
    assert [each.evicted.item.content for each in added[7:]] == ["item 0", "item 1"]
    assert contents(memory) == [f"item {number}" for number in range(2, 9)]
    assert len(memory.working) == 7


def test_working_evicts_the_least_important_and_of_equal_ones_the_oldest(memory):
    memory.working.configure(capacity=3, policy="importance")
    for name, importance in (("a", 0.5), ("b", 0.2), ("c", 0.2)):
        memory.working.add(name, importance=importance)
    assert memory.working.add("d", importance=0.1).evicted.item.content == "b"
    assert memory.working.evict().item.content == "d"
    assert memory.working.evict().item.content == "c"
    assert contents(memory) == ["a"]


def test_explicit_eviction_by_fifo_until_nothing_is_left(memory):
    memory.working.add("first", importance=1.0)
    memory.working.add("second", importance=0.0)
    assert [memory.working.evict().item.content for _ in range(2)] == ["first", "second"]
    assert memory.working.evict() is None


def test_an_evicted_item_is_handed_back_and_may_be_promoted(either):
    either.working.configure(capacity=1)
    either.working.add("the build is broken", importance=0.8)
    evicted = either.working.add("lunch").evicted
    assert evicted.promoted is None
    record = either.working.promote(evicted.item)
    assert (record.kind, record.text, record.importance) == ("memory", "the build is broken", 0.8)
    assert [hit.id for hit in either.recall("what is broken")] == [record.id]
    episode = either.working.promote(either.working.items()[0].id, to="episode")
    assert (episode.kind, episode.metadata) == ("episode", {"event_type": "observation"})
    assert contents(either) == []


def test_items_above_a_given_importance_are_promoted_as_they_are_evicted(memory):
    memory.working.configure(capacity=1, promote_above=0.7, promote_to="episode")
    memory.working.add("trifle", importance=0.1)
    memory.working.add("insight", importance=0.7)
    added = memory.working.add("next")
    assert [record.text for record in memory.list()] == ["insight"]
    assert added.evicted.promoted.id == memory.list()[0].id


def test_a_promotion_that_fails_loses_nothing(memory):
    memory.working.configure(capacity=1, promote_above=0.0)
    memory.working.add({"rows": [1, 2]}, importance=0.5)
    broken = memory.working._semantic.add
    memory.working._semantic.add = lambda *_, **__: (_ for _ in ()).throw(OSError("no space"))
    with pytest.raises(OSError, match="no space"):
        memory.working.add("next")
    assert contents(memory) == [{"rows": [1, 2]}]
    memory.working._semantic.add = broken
    assert memory.working.add("next").evicted.promoted.text == '{"rows":[1,2]}'


@pytest.mark.parametrize(
    "change",
    [
        lambda working: working.add("second"),
        lambda working: working.clear(),
        lambda working: working.evict(),
        lambda working: working.configure(capacity=1, policy="importance", promote_above=0.9, promote_to="episode"),
        lambda working: working.promote(working.items()[0]),
        lambda working: working.save(),
    ],
)
@pytest.mark.parametrize("promote_above", [2.0, 0.0])
def test_a_locked_store_leaves_working_memory_as_it_was(path, change, promote_above):
    with Memory(path, settings=Settings(embedder="none", busy_timeout_ms=0)) as memory:
        working = memory.working
        working.configure(capacity=2, persist=True, promote_above=promote_above)
        before = [working.add("precious").item, working.add("newer").item]
        other = raw(path)
        other.execute("BEGIN IMMEDIATE")
        with raises(StoreUnavailable, "locked"):
            change(working)
        assert working.items() == before
        other.execute("ROLLBACK")
        other.close()
        added = working.add("third")
        assert (added.evicted.item, added.evicted.promoted is None) == (before[0], promote_above > 1)
    with Memory(path, settings=PLAIN) as memory:
        assert [item.content for item in memory.working.load()] == ["newer", "third"]


def test_what_a_failed_call_promoted_is_not_stored_again_by_the_next(memory, monkeypatch):
    memory.working.configure(capacity=1, persist=True, promote_above=0.0)
    kept = memory.working.add("precious").item
    with monkeypatch.context() as patched:
        patched.setattr(memory.working, "_write", lambda _: (_ for _ in ()).throw(StoreUnavailable("busy")))
        with raises(StoreUnavailable, "locked"):
            memory.working.add("next")
    assert memory.working.items() == [kept]
    evicted = memory.working.add("next").evicted
    assert (evicted.item, evicted.promoted.text) == (kept, "precious")
    assert [record.text for record in memory.list()] == ["precious"]


def test_an_item_is_copied_as_json_keeps_it(memory):
    memory.working.configure(persist=True)
    given = {"lines": [1], "row": (np.float64(0.5), MappingProxyType({"a": None}))}
    memory.working.add(given)
    given["lines"].append(object())
    assert contents(memory) == [{"lines": [1], "row": [0.5, {"a": None}]}]
    assert memory.working.load() == memory.working.items()
    assert contents(memory) == [{"lines": [1], "row": [0.5, {"a": None}]}]


@pytest.mark.parametrize("persist", [True, False])
def test_an_item_that_cannot_be_saved_is_refused_and_nothing_is_lost(memory, persist):
    memory.working.configure(capacity=1, persist=persist)
    memory.working.add("precious")
    cycle = {}
    cycle["again"] = cycle
    for item in (cycle, np.zeros(2), {"a": {1}}, {1: 2}):
        with pytest.raises(InvalidInput, match="item"):
            memory.working.add(item)
    assert contents(memory) == ["precious"]


def test_an_item_that_was_changed_into_what_cannot_be_saved_is_refused_by_save(memory):
    item = memory.working.add({"a": 1}).item
    item.content["a"] = object()
    with pytest.raises(InvalidInput, match=r"item\.a is object"):
        memory.working.save()
    with pytest.raises(InvalidInput, match=r"item\.a is object"):
        memory.working.promote(item)
    assert memory.working.items() == [item]


def test_working_memory_is_in_ram_unless_it_is_saved(path):
    with Memory(path, settings=PLAIN) as memory:
        before = state(memory)
        memory.working.add("kept in mind")
        assert state(memory) == before
    with Memory(path, settings=PLAIN) as memory:
        assert memory.working.load() == []
        memory.working.add({"tool": "grep", "lines": [1, 2]}, importance=0.9)
        assert memory.working.save() == 1
        saved = memory.working.items()
    with Memory(path, settings=PLAIN) as memory:
        assert contents(memory) == []
        assert memory.working.load() == saved == memory.working.items()
        memory.working.configure(persist=True)
        memory.working.add("second")
        memory.working.evict()
    with Memory(path, settings=PLAIN) as memory:
        memory.working.load()
        assert contents(memory) == ["second"]


def test_each_handle_and_each_agent_has_a_working_memory_of_its_own(memory):
    memory.working.agent("ada").add("ada's")
    memory.working.agent("bob").add("bob's")
    assert contents(memory) == []
    assert [str(item) for item in memory.working.agent("ada")] == ["ada's"]
    memory.working.agent("ada").save()
    assert [str(item) for item in memory.scoped("/agents/ada").working.load()] == ["ada's"]
    assert memory.scoped("/agents/bob").working.load() == []
    record = memory.working.agent("ada").promote(memory.working.agent("ada").items()[0])
    assert record.scope == "/agents/ada"


def test_a_smaller_capacity_evicts_at_once(memory):
    for number in range(5):
        memory.working.add(number)
    assert [each.item.content for each in memory.working.configure(capacity=2)] == [0, 1, 2]
    assert contents(memory) == [3, 4]


def test_many_threads_lose_no_item(memory):
    memory.working.configure(capacity=10_000)
    threads = [
        threading.Thread(target=lambda name=name: [memory.working.add(f"{name} {n}") for n in range(200)])
        for name in "abcd"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(contents(memory)) == sorted(f"{name} {n}" for name in "abcd" for n in range(200))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda working: working.add("x", importance=float("nan")), "importance is nan: give a number from 0 to 1"),
        (lambda working: working.add("  "), "item is '  '"),
        (lambda working: working.add(object()), "item is object"),
        (lambda working: working.add(float("inf")), "item is inf"),
        (lambda working: working.configure(policy="lru"), "policy is 'lru': use 'fifo' or 'importance'"),
        (lambda working: working.configure(capacity=0), "capacity is 0"),
        (lambda working: working.promote(working.items()[0], to="procedure"), "'semantic' or 'episode'"),
        (lambda working: working.agent("a/b"), "agent is 'a/b'"),
    ],
)
def test_bad_input_to_working_memory_changes_nothing(memory, call, message):
    memory.working.add("stays")
    before = state(memory), memory.working.items()
    with pytest.raises(InvalidInput, match=message.replace("(", r"\(")):
        call(memory.working)
    assert (state(memory), memory.working.items()) == before


def test_an_unknown_item_is_not_found(memory):
    with pytest.raises(NotFound, match="no item 'nothing'"):
        memory.working.promote("nothing")
