"""A share of the calls of tests.attacks.fuzz."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the calls run in forked children")


def test_no_call_fails_without_a_typed_error_or_changes_a_store_that_it_fails_on():
    from tests.attacks.fuzz import attack

    outcome = attack(tries=4_000, seed=11)
    assert not outcome.failures, outcome.examples
    assert outcome.tries == 4_000
    assert outcome.figures["taken"] > 1_000
    assert outcome.figures["refused"] > 1_000
