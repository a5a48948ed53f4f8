"""Procedures (seed 002): rate = 0.9 * rate + 0.1 * outcome, and exact counts."""

from __future__ import annotations

import pytest

from recallite.errors import InvalidInput, NotFound
from tests.unit.core.memory.support import state


def test_the_rate_moves_by_a_tenth_and_the_counts_are_exact(either):
    saved = either.procedures.save("deploy", "How to deploy", pattern="build; ship", tags=["ops"], success_rate=0.8)
    assert (saved.success_rate, saved.use_count, saved.success_count, saved.true_rate) == (0.8, 0, 0, None)
    rate, outcomes = 0.8, [True, False, False, True, True, False, True]
    for outcome in outcomes:
        rate = 0.9 * rate + 0.1 * outcome
        seen = either.procedures.record_outcome("deploy", outcome)
        assert seen.success_rate == pytest.approx(rate, abs=1e-12)
    assert (seen.use_count, seen.success_count, seen.true_rate) == (7, 4, 4 / 7)
    assert either.procedures.get(saved.id) == seen


def test_the_first_rate_is_a_half_unless_it_is_given(memory):
    memory.procedures.save("a", "x")
    assert memory.procedures.record_outcome("a", True).success_rate == pytest.approx(0.9 * 0.5 + 0.1, abs=1e-15)


def test_a_name_is_unique_in_its_scope_and_saving_again_updates(either):
    first = either.procedures.save("deploy", "Build, then ship", agent="ada", success_rate=0.6)
    either.procedures.record_outcome("deploy", True, agent="ada")
    again = either.procedures.save("deploy", "Test, build, ship", pattern="make all", tags=["ops"], agent="ada")
    assert (again.id, again.description, again.pattern, again.tags) == (
        first.id,
        "Test, build, ship",
        "make all",
        ("ops",),
    )
    assert (again.use_count, again.success_rate) == (1, pytest.approx(0.64))
    assert either.procedures.save("deploy", "Test, build, ship", agent="ada", success_rate=0.1).success_rate == 0.1
    assert either.history(first.id)[0].text == "Build, then ship"
    bobs = either.procedures.save("deploy", "Ask ada", agent="bob")
    assert bobs.id != first.id
    assert [each.description for each in either.procedures.list(agent="bob")] == ["Ask ada"]
    assert len(either.procedures.list()) == 2
    assert either.store.verify().problems == ()


def test_procedures_are_found_by_what_they_say(either):
    either.procedures.save("brew", "How to make tea", pattern="boil water; wait four minutes")
    either.procedures.save("deploy", "How to release the service")
    assert either.procedures.search("tea")[0].context == "brew"
    assert either.recall("boil water", kinds=["procedure"])[0].context == "brew"


def test_the_most_successful_are_listed_first(memory):
    for name, rate in (("b", 0.5), ("a", 0.5), ("best", 0.9), ("used", 0.5)):
        memory.procedures.save(name, "x", success_rate=rate)
    for outcome in (True, False):
        memory.procedures.record_outcome("used", outcome)
    assert [each.name for each in memory.procedures.list()] == ["best", "a", "b", "used"]
    assert [each.name for each in memory.procedures.list(limit=1)] == ["best"]


def test_a_forgotten_procedure_takes_its_counts_along(memory):
    saved = memory.procedures.save("a", "x")
    memory.procedures.record_outcome("a", True)
    memory.forget(saved.id)
    assert memory.procedures.list() == []
    with pytest.raises(NotFound, match="no procedure 'a' here"):
        memory.procedures.record_outcome("a", True)
    assert memory.procedures.save("a", "x").use_count == 0


def test_another_agents_procedure_is_indistinguishable_from_none(memory):
    saved = memory.procedures.save("a", "x", agent="ada")
    bob = memory.scoped("/agents/bob")
    for asked in ("a", saved.id, "nothing"):
        with pytest.raises(NotFound, match="no procedure"):
            bob.procedures.record_outcome(asked, True)
    assert memory.procedures.get(saved.id).use_count == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.save("", "x"), "name is ''"),
        (lambda p: p.save("x", " "), "nothing to remember"),
        (lambda p: p.save("x", "y", pattern=7), "pattern is 7: give a str"),
        (lambda p: p.save("x", "y", success_rate=1.5), "success_rate is 1.5: give a number from 0 to 1"),
        (lambda p: p.save("x", "y", importance=float("nan")), "importance is nan"),
        (lambda p: p.record_outcome("kept", 1), "success is 1: give True or False"),
    ],
)
def test_bad_procedures_are_refused(memory, call, message):
    memory.procedures.save("kept", "y")
    before = state(memory), memory.procedures.list()
    with pytest.raises(InvalidInput, match=message):
        call(memory.procedures)
    assert (state(memory), memory.procedures.list()) == before


@pytest.mark.parametrize(
    "changes",
    [{"text": "another"}, {"context": "build"}, {"scope": "/b"}, {"kind": "memory"}, {"metadata": {"name": "build"}}],
    ids=repr,
)
def test_what_makes_a_procedure_is_changed_by_save_alone(memory, changes):
    memory.procedures.save("build", "Run make")
    id = memory.procedures.save("deploy", "Run the script").id
    before = state(memory)
    with pytest.raises(InvalidInput, match=f"{next(iter(changes))} cannot be changed by itself: use procedures.save"):
        memory.update(id, **changes)
    assert state(memory) == before
    with pytest.raises(InvalidInput, match=r"makes no procedure of a memory: use procedures\.save"):
        memory.update(memory.remember("a way", metadata={"name": "deploy"}).id, kind="procedure")
    memory.update(id, importance=0.9, tags=["ci"], pinned=True)
    assert (memory.procedures.get("deploy").importance, memory.procedures.get("deploy").tags) == (0.9, ("ci",))


def test_an_earlier_version_of_a_procedure_is_saved_again_not_restored(memory):
    id = memory.procedures.save("deploy", "Run the script").id
    memory.procedures.save("deploy", "Push the button")
    with pytest.raises(InvalidInput, match=r"use procedures\.save"):
        memory.restore(id, 0)
    assert memory.procedures.get(id).description == memory.get(id).text == "Push the button"


def test_a_name_that_cannot_be_stored_is_nobodys(memory):
    memory.procedures.save("\ufffd", "Replace what cannot be read")
    with pytest.raises(NotFound):
        memory.procedures.get("\ud800")
    with pytest.raises(NotFound):
        memory.procedures.record_outcome("\ud800", True)
    assert memory.procedures.get("\ufffd").use_count == 0


def test_search_within_a_tier_takes_no_kinds(memory):
    for tier in (memory.semantic, memory.procedures):
        with pytest.raises(InvalidInput, match="search has no option 'kinds'"):
            tier.search("x", kinds=["episode"])
