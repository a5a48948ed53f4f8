"""Fixtures that the tests in one process have too."""

from tests.unit.connect.importers.conftest import refusing_folder  # noqa: F401
