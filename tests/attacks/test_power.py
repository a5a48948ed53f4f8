"""A few hundred states that a disk may be in after the power failed."""

import pytest

from tests.attacks import shim
from tests.attacks.attacks import ATTACKS


@pytest.mark.skipif(shim.missing() is not None, reason=str(shim.missing()))
def test_a_power_loss_takes_nothing_that_was_promised():
    outcome = ATTACKS["power loss"](150, 1)
    assert not outcome.failures, outcome.examples
    assert outcome.tries == 150
