"""AsyncMemory: the same verbs, and an event loop that goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from recallite import AsyncMemory, Memory
from recallite.errors import InvalidInput, NotADatabase, NotFound, StoreClosed
from recallite.model.records import NewRecord
from recallite.store.sqlite.store import SqliteStore
from recallite.system.asynchrony import MAX_THREADS, AsyncHandle
from tests.limits import LAST_RESORT_SECONDS
from tests.unit.core.memory.support import PLAIN, WordEmbedder, scored, unit


def run(main):
    return asyncio.run(asyncio.wait_for(main(), LAST_RESORT_SECONDS))


@pytest.mark.usefixtures("ready_kernels")
def test_every_verb_answers_as_the_sync_one(path, tmp_path):
    async def main():
        async with AsyncMemory(path, settings=PLAIN) as memory:
            stored = await memory.remember(NewRecord("red apple", vector=unit(1), tags=["x"]))
            ids = await memory.remember_many([{"text": f"red berry {n}", "vector": unit(n)} for n in range(2, 6)])
            await memory.link(stored.id, ids[0])
            changed = await memory.update(ids[1], text="green berry")
            hits = await memory.recall("red", vector=unit(1), limit=3, profile={"half_life_days": 0})
            many = await memory.recall_many(["red", "green"], profile={"half_life_days": 0})
            with Memory(path, settings=PLAIN) as sync:
                assert scored(hits) == scored(
                    sync.recall("red", vector=unit(1), limit=3, profile={"half_life_days": 0})
                )
                assert [scored(each) for each in many] == [
                    scored(sync.recall(query, profile={"half_life_days": 0})) for query in ("red", "green")
                ]
                assert (await memory.get(changed.id)).text == sync.get(changed.id).text == "green berry"
            assert (await memory.review.explain("green", changed.id)).returned
            assert await memory.count() == 5
            assert len(await memory.list(limit=2)) == 2
            assert len(await memory.history(changed.id)) == 2
            assert [link.target for link in await memory.neighbors(stored.id)] == [ids[0]]
            assert (await memory.store.stats()).records == 5
            assert (await memory.forget(ids[0])).records == 1
            assert (await memory.store.verify()).ok
            assert (await memory.store.rebuild()).ok
            assert await memory.store.vacuum() >= 0
            assert await memory.store.backup(tmp_path / "copy.db") == str(tmp_path / "copy.db")
            assert set(await memory.store.warmup()) >= {"embedder", "index", "kernels"}
            assert await memory.transfer.export(tmp_path / "out.jsonl") == 4
            assert (await memory.transfer.import_(tmp_path / "out.jsonl")).skipped == 4

    run(main)


def test_errors_arrive_as_they_are():
    async def main():
        async with AsyncMemory(":memory:", settings=PLAIN) as memory:
            with pytest.raises(InvalidInput, match="importance is 2"):
                await memory.remember("x", importance=2)
            with pytest.raises(NotFound):
                await memory.get("nothing")
            with pytest.raises(TypeError):
                await memory.remember(NewRecord("x", colour="red"))
            assert await memory.count() == 0

    run(main)


def test_a_scoped_handle_is_bound_and_leaves_the_file_open():
    async def main():
        async with AsyncMemory(":memory:", settings=PLAIN) as memory:
            async with memory.scoped("/a") as handle:
                inside = await handle.remember("inside")
                deeper = await handle.scoped("/b").remember("deeper")
            assert [(await memory.get(each.id)).scope for each in (inside, deeper)] == ["/a", "/a/b"]
            outside = await memory.remember("outside")
            with pytest.raises(NotFound):
                await memory.scoped("/a").get(outside.id)
            assert await memory.count() == 3

    run(main)


def test_opening_by_with_by_await_or_by_the_first_verb(path):
    async def main():
        memory = AsyncMemory(path, settings=PLAIN)
        with pytest.raises(StoreClosed, match="not open"):
            memory.scoped("/a")
        first, second = await asyncio.gather(memory.remember("one"), memory.remember("two"))
        assert first.id != second.id
        await memory.close()
        opened = await AsyncMemory(path, settings=PLAIN).open()
        assert await opened.count() == 2
        await opened.close()

    run(main)


def test_close_again_does_nothing_and_use_after_it_is_refused(path):
    async def main():
        memory = AsyncMemory(path, settings=PLAIN)
        await memory.remember("one")
        handle = memory.scoped("/a")
        await memory.close()
        await memory.close()
        for each in (memory, handle):
            with pytest.raises(StoreClosed):
                await each.recall("one")
        never = AsyncMemory(path, settings=PLAIN)
        await never.close()
        with pytest.raises(StoreClosed):
            await never.count()

    before = threading.active_count()
    run(main)
    assert [each.name for each in threading.enumerate() if each.name.startswith("recallite_")] == [] or (
        threading.active_count() <= before + MAX_THREADS
    )


def test_a_file_that_cannot_be_opened_is_refused_when_it_is_opened(tmp_path):
    async def main():
        memory = AsyncMemory(tmp_path, settings=PLAIN)
        for _ in range(2):
            with pytest.raises(NotADatabase, match="directory"):
                await memory.count()
        await memory.close()

    run(main)


class Waiting(WordEmbedder):
    """Embeds only once it is let go; counts how many wait at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.entered = threading.Semaphore(0)
        self.inside = 0
        self.most = 0
        self.lock = threading.Lock()

    def embed(self, texts):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.entered.release()
        assert self.go.wait(LAST_RESORT_SECONDS)
        with self.lock:
            self.inside -= 1
        return super().embed(texts)


