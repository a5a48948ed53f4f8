"""Fixtures that the tests in one process have too."""

from tests.unit.core.remote.conftest import plain_environment, server  # noqa: F401
