"""The contract of stores on PostgreSQL: supersessions."""

from tests.unit.store.contract.test_supersessions import *  # noqa: F403
