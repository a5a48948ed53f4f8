"""A small file system that is really full."""

import pytest

from tests.attacks import full_disk
from tests.attacks.attacks import ATTACKS


@pytest.mark.skipif(full_disk.missing() is not None, reason=str(full_disk.missing()))
def test_a_full_disk_ends_in_a_typed_error_and_goes_on():
    outcome = ATTACKS["full disk"](10, 1)
    assert not outcome.failures, outcome.examples
    assert outcome.tries == 10
    assert outcome.figures["errors told"] > 0
