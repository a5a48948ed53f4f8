"""Fixtures that the tests in one process have too."""

from tests.unit.agents.conftest import either  # noqa: F401
