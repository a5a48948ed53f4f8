"""The contract of stores on PostgreSQL: index."""

from tests.unit.core.store.contract.test_index import *  # noqa: F403
