"""Fixtures that the tests in one process have too."""

from tests.unit.core.observing.conftest import logged, traced  # noqa: F401
