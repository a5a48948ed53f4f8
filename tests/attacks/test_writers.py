"""Eight processes on one file for some hundred operations."""

import os

import pytest

from tests.attacks.attacks import ATTACKS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_eight_writers_lose_nothing_while_the_file_is_looked_after():
    outcome = ATTACKS["writers"](320, 1)
    assert not outcome.failures, outcome.examples
    assert outcome.tries == 320
    assert {"vacuum", "backup", "verify"} & set(outcome.figures)
