"""transaction(): several calls, one commit."""

from __future__ import annotations

import asyncio
import threading

import pytest

from recallite import AsyncMemory, Memory, Settings
from recallite.errors import InvalidInput, NotFound
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from tests.limits import LAST_RESORT_SECONDS
from tests.unit.core.memory.support import PLAIN, state, unit


class Broken(Exception):
    pass


def _remember_and_raise(memory, text):
    with memory.transaction():
        memory.remember(text)
        raise Broken


def test_what_a_block_writes_is_one_commit(path):
    with Memory(path, settings=PLAIN) as memory, Memory(path, settings=PLAIN) as other:
        old = memory.remember("old")
        with memory.transaction():
            memory.forget(old.id)
            new = memory.remember(NewRecord("new", vector=unit(1), tags=["x"]))
            memory.update(new.id, text="newer")
            memory.sessions.open("s").append("user", "hello")
            assert memory.get(new.id).text == "newer"
            assert [record.id for record in memory.list()] == [new.id]
            assert (memory.count(), memory.sessions.open("s").messages()) == (1, [{"role": "user", "content": "hello"}])
            assert [record.text for record in other.list()] == ["old"]
            assert other.recall("old")[0].id == old.id
        assert [record.text for record in other.list()] == ["newer"]
        assert memory.recall("newer")[0].id == other.recall("newer")[0].id == new.id
        assert memory.recall("old") == []
        assert memory.store.verify().ok


def test_a_block_that_raises_leaves_nothing(memory):
    kept = memory.remember("kept")
    assert memory.recall("kept")[0].id == kept.id
    before = state(memory)

    def write_and_raise():
        with memory.transaction():
            memory.remember(NewRecord("lost", vector=unit(1)))
            memory.remember_many([f"lost too {number}" for number in range(100)])
            memory.forget(kept.id)
            raise Broken

    with pytest.raises(Broken):
        write_and_raise()
    assert state(memory) == before
    assert memory.recall("kept")[0].id == kept.id
    assert memory.recall("lost") == []
    again = memory.remember(NewRecord("another", vector=unit(2)))
    assert memory.recall("another", vector=unit(2))[0].id == again.id
    assert memory.store.verify().ok


def test_a_refused_call_undoes_itself_alone(memory):
    with memory.transaction():
        memory.remember("one")
        with pytest.raises(NotFound):
            memory.update("unknown", text="x")
        with pytest.raises(InvalidInput):
            memory.remember("")
        with memory.transaction():
            memory.remember("two")
        with pytest.raises(Broken):
            _remember_and_raise(memory, "three")
    assert sorted(record.text for record in memory.list()) == ["one", "two"]


def test_recall_inside_needs_that_nothing_is_written_yet(memory):
    memory.remember("red apple")
    with memory.transaction():
        assert memory.recall("apple")[0].text == "red apple"
        memory.remember("green apple")
        for call in (lambda: memory.recall("apple"), lambda: memory.review.explain("apple", memory.list()[0].id)):
            with pytest.raises(InvalidInput, match="can be recalled after it"):
                call()
    assert len(memory.recall("apple")) == 2


def test_neighbours_are_found_inside(path):
    linking = Settings(embedder="none", write=WritePolicy(link_cosine=0.8))
    with Memory(path, settings=linking) as memory:
        first = memory.remember(NewRecord("one", vector=unit(1)))
        with memory.transaction():
            second = memory.remember(NewRecord("two", vector=unit(1)))
            third = memory.remember(NewRecord("three", vector=unit(1)))
        assert {link.target for link in second.links} == {first.id}
        assert {link.target for link in third.links} == {first.id, second.id}


def test_what_sqlite_does_not_do_in_a_transaction_is_refused(path, tmp_path):
    with Memory(path, settings=PLAIN) as memory:
        record = memory.remember("one")
        with memory.transaction():
            memory.remember("two")
            for call in (
                memory.store.vacuum, memory.close, lambda: memory.store.backup(tmp_path / "copy.db"),
                lambda: memory.forget(record.id, receipt=True),
            ):  # fmt: skip
                with pytest.raises(InvalidInput, match="inside transaction"):
                    call()
        assert memory.count() == 2
        assert not (tmp_path / "copy.db").exists()


def test_another_thread_waits_and_sees_nothing_of_it(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("red apple")
        seen, read, wrote = [], threading.Event(), threading.Event()

        def other():
            seen.append([record.text for record in memory.list()])
            seen.append([hit.text for hit in memory.recall("apple")])
            read.set()
            memory.remember("from the other thread")
            wrote.set()

        thread = threading.Thread(target=other)
        with memory.transaction():
            memory.remember("green apple")
            thread.start()
            assert read.wait(LAST_RESORT_SECONDS)
            assert not wrote.is_set()
        thread.join(LAST_RESORT_SECONDS)
        assert seen == [["red apple"], ["red apple"]]
        assert memory.count() == 3
        assert {hit.text for hit in memory.recall("apple")} == {"red apple", "green apple"}


def test_async_transactions_belong_to_their_task(path):
    async def main():
        async with AsyncMemory(path, settings=PLAIN) as memory:
            await memory.remember("before")
            entered, left = asyncio.Event(), asyncio.Event()

            async def writer():
                async with memory.transaction():
                    record = await memory.remember("inside")
                    async with memory.scoped("/a").transaction():
                        await memory.scoped("/a").remember("scoped")
                    assert (await memory.get(record.id)).text == "inside"
                    assert await memory.count() == 3
                    entered.set()
                    await left.wait()

            async def reader():
                await entered.wait()
                assert await memory.count() == 1
                left.set()

            await asyncio.gather(writer(), reader())
            assert await memory.count() == 3
            with pytest.raises(Broken):
                await _lose(memory)
            assert await memory.count() == 3

            task = asyncio.create_task(_hold(memory))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await memory.remember("after")
            assert await memory.count() == 4

    asyncio.run(asyncio.wait_for(main(), LAST_RESORT_SECONDS))


async def _lose(memory):
    async with memory.transaction():
        await memory.remember("lost")
        raise Broken


async def _hold(memory):
    async with memory.transaction():
        await memory.remember("cancelled")
        await asyncio.Event().wait()
