"""The contract of stores on PostgreSQL: maintenance."""

from tests.unit.store.contract.test_maintenance import *  # noqa: F403
