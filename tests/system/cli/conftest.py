"""Fixtures that the tests in one process have too."""

from tests.unit.conftest import db, empty, process, remember, run  # noqa: F401
