"""The contract of stores on PostgreSQL: services."""

from tests.unit.core.store.contract.test_services import *  # noqa: F403
