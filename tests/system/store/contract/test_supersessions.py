"""The contract of stores on PostgreSQL: supersessions."""

from tests.unit.core.store.contract.test_supersessions import *  # noqa: F403
