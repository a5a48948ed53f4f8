"""Steps that Hypothesis draws leave the store equal to a model of it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import Phase

from recallite.store.sqlite.transaction import SqliteChanges
from tests.attacks import stateful


def test_the_store_equals_a_model_of_it_after_every_step(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    outcome = stateful.attack(250, seed=3)
    assert not outcome.failures, outcome.examples
    assert outcome.tries >= 250
    assert outcome.figures["calls refused"] > 50
    verbs = {"update", "move_or_expire", "restore", "forget", "forget_all", "link", "remember_on_topic", "document"}
    assert verbs <= outcome.figures.keys()
    assert not [*Path(tmp_path).iterdir()]


def test_a_change_that_is_missing_from_the_feed_is_seen(monkeypatch):
    """An index in RAM that is not told of an update answers with what was."""
    append = SqliteChanges.append
    monkeypatch.setattr(stateful, "_PHASES", (Phase.generate,))

    def forgetful(self, operation, *ids):
        if operation != "update":
            append(self, operation, *ids)

    monkeypatch.setattr(SqliteChanges, "append", forgetful)
    outcome = stateful.attack(300, seed=4)
    assert outcome.failures["wrong"] == 1, outcome.failures
    assert "state.move_or_expire(" in outcome.examples[0] or "state.update(" in outcome.examples[0]
