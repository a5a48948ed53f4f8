"""Paired statistics against their definitions."""

from __future__ import annotations

import random

import pytest

from recallite.model.reports import AnsweredQuestion, ConfidenceReport, Evaluation
from recallite_eval.evaluate import bootstrap_interval, compare, measure, sign_test
from tests.unit.evaluation import oracle


@pytest.mark.parametrize("number", range(13))
def test_the_sign_test_is_the_share_of_all_outcomes(number):
    for better in range(number + 1):
        assert sign_test(better, number - better) == pytest.approx(oracle.sign_test(better, number - better))


def test_the_sign_test_of_many_questions_is_finite():
    assert sign_test(5_000, 5_000) == 1
    assert 0 <= sign_test(0, 2_000) < 1e-300
    assert sign_test(60, 40) == pytest.approx(0.0568879, abs=1e-6)


def test_the_interval_is_that_of_every_resample():
    seeded = random.Random(5)
    for number in (1, 2, 3, 4, 5, 6):
        differences = [seeded.choice([-1.0, -0.5, 0.0, 0.25, 1.0]) for _ in range(number)]
        means = oracle.bootstrap_means(differences)
        low, high = bootstrap_interval(differences)
        # As a resample's mean has few values, a percentile lies at one of them, or beside it by chance.
        for value, share in ((low, 0.025), (high, 0.975)):
            below = sum(mean < value - 1e-12 for mean in means) / len(means)
            upto = sum(mean <= value + 1e-12 for mean in means) / len(means)
            assert below - 0.01 <= share <= upto + 0.01, (differences, value)


def test_the_interval_is_the_same_every_time():
    differences = [0.1, -0.3, 0.0, 0.5, 0.2, 0.2, -0.1] * 9
    assert bootstrap_interval(differences) == bootstrap_interval(differences)
    low, high = bootstrap_interval(differences)
    assert low < sum(differences) / len(differences) < high


def run(ranks, names="0123456789"):
    """An evaluation whose questions have one expected memory each, at these ranks."""
    results = [
        AnsweredQuestion(id=name, question="?", answerable=True, figures=measure([rank], 10))
        for rank, name in zip(ranks, names, strict=False)
    ]
    confidence = ConfidenceReport(right=0, unanswerable=0, thresholds=())
    return Evaluation(
        k=10, options={}, counted=len(ranks), figures=None, lost={}, confidence=confidence, results=tuple(results),
        not_stored=(),
    )  # fmt: skip


def test_a_comparison_counts_questions():
    recall, mrr = compare(run([1, 2, None, 4]), run([1, 1, 3, None]))
    assert (recall.figure, recall.better, recall.worse, recall.equal) == ("recall", ("2",), ("3",), 2)
    assert (mrr.figure, mrr.better, mrr.worse, mrr.equal) == ("mrr", ("1", "2"), ("3",), 1)
    assert recall.difference == 0
    assert mrr.difference == pytest.approx((1 / 2 + 1 / 3 - 1 / 4) / 4)
    assert not recall.clear
    assert not mrr.clear


def test_the_other_order_is_the_mirror_image():
    first, second = run([1, 2, None, 4, 5, 1, 1]), run([1, 1, 3, None, 1, 2, 2])
    for there, back in zip(compare(first, second), compare(second, first), strict=True):
        assert (there.better, there.worse, there.equal, there.p) == (back.worse, back.better, back.equal, back.p)
        assert there.difference == pytest.approx(-back.difference)
        assert there.low == pytest.approx(-back.high, abs=0.02)
        assert there.high == pytest.approx(-back.low, abs=0.02)


def test_a_clear_difference_needs_more_than_a_few_questions():
    assert not compare(run([2] * 5), run([1] * 5))[1].clear, "five of five: p is 0.06"
    assert compare(run([2] * 6), run([1] * 6))[1].clear, "six of six: p is 0.03"
    assert not compare(run([2] * 10), run([2] * 10))[1].clear


def test_only_questions_of_both_runs_are_compared():
    first, second = run([1, 2]), run([1, 1, 1])
    (recall, _) = compare(first, second)
    assert recall.equal == 2
    assert compare(run([1], "a"), run([1], "b")) == ()
