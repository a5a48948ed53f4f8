"""One Memory, many threads; and what a child process may do with it."""

from __future__ import annotations

import os

import pytest

from recallite import Memory
from recallite.errors import StoreClosed
from tests.unit.core.memory.support import PLAIN, run

_FORK = """
import os, sys
from recallite import Memory, Settings
from recallite.errors import RecalliteError
settings = Settings(embedder="none")
memory = Memory(sys.argv[1], settings=settings)
stored = memory.remember("before the fork")
memory.recall("fork")
handle = memory.scoped("/")
child = os.fork()
if child == 0:
    said = []
    for use in (
        lambda: memory.remember("x"), lambda: memory.remember_many(["x"]), lambda: memory.recall("x"),
        lambda: memory.recall_many(["x"]), lambda: memory.get(stored.id), lambda: memory.list(),
        lambda: memory.count(),
        lambda: memory.update(stored.id, text="x"), lambda: memory.forget(stored.id), lambda: memory.history(stored.id),
        lambda: memory.review.explain("x", stored.id), lambda: memory.store.stats(), lambda: memory.store.verify(),
        lambda: memory.store.rebuild(),
        lambda: memory.store.vacuum(), lambda: memory.store.backup(sys.argv[1] + ".copy"), lambda: handle.recall("x"),
        lambda: memory.neighbors(stored.id), lambda: memory.store.warmup(),
    ):
        try:
            use()
            said.append("nothing")
        except RecalliteError as refused:
            said.append(type(refused).__name__)
    memory.close()
    memory.close()
    with Memory(sys.argv[1], settings=settings) as own:
        own.remember("written by the child")
        said.append(own.recall("child", limit=1)[0].text)
    print(*said, sep="\\n", flush=True)
    sys.exit(0)
os.waitpid(child, 0)
memory.remember("after the fork")
print(sorted(record.text for record in memory.list()), memory.store.verify().problems, flush=True)
print([hit.text for hit in memory.recall("child")])
memory.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_is_refused_and_the_parent_goes_on(path):
    *child, last_of_child, parent, found = run(_FORK, path).splitlines()
    assert child == [StoreClosed.__name__] * 19
    assert last_of_child == "written by the child"
    assert parent == "['after the fork', 'before the fork', 'written by the child'] ()"
    assert found == "['written by the child']"


_PARENT_WRITES = """
import os, sys
from recallite import Memory, Settings
memory = Memory(sys.argv[1], settings=Settings(embedder="none"))
for number in range(20):
    memory.remember(f"parent {number}")
    child = os.fork()
    if child == 0:
        sys.exit(0)  # the interpreter's exit drops the inherited connections
    os.waitpid(child, 0)
print(memory.count(), memory.store.verify().problems, flush=True)  # os._exit flushes nothing
os._exit(1 - 1)  # no close: what was acknowledged is in the file
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_children_that_end_take_no_locks_or_pages_with_them(path):
    assert run(_PARENT_WRITES, path) == "20 ()\n"
    with Memory(path, settings=PLAIN) as memory:
        assert memory.count() == 20
        assert memory.store.verify().problems == ()
