"""The contract of stores on PostgreSQL: transactions."""

from tests.unit.core.store.contract.test_transactions import *  # noqa: F403
