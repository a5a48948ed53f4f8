"""Fixtures that the tests in one process have too."""

from tests.unit.core.agents.conftest import either  # noqa: F401
