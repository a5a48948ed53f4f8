"""The confidences of verdicts are what the pairs say, and the rules do on them what they should."""

from __future__ import annotations

from benchmarks.training.statements import figures, fit, pairs
from recallite.text.statements.judging import confidences


def test_confidences_are_counted_on_the_pairs() -> None:
    judged = [(pair, pair.judged()) for pair in pairs()]
    assert fit(judged) == confidences()
    found = figures(judged)
    assert found.precision >= 0.97
    assert found.recall >= 0.75
    assert found.calibration_error <= 0.05
