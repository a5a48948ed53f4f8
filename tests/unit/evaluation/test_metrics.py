"""The figures of a question against their definitions."""

from __future__ import annotations

import random

import pytest
from msgspec import structs

from recallite.model.reports import Figures
from recallite_eval.evaluate import mean_figures, measure
from tests.unit.evaluation import oracle


def test_the_figures_of_many_rankings_are_those_of_the_definitions():
    seeded = random.Random(3)
    for _ in range(500):
        k = seeded.randint(1, 12)
        expected = seeded.randint(1, 8)
        places = seeded.sample(range(1, k + expected + 1), expected)
        ranks = [place if place <= k else None for place in places]
        assert structs.astuple(measure(ranks, k)) == pytest.approx(oracle.figures(ranks, k))


@pytest.mark.parametrize(
    ("ranks", "k", "figures"),
    [
        ([1], 10, (1, 1, 1, 1, 1)),
        ([2], 10, (1, 1, 0, 1 / 2, 0.6309297535714575)),
        ([None], 10, (0, 0, 0, 0, 0)),
        ([None, 3], 3, (1 / 2, 1, 0, 1 / 3, 0.30657359)),
        ([1, None], 1, (1 / 2, 1, 1, 1, 1)),
    ],
)
def test_figures_by_hand(ranks, k, figures):
    assert structs.astuple(measure(ranks, k)) == pytest.approx(figures)


def test_a_mean_weighs_every_question_alike():
    one, other = measure([1], 5), measure([None, None, 4], 5)
    assert mean_figures([one, other]).recall == pytest.approx((1 + 1 / 3) / 2)
    assert mean_figures([one, other]).mrr == pytest.approx((1 + 1 / 4) / 2)
    assert mean_figures([one]) == Figures(recall=1, hit=1, hit_at_1=1, mrr=1, ndcg=1)
    assert mean_figures([]) is None
