"""The contract of stores on PostgreSQL: records."""

from tests.unit.core.store.contract.test_records import *  # noqa: F403
