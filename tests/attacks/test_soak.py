"""A short life of every verb in turn."""

import sys

import pytest

from tests.attacks.attacks import ATTACKS


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_short_life_loses_and_leaks_nothing():
    outcome = ATTACKS["soak"](8, 1)
    assert not outcome.failures, outcome.examples
    assert outcome.figures["calls"] > 20
