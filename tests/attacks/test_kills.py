"""A few dozen kills at calls and at random times."""

import pytest

from tests.attacks import shim
from tests.attacks.attacks import ATTACKS


@pytest.mark.skipif(shim.missing() is not None, reason=str(shim.missing()))
def test_kills_lose_nothing_and_leave_nothing_half_done():
    outcome = ATTACKS["kills"](24, 1)
    assert not outcome.failures, outcome.examples
    assert outcome.tries >= 24
    assert {"at write", "at any time"} <= set(outcome.figures)
