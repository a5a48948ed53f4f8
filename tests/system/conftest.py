"""Fixtures of the system tests: a PostgreSQL server for each worker, where it is installed."""

from tests.system.postgres.fixtures import postgres_address, postgres_server  # noqa: F401
