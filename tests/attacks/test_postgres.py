"""Sixteen processes on one PostgreSQL server for some dozens of writes."""

import os

import pytest

from tests.attacks.attacks import ATTACKS

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


@pytest.fixture(autouse=True, scope="module")
def binaries():
    """Skips where there is no PostgreSQL."""
    from tests.system.postgres.binaries import found_binaries

    found_binaries()


def test_eight_writers_and_eight_readers_lose_and_miss_nothing():
    outcome = ATTACKS["postgres"](32, 1)
    assert not outcome.failures, outcome.examples
    assert outcome.tries == 32


def test_kills_cuts_and_a_failover_lose_nothing_that_was_acknowledged():
    outcome = ATTACKS["postgres faults"](5, 1)
    assert not outcome.failures, outcome.examples
    assert outcome.tries == 5
    assert outcome.figures["writes done"] > 10
