"""One Memory, many threads; and what a child process may do with it."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import ForkedProcess, StoreClosed
from tests.memory.support import PLAIN, run, scored, unit


def in_threads(work, count: int = 8) -> list[BaseException]:
    """Run work(number) in threads that start together; the errors they ended with."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def guarded(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as fault:
            errors.append(fault)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize("where", ["file", "memory"])
def test_threads_remember_recall_and_forget_on_one_memory(path, where):
    kept: dict[int, dict[str, str]] = {}
    settings = Settings(embedder="none", durability="normal")
    with Memory(path if where == "file" else ":memory:", settings=settings) as memory:

        def work(number: int) -> None:
            rng = np.random.default_rng(number)
            mine: dict[str, str] = {}
            kept[number] = mine
            for step in range(25):
                text = f"thread{number} step{step} common"
                stored = memory.remember(text, vector=rng.normal(size=16), source=f"s{step % 5}", position=step)
                mine[stored.id] = text
                assert stored.id in {hit.id for hit in memory.recall(f"thread{number} step{step}", limit=5)}
                hits = memory.recall("common", vector=rng.normal(size=16), limit=5)
                assert len(hits) >= min(5, len(mine)), "the other threads may have stored nothing yet"
                victim = list(mine)[int(rng.integers(len(mine)))]
                match step % 4:
                    case 1:
                        memory.update(victim, text=f"thread{number} changed{step}", vector=rng.normal(size=16))
                        mine[victim] = f"thread{number} changed{step}"
                        assert memory.get(victim).text == mine[victim]
                    case 2 if len(mine) > 1:
                        memory.link(victim, next(each for each in mine if each != victim))
                    case 3:
                        memory.forget(victim)
                        del mine[victim]
                        assert victim not in {hit.id for hit in memory.recall("common", limit=50)}

        assert in_threads(work) == []
        expected = {name: text for mine in kept.values() for name, text in mine.items()}
        assert {record.id: record.text for record in memory.list(limit=None)} == expected
        assert memory.verify().problems == ()
        answers = scored(memory.recall("common changed1", vector=unit(1), limit=50, decay="none"))
        if where == "file":
            with Memory(path, settings=PLAIN) as reopened:
                assert scored(reopened.recall("common changed1", vector=unit(1), limit=50, decay="none")) == answers


def test_threads_share_the_embedder(embedded):
    texts = [f"Sentence number {number} about the weather in city {number}." for number in range(24)]

    def work(number: int) -> None:
        for text in texts[number::4]:
            embedded.remember(text)
            assert embedded.recall(text, limit=1)[0].text == text

    assert in_threads(work, 4) == []
    assert embedded.count() == 24
    assert embedded.verify().problems == ()


def test_closing_while_others_use_it_ends_them_with_a_typed_error(path):
    memory = Memory(path, settings=Settings(embedder="none", durability="normal"))
    memory.remember("common zero")
    written = []

    def work(number: int) -> None:
        if number == 0:
            while len(written) < 20:
                memory.recall("common")
            memory.close()
            return
        for step in range(100_000):
            written.append(memory.remember(f"common {number} {step}").id)
            memory.recall("common", limit=3)

    errors = in_threads(work, 5)
    assert {type(error) for error in errors} == {StoreClosed}
    with Memory(path, settings=PLAIN) as again:
        assert set(written) <= {record.id for record in again.list(limit=None)}
        assert again.verify().problems == ()


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
        lambda: memory.explain("x", stored.id), lambda: memory.stats(), lambda: memory.verify(),
        lambda: memory.rebuild(),
        lambda: memory.vacuum(), lambda: memory.backup(sys.argv[1] + ".copy"), lambda: handle.recall("x"),
        lambda: memory.neighbors(stored.id), lambda: memory.warmup(),
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
print(sorted(record.text for record in memory.list()), memory.verify().problems, flush=True)
print([hit.text for hit in memory.recall("child")])
memory.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_is_refused_and_the_parent_goes_on(path):
    *child, last_of_child, parent, found = run(_FORK, path).splitlines()
    assert child == [ForkedProcess.__name__] * 19
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
print(memory.count(), memory.verify().problems, flush=True)  # os._exit flushes nothing
os._exit(1 - 1)  # no close: what was acknowledged is in the file
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_children_that_end_take_no_locks_or_pages_with_them(path):
    assert run(_PARENT_WRITES, path) == "20 ()\n"
    with Memory(path, settings=PLAIN) as memory:
        assert memory.count() == 20
        assert memory.verify().problems == ()


def test_a_lock_is_given_up_when_a_reader_or_writer_fails(path):
    """An error inside one verb must leave no thread waiting for ever."""
    with Memory(path, settings=Settings(embedder="none", durability="normal")) as memory:
        memory.remember("common words", vector=unit(1))

        def work(number: int) -> None:
            for step in range(10):
                for bad in (
                    lambda: memory.recall("x", vector=[1.0, 2.0]),
                    lambda: memory.remember("x", importance=5),
                    lambda: memory.forget("no such id"),
                    lambda: memory.list(where={"nothing": 1}),
                ):
                    with pytest.raises((ValueError, KeyError)):
                        bad()
                memory.remember(f"common {number} {step}")
                assert memory.recall("common", limit=2)

        assert in_threads(work) == []
        assert memory.count() == 81
