"""Fixtures that the tests in one process have too."""

from tests.unit.remote.conftest import plain_environment, server  # noqa: F401
