"""A few hundred errors of the system at calls of a working process."""

import pytest

from tests.attacks import shim
from tests.attacks.attacks import ATTACKS


@pytest.mark.skipif(shim.missing() is not None, reason=str(shim.missing()))
def test_faults_end_in_success_or_a_typed_error():
    outcome = ATTACKS["faults"](200, 1)
    assert not outcome.failures, outcome.examples
    assert outcome.tries == 200
    assert {"ENOSPC", "EDQUOT", "EIO", "EINTR", "short writes"} <= set(outcome.figures)
