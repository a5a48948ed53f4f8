"""The contract of stores on PostgreSQL: services."""

from tests.unit.store.contract.test_services import *  # noqa: F403
