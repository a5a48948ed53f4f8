"""Figures of confidence, on questions made by hand."""

from __future__ import annotations

import pytest

from benchmarks.quality import calibration, plot
from benchmarks.quality.calibration import THRESHOLD, Asked

HIGH, LOW = THRESHOLD + (1 - THRESHOLD) / 2, THRESHOLD / 2


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


def test_a_chance_that_comes_true_as_often_as_it_says_has_no_error():
    hits = [(0.25, place % 4 == 0) for place in range(8)] + [(1.0, True)]
    assert calibration.expected_calibration_error(hits) == 0.0


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


def test_the_reliability_diagram_has_a_point_for_each_bin():
    questions = [Asked(True, (0.95, 0.15), (True, False)), Asked(False, (0.05, 0.01), (False, False))]
    drawn = plot.reliability({"sets": {"confidence": {"reliability": calibration.reliability(questions)}}})
    assert drawn.count("<circle") == 3 + 2
    assert 'cx="329.0" cy="44.0"' in drawn
