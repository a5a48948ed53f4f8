"""Figures of ranked lists, confidence and exact neighbours, against values worked out by hand."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from benchmarks import corpus, dataset, exact
from benchmarks.quality import calibration
from benchmarks.quality.calibration import THRESHOLD, Asked
from benchmarks.quality.metrics import (
    interval,
    ndcg_at_k,
    recall_all_at_k,
    recall_any_at_k,
    recall_at_k,
    reciprocal_rank,
    roc_auc,
    wilson,
)

RANKED = ["a", "b", "c", "d", "e"]
HIGH, LOW = THRESHOLD + (1 - THRESHOLD) / 2, THRESHOLD / 2


@pytest.mark.parametrize(
    ("gold", "k", "share", "some", "every", "rank"),
    [
        ({"a"}, 1, 1.0, 1.0, 1.0, 1.0),
        ({"b"}, 1, 0.0, 0.0, 0.0, 1 / 2),
        ({"a", "e"}, 4, 0.5, 1.0, 0.0, 1.0),
        ({"c", "e"}, 5, 1.0, 1.0, 1.0, 1 / 3),
        ({"a", "x"}, 5, 0.5, 1.0, 0.0, 1.0),
        ({"a", "b", "c", "d"}, 2, 0.5, 1.0, 0.0, 1.0),
        ({"x"}, 5, 0.0, 0.0, 0.0, 0.0),
    ],
)
def test_recall_and_rank_count_all_of_gold_found_or_not(gold, k, share, some, every, rank):
    assert recall_at_k(RANKED, gold, k) == share
    assert (recall_any_at_k(RANKED, gold, k), recall_all_at_k(RANKED, gold, k)) == (some, every)
    assert reciprocal_rank(RANKED, gold) == pytest.approx(rank)


def test_ndcg_discounts_by_the_logarithm_of_the_rank_and_has_all_of_gold_in_its_ideal():
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    assert ndcg_at_k(RANKED, {"b", "d"}, 10) == pytest.approx(gain / (1 + 1 / math.log2(3)))
    assert ndcg_at_k(RANKED, {"a", "x"}, 10) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert ndcg_at_k(RANKED, set(RANKED), 3) == pytest.approx(1.0)


def test_roc_auc_equals_counting_all_pairs():
    draw = random.Random(0)
    positives = [draw.randint(0, 9) / 10 for _ in range(40)]
    negatives = [draw.randint(0, 7) / 10 for _ in range(60)]
    won = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
    assert roc_auc(positives, negatives) == pytest.approx(won / (40 * 60))


def test_the_interval_of_a_share_is_wilsons_and_that_of_a_mean_holds_it():
    assert wilson(43 / 46, 46) == interval([1.0] * 43 + [0.0] * 3) == (0.825, 0.9776)
    values = [0.2, 0.4, 0.6, 0.8] * 25
    low, high = interval(values)
    assert 0.4 < low < 0.5 < high < 0.6
    assert interval([0.5] * 9) == (0.5, 0.5)


def test_bins_hold_the_mean_confidence_and_the_share_of_right_hits():
    hits = [(0.0, False), (0.05, True), (0.31, True), (0.95, True), (1.0, False), (0.99, True)]
    assert calibration.bins(hits) == [
        {"count": 2, "confidence": 0.025, "right": 0.5},
        {"count": 1, "confidence": 0.31, "right": 1.0},
        {"count": 3, "confidence": 0.98, "right": 0.6667},
    ]


def test_the_calibration_error_is_the_mean_distance_weighted_by_count():
    hits = [(0.2, True), (0.2, False), (0.2, False), (0.2, False), (0.9, True)]
    assert calibration.expected_calibration_error(hits) == pytest.approx((4 * 0.05 + 0.1) / 5)


def test_answers_kept_are_of_the_questions_with_a_right_hit_and_those_passed_of_the_unanswerable():
    questions = [
        Asked(True, (HIGH, LOW), (True, False)),
        Asked(True, (HIGH, LOW), (False, True)),
        Asked(True, (LOW,), (False,)),
        Asked(False, (LOW, HIGH), (False, False)),
        Asked(False, (), ()),
    ]
    figures = calibration.summary(questions)
    assert (figures["answers kept"], figures["unanswerable passed"]) == (0.5, 0.5)
    assert figures["right first hits kept"] == 1.0
    # Highest: high, high, low against high, nothing. First: high, high, low against low, nothing.
    assert figures["ROC AUC"] == pytest.approx((0.5 + 1 + 0.5 + 1 + 0 + 1) / 6, abs=1e-4)
    assert figures["ROC AUC, first hit"] == pytest.approx((1 + 1 + 1 + 1 + 0.5 + 1) / 6, abs=1e-4)


def test_recall_is_the_share_of_the_ten_nearest():
    vectors, asked = corpus.mixture(500, 16), corpus.mixture(5, 16, seed=1)
    order = np.argsort(-(asked.astype(np.float64) @ vectors.astype(np.float64).T), axis=1)
    tenth = exact.tenth_best(vectors, asked)
    assert exact.recall(vectors, asked, tenth, order[:, :10].tolist()).tolist() == [1.0] * 5
    assert exact.recall(vectors, asked, tenth, order[:, 2:12].tolist()).tolist() == [0.8] * 5
    assert exact.recall(vectors, asked, tenth, [[], [int(order[1, 0])] * 10]).tolist() == [0.0, 0.1]


def test_recall_under_a_filter_counts_what_it_keeps():
    vectors, asked = corpus.mixture(2000, 16), corpus.mixture(3, 16, seed=1)
    kept = dataset.parts(2000) < 1
    assert kept.sum() == 2
    tenth = exact.tenth_best(vectors, asked, kept)
    assert exact.recall(vectors, asked, tenth, [np.flatnonzero(kept).tolist()] * 3, 2).tolist() == [1.0] * 3
