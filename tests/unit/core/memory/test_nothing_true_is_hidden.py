"""Pairs of `benchmarks.truth`, vocabulary dev: what holds stays in every answer, and what changed is noticed.

`python -m benchmarks.truth --show` names all pairs that fail, not the sample of this file.
"""

from __future__ import annotations

import random
from functools import partial

import pytest

from benchmarks.cached_embedder import cached
from benchmarks.truth.cases import every, negations, provoking, true_changes
from benchmarks.truth.measure import AGES_DAYS, bulk, one_by_one
from recallite import Memory
from recallite.embedding import load
from tests.unit.core.memory.support import PLAIN

pytestmark = pytest.mark.truth

SAMPLED = 300
TOLD = [pytest.param(one_by_one, id="one by one"), pytest.param(bulk, id="bulk")]
AGES = [pytest.param(age_days, id=f"{age_days[0]} and {age_days[1]} days ago") for age_days in AGES_DAYS]
PLAIN_MEMORY = partial(Memory, ":memory:", settings=PLAIN)


def of_grids(outcome, count):
    """Pairs of the grids with this outcome, the same ones each time."""
    pairs = [pair for pair in every("dev") if pair.kind == "grid" and pair.outcome == outcome]
    return random.Random(49).sample(pairs, count)


def said(seen):
    """A failing pair as it reads in a report."""
    return f"{seen.pair.older} <- {seen.pair.newer} ({seen.supersedes or seen.contradicts})"


@pytest.fixture(scope="module")
def with_model():
    """Opens a memory with the bundled model; a text is embedded once for all tests of this file."""
    return partial(Memory, ":memory:", embedder=cached(load("default")))


@pytest.mark.parametrize("age_days", AGES)
@pytest.mark.parametrize("tell", TOLD)
class TestWithoutRecall:
    def test_another_change_of_the_same_subject_leaves_a_fact_listed(self, tell, age_days):
        pairs = of_grids("both hold", SAMPLED)
        assert [said(seen) for seen in tell(pairs, age_days, PLAIN_MEMORY, asked=None) if not seen.listed] == []

    def test_what_looks_alike_and_holds_stays_listed(self, tell, age_days):
        pairs = provoking("dev")
        assert [said(seen) for seen in tell(pairs, age_days, PLAIN_MEMORY, asked=None) if not seen.listed] == []

    def test_nothing_that_holds_is_superseded_or_contradicted(self, tell, age_days):
        # A link costs a line and hides nothing: one in a hundred is allowed.
        pairs = [*of_grids("both hold", SAMPLED), *(pair for pair in provoking("dev") if not pair.in_part)]
        marked = [said(seen) for seen in tell(pairs, age_days, PLAIN_MEMORY, asked=None) if seen.is_marked]
        assert len(marked) <= len(pairs) // 100, marked

    def test_nine_in_ten_changes_of_the_grids_are_noticed(self, tell, age_days):
        pairs = of_grids("changed", 100)
        missed = [said(seen) for seen in tell(pairs, age_days, PLAIN_MEMORY, asked=None) if not seen.is_marked]
        assert len(missed) <= 10, missed

    def test_nine_in_ten_other_changes_are_noticed(self, tell, age_days):
        pairs = true_changes("dev")
        missed = [said(seen) for seen in tell(pairs, age_days, PLAIN_MEMORY, asked=None) if not seen.is_marked]
        assert len(missed) <= len(pairs) // 10, missed

    def test_nine_in_ten_negations_are_noticed(self, tell, age_days):
        pairs = negations("dev")
        missed = [said(seen) for seen in tell(pairs, age_days, PLAIN_MEMORY, asked=None) if not seen.is_marked]
        assert len(missed) <= len(pairs) // 10, missed


@pytest.mark.parametrize("tell", TOLD)
class TestAskedFor:
    age_days = AGES_DAYS[1]

    def test_what_holds_is_among_the_first_three(self, tell, with_model):
        pairs = [*of_grids("both hold", SAMPLED), *provoking("dev")]
        seen = tell(pairs, self.age_days, with_model, asked=frozenset(provoking("dev")))
        assert [said(each) for each in seen if each.answers is not None and not each.in_plain] == []

    def test_what_is_relevant_while_nothing_is_marked_stays_relevant(self, tell, with_model):
        pairs = [*of_grids("both hold", SAMPLED), *provoking("dev")]
        seen = tell(pairs, self.age_days, with_model, asked=frozenset(provoking("dev")))
        lost = [
            said(each) for each in seen if each.answers is not None and each.in_relevant_unmarked > each.in_relevant
        ]
        assert lost == []

    def test_the_later_of_two_opposites_comes_first(self, tell, with_model):
        pairs = negations("dev")
        seen = tell(pairs, self.age_days, with_model, asked=frozenset(pairs))
        assert [said(each) for each in seen if not each.newer_first] == []

    def test_opposites_name_each_other(self, tell, with_model):
        pairs = negations("dev")
        seen = tell(pairs, self.age_days, with_model, asked=frozenset(pairs))
        assert [said(each) for each in seen if not each.answers.name_each_other] == []

    def test_eleven_in_twelve_changes_are_answered_by_the_new_value_first(self, tell, with_model):
        pairs = true_changes("dev")
        seen = tell(pairs, self.age_days, with_model, asked=frozenset(pairs))
        wrong = [said(each) for each in seen if not each.newer_first]
        assert len(wrong) <= len(pairs) // 12, wrong
