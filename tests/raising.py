"""Errors that tests wait for."""

from contextlib import contextmanager

import pytest


@contextmanager
def raises(kind, reason, **options):
    """Work as `pytest.raises` for an error of this reason."""
    with pytest.raises(kind, **options) as caught:
        yield caught
    assert caught.value.reason == reason
