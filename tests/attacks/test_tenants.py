"""Tenants of one file are told what a file of their own would tell them."""

from __future__ import annotations

from tests.attacks import tenants


def test_a_tenant_cannot_tell_that_there_are_others():
    outcome = tenants.attack(450, seed=7)
    assert not outcome.failures, outcome.examples
    assert outcome.tries == 450
    assert outcome.figures["of_others"] > 50
    assert outcome.figures["disturbances"] > 30


def test_what_it_answers_with_is_compared_to_the_last_digit(monkeypatch):
    """The attack sees a handle that weighs words by the whole file."""
    from recallite.recall import plan

    monkeypatch.setattr(plan, "_statistics_scopes", lambda reader, request: None)
    outcome = tenants.attack(200, seed=7)
    assert outcome.failures["leak"]
