"""One Memory, many threads; and what a child process may do with it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import StoreClosed
from recallite.model.records import NewRecord
from tests.unit.core.memory.support import PLAIN, scored, unit


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
                stored = memory.remember(
                    NewRecord(text, vector=rng.normal(size=16), source=f"s{step % 5}", position=step)
                )
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
        assert memory.store.verify().problems == ()
        answers = scored(memory.recall("common changed1", vector=unit(1), limit=50, profile={"half_life_days": 0}))
        if where == "file":
            with Memory(path, settings=PLAIN) as reopened:
                assert (
                    scored(reopened.recall("common changed1", vector=unit(1), limit=50, profile={"half_life_days": 0}))
                    == answers
                )


def test_threads_share_the_embedder(embedded):
    texts = [f"Sentence number {number} about the weather in city {number}." for number in range(24)]

    def work(number: int) -> None:
        for text in texts[number::4]:
            embedded.remember(text)
            assert embedded.recall(text, limit=1)[0].text == text

    assert in_threads(work, 4) == []
    assert embedded.count() == 24
    assert embedded.store.verify().problems == ()


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
        assert again.store.verify().problems == ()


def test_a_lock_is_given_up_when_a_reader_or_writer_fails(path):
    """An error inside one verb must leave no thread waiting for ever."""
    with Memory(path, settings=Settings(embedder="none", durability="normal")) as memory:
        memory.remember(NewRecord("common words", vector=unit(1)))

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
