"""Metrics of ranked lists, against values worked out by hand."""

from __future__ import annotations

import math
import random

import pytest

from benchmarks.quality.metrics import (
    hit_at_k,
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


@pytest.mark.parametrize(
    ("gold", "k", "share"),
    [
        ({"a"}, 1, 1.0),
        ({"b"}, 1, 0.0),
        ({"a", "e"}, 4, 0.5),
        ({"a", "e"}, 5, 1.0),
        ({"a", "x"}, 5, 0.5),
        ({"x"}, 5, 0.0),
    ],
)
def test_recall_is_the_share_of_gold_among_the_first_k(gold, k, share):
    assert recall_at_k(RANKED, gold, k) == share


def test_recall_counts_gold_beyond_k_as_missed():
    assert recall_at_k(RANKED, {"a", "b", "c"}, 2) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("gold", "some", "every"), [({"a", "c"}, 1.0, 0.0), ({"a", "b"}, 1.0, 1.0), ({"c"}, 0.0, 0.0)])
def test_any_needs_one_of_gold_and_all_needs_the_whole(gold, some, every):
    assert recall_any_at_k(RANKED, gold, 2) == hit_at_k(RANKED, gold, 2) == some
    assert recall_all_at_k(RANKED, gold, 2) == every


def test_all_is_out_of_reach_when_gold_is_larger_than_k():
    assert recall_all_at_k(RANKED, {"a", "b", "c"}, 2) == 0.0


@pytest.mark.parametrize(("gold", "value"), [({"a"}, 1.0), ({"c", "e"}, 1 / 3), ({"x"}, 0.0)])
def test_reciprocal_rank_is_that_of_the_first_relevant_item(gold, value):
    assert reciprocal_rank(RANKED, gold) == pytest.approx(value)


def test_nothing_is_found_in_an_empty_list():
    assert recall_at_k([], {"a"}, 5) == hit_at_k([], {"a"}, 5) == recall_all_at_k([], {"a"}, 5) == 0.0
    assert reciprocal_rank([], {"a"}) == ndcg_at_k([], {"a"}, 5) == 0.0


def test_ndcg_discounts_by_the_logarithm_of_the_rank():
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    ideal = 1 / math.log2(2) + 1 / math.log2(3)
    assert ndcg_at_k(RANKED, {"b", "d"}, 10) == pytest.approx(gain / ideal)


def test_ndcg_has_all_of_gold_in_its_ideal_found_or_not():
    assert ndcg_at_k(RANKED, {"a", "x"}, 10) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_ndcg_of_gold_larger_than_k_can_still_be_one():
    assert ndcg_at_k(RANKED, set(RANKED), 3) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("positives", "negatives", "area"),
    [([0.9, 0.8], [0.1, 0.2], 1.0), ([0.1], [0.9], 0.0), ([0.5], [0.5], 0.5), ([0.9, 0.3], [0.5], 0.5)],
)
def test_roc_auc_is_the_chance_that_a_positive_scores_above_a_negative(positives, negatives, area):
    assert roc_auc(positives, negatives) == area


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
