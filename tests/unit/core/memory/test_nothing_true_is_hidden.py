"""Pairs of `benchmarks.truth`, vocabulary dev: what holds stays in every answer, and what changed is noticed.

`python -m benchmarks.truth --show` names all pairs that fail, not the sample of this file.
"""

from __future__ import annotations

import random
from functools import cache, partial

import pytest

from benchmarks.cached_embedder import cached
from benchmarks.truth.cases import every, negations, provoking, true_changes
from benchmarks.truth.measure import AGES_DAYS, bulk, one_by_one
from recallite import Memory
from recallite.embedding import load
from tests.unit.core.memory.support import PLAIN

pytestmark = pytest.mark.truth

LONG_AGO, LATELY = AGES_DAYS
TELL = {"one by one": one_by_one, "bulk": bulk}
# With the bundled model, and asked for.
ASKED = [("one by one", LATELY), ("bulk", LONG_AGO)]
# Without a model: what is marked and listed.
UNASKED = [("one by one", LONG_AGO), ("bulk", LATELY)]


def of_grids(outcome, count):
    """Pairs of the grids with this outcome, the same ones each time."""
    pairs = [pair for pair in every("dev") if pair.kind == "grid" and pair.outcome == outcome]
    return random.Random(49).sample(pairs, count)


@cache
def measured(way, age_days):
    """Each pair of this file told once; all tests read what was seen. Each way is asked for half of the changes."""
    others = [*provoking("dev"), *true_changes("dev"), *negations("dev")]
    pairs = [*of_grids("both hold", 240), *of_grids("changed", 60), *others]
    asked = frozenset(others[list(TELL).index(way) :: 2])
    if (way, age_days) in UNASKED:
        return list(TELL[way](pairs, age_days, partial(Memory, ":memory:", settings=PLAIN), asked=None))
    return list(TELL[way](pairs, age_days, partial(Memory, ":memory:", embedder=embedder()), asked=asked))


@cache
def embedder():
    """The bundled model; a text is embedded once for all tests of this file."""
    return cached(load("default"))


def ways(told):
    """Parameters of a test, named."""
    return pytest.mark.parametrize("told", [pytest.param(it, id=f"{it[0]}, {it[1][0]} days ago") for it in told])


def said(seen):
    """A failing pair as it reads in a report."""
    return f"{seen.pair.older} <- {seen.pair.newer} ({seen.supersedes or seen.contradicts})"


def of(told, *kinds, outcome):
    """What was seen of some kinds of pairs."""
    return [seen for seen in measured(*told) if seen.pair.kind in kinds and seen.pair.outcome == outcome]


def asked_of(told, *kinds, outcome):
    """Those of them that recall was asked for."""
    return [seen for seen in of(told, *kinds, outcome=outcome) if seen.answers is not None]


@ways(ASKED + UNASKED)
class TestListed:
    def test_another_change_of_the_same_subject_leaves_a_fact_listed(self, told):
        assert [said(seen) for seen in of(told, "grid", outcome="both hold") if not seen.listed] == []

    def test_what_looks_alike_and_holds_stays_listed(self, told):
        assert [said(seen) for seen in of(told, "provoking", outcome="both hold") if not seen.listed] == []


@ways(ASKED + UNASKED)
class TestMarked:
    def test_one_in_a_hundred_that_hold_is_marked_at_most(self, told):
        # A wrong mark costs a line of an answer and hides nothing.
        seen = [each for each in of(told, "grid", "provoking", outcome="both hold") if not each.pair.in_part]
        marked = [said(each) for each in seen if each.is_marked]
        assert len(marked) <= len(seen) // 100, marked

    @pytest.mark.parametrize("kind", ["grid", "changes", "negations"])
    def test_nine_in_ten_changes_are_marked(self, told, kind):
        seen = of(told, kind, outcome="changed")
        missed = [said(each) for each in seen if not each.is_marked]
        assert len(missed) <= len(seen) // 10, missed


@ways(ASKED)
class TestRecalled:
    def test_what_holds_is_among_the_first_three(self, told):
        seen = asked_of(told, "grid", "provoking", outcome="both hold")
        assert [said(each) for each in seen if not each.in_plain] == []

    def test_a_mark_takes_nothing_that_holds_from_what_is_relevant(self, told):
        seen = asked_of(told, "grid", "provoking", outcome="both hold")
        assert [said(each) for each in seen if each.in_relevant_unmarked and not each.in_relevant] == []

    def test_the_later_of_two_opposites_comes_first(self, told):
        assert [said(seen) for seen in asked_of(told, "negations", outcome="changed") if not seen.newer_first] == []

    def test_two_opposites_name_each_other(self, told):
        seen = asked_of(told, "negations", outcome="changed")
        assert [said(each) for each in seen if not each.answers.name_each_other] == []

    def test_four_in_five_changes_are_answered_by_the_new_value_first(self, told):
        seen = asked_of(told, "changes", outcome="changed")
        wrong = [said(each) for each in seen if not each.newer_first]
        assert len(wrong) <= len(seen) // 5, wrong
