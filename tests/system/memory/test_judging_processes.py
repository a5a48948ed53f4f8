"""A language model judges what the rules leave open: in the background, or when asked, and never twice."""

from __future__ import annotations

from tests.unit.core.memory.support import Other
from tests.unit.core.memory.test_judging import NO_TEA, TEA, Scripted, open_with  # noqa: F401


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
    assert open_with(Scripted("supersedes")).review.judge().superseded == 1
