"""The contract of stores on PostgreSQL: maintenance."""

from tests.unit.core.store.contract.test_maintenance import *  # noqa: F403