async def entered(embedder: Waiting) -> None:
    await asyncio.get_running_loop().run_in_executor(None, embedder.entered.acquire)


def test_the_loop_goes_on_while_a_verb_waits(path):
    async def main():
        embedder = Waiting()
        async with AsyncMemory(path, embedder=embedder) as memory:
            task = asyncio.create_task(memory.remember("slow"))
            await entered(embedder)
            ticks = 0
            for _ in range(1000):
                await asyncio.sleep(0)
                ticks += 1
            assert not task.done()
            assert ticks == 1000
            embedder.go.set()
            assert (await task).text == "slow"

    run(main)


def test_no_more_verbs_run_at_a_time_than_there_are_threads(path):
    async def main():
        embedder = Waiting()
        async with AsyncMemory(path, embedder=embedder) as memory:
            tasks = [asyncio.create_task(memory.remember(f"number {n}")) for n in range(4 * MAX_THREADS)]
            for _ in range(MAX_THREADS):
                await entered(embedder)
            embedder.go.set()
            await asyncio.gather(*tasks)
            assert embedder.most == MAX_THREADS
            assert await memory.count() == 4 * MAX_THREADS

    run(main)


def test_a_cancelled_await_frees_the_caller_and_the_verb_ends_whole(path):
    async def main():
        embedder = Waiting()
        async with AsyncMemory(path, embedder=embedder) as memory:
            running = asyncio.create_task(memory.remember("finished all the same"))
            await entered(embedder)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            with pytest.raises(asyncio.TimeoutError):
                async with asyncio.timeout(0):
                    await memory.recall("anything")
            embedder.go.set()
            await memory.remember("another")
            while await memory.count() < 2:
                await asyncio.sleep(0)
            assert (await memory.store.verify()).ok

    run(main)


def test_cancelling_the_first_verb_does_not_spoil_the_opening(path):
    async def main():
        memory = AsyncMemory(path, settings=PLAIN)
        task = asyncio.create_task(memory.count())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await memory.count() == 0
        await memory.close()

    run(main)


def test_closing_closes_what_a_cancelled_await_has_opened():
    class Opened:
        closed = False

        def close(self):
            self.closed = True

    async def main():
        begun, go, opened = threading.Event(), threading.Event(), []

        def opens():
            begun.set()
            go.wait(LAST_RESORT_SECONDS)
            opened.append(Opened())
            return opened[-1]

        handle = AsyncHandle(opens)
        tasks = [asyncio.create_task(handle.open()) for _ in range(2)]
        await asyncio.to_thread(begun.wait, LAST_RESORT_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        go.set()
        await handle.close()
        return opened

    assert [each.closed for each in run(main)] == [True]


def test_closing_waits_for_the_verbs_that_run(path):
    async def main():
        embedder = Waiting()
        memory = await AsyncMemory(path, embedder=embedder).open()
        writing = asyncio.create_task(memory.remember("under way"))
        await entered(embedder)
        closing = asyncio.create_task(memory.close())
        embedder.go.set()
        results = await asyncio.gather(writing, closing, return_exceptions=True)
        return results[0]

    written = run(main)
    with Memory(path, settings=PLAIN) as again:
        # Either it was stored whole, or it was refused and is not there.
        assert again.count() == (0 if isinstance(written, StoreClosed) else 1), written


def test_no_verb_runs_in_the_thread_of_the_loop(path, monkeypatch):
    threads = set()

    def noted(name):
        method = getattr(SqliteStore, name)

        def call(self, *args, **kwargs):
            threads.add(threading.get_ident())
            return method(self, *args, **kwargs)

        monkeypatch.setattr(SqliteStore, name, call)

    noted("read")
    noted("atomic")

    async def main():
        async with AsyncMemory(path, settings=PLAIN) as memory:
            await memory.recall("opens it")
            await asyncio.gather(
                *(memory.remember_many([{"text": f"item {step}", "vector": unit(step)}]) for step in range(3)),
                *(memory.recall("item word", vector=unit(step)) for step in range(20)),
            )
            await memory.sessions.list()
        return threading.get_ident()

    assert run(main) not in threads
    assert threads
