"""A language model judges what the rules leave open: in the background, or when asked, and never twice."""

from __future__ import annotations

import json

import pytest

from recallite import Memory
from recallite.errors import LanguageModelError
from tests.unit.memory.support import PLAIN, Other

TEA, NO_TEA, COFFEE = "Alice likes tea", "Alice does not like tea", "Alice prefers coffee"


class Scripted:
    """Says the same of every pair; keeps what it was asked."""

    def __init__(self, outcome="independent", failing=0):
        self.outcome, self.failing, self.asked = outcome, failing, []

    def complete(self, messages, *, schema=None, max_tokens=None):
        pairs = json.loads(messages[1]["content"])
        self.asked.append([(each["older"]["text"], each["newer"]["text"]) for each in pairs])
        if self.failing:
            self.failing -= 1
            raise LanguageModelError("the budget is spent")
        assert schema is not None
        return json.dumps({"answers": [{"pair": each["pair"], "outcome": self.outcome} for each in pairs]})


@pytest.fixture
def open_with(path):
    """Opens the store with a language model."""
    opened = []

    def opening(model):
        opened.append(Memory(path, settings=PLAIN, language_model=model))
        return opened[-1]

    yield opening
    for memory in opened:
        memory.close()


def test_closing_does_not_wait_for_the_model(open_with, path):
    import threading

    release, began = threading.Event(), threading.Event()

    class Stuck(Scripted):
        def complete(self, messages, *, schema=None, max_tokens=None):
            began.set()
            release.wait(60)
            return super().complete(messages, schema=schema, max_tokens=max_tokens)

    memory = open_with(Stuck("supersedes"))
    memory.remember_many([TEA, NO_TEA])
    assert began.wait(60)
    memory.close()
    release.set()
    with Other(path) as other:
        assert other("memory.count()") == 2
    assert open_with(Scripted("supersedes")).judge_changes().superseded == 1
