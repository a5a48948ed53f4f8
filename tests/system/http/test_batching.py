"""Concurrent recalls are answered together, each as it would be alone."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

pytest.importorskip("starlette", reason="the extra server is not installed")

from recallite import Memory, Settings
from recallite.errors import InvalidInput
from recallite_server.client import Client
from recallite_server.http.app import RecallBatcher
from tests.limits import LAST_RESORT_SECONDS, until
from tests.system.http.serving import serving

WORDS = ("tea", "coffee", "van", "piano", "garden", "server", "invoice", "Oslo")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("filled") / "agent.db"
    with Memory(path) as memory:
        memory.remember_many(
            [{"text": f"Note {n}: the {word} of week {n}", "scope": f"/{word}"} for n in range(30) for word in WORDS]
        )
        memory.store.warmup()
        yield memory


def same(found, expected):
    """Whether two answers have the same hits; scores depend on the moment a little."""
    ids = [hit.id for hit in found] == [hit.id for hit in expected]
    return ids and [h.score for h in found] == pytest.approx([h.score for h in expected], rel=1e-3)


def concurrently(calls):
    """The results of calls that begin together, in their order; exceptions are results."""
    results, start = [None] * len(calls), threading.Barrier(len(calls))

    def run(place):
        start.wait()
        try:
            results[place] = calls[place]()
        except Exception as fault:
            results[place] = fault

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_each_gets_the_hits_that_it_would_get_alone(filled):
    asked = [(f"What about the {word} in week {n}?", {"limit": 1 + n % 2}) for n in range(8) for word in WORDS]
    with serving(filled) as url, Client(url) as client:
        found = concurrently([lambda q=query, o=options: client.recall(q, **o) for query, options in asked])
        figures = httpx2.get(f"{url}/metrics", trust_env=False).text
    for (query, options), hits in zip(asked, found, strict=True):
        assert same(hits, filled.recall(query, **options))
        assert hits.query == query
    lines = dict(line.rsplit(" ", 1) for line in figures.splitlines() if not line.startswith("#"))
    assert float(lines["recallite_recall_batch_queries_sum"]) == len(asked)
    assert float(lines["recallite_recall_batch_queries_count"]) < len(asked)


def test_a_wrong_query_fails_alone(filled):
    good = [f"the {word}" for word in WORDS]
    with serving(filled) as url, Client(url) as client:
        asked = [*good, "x" * 100_001, *good]
        found = concurrently([lambda q=query: client.recall(q) for query in asked])
    for query, hits in zip(asked, found, strict=True):
        if len(query) > 1_000:
            assert isinstance(hits, InvalidInput)
        else:
            assert same(hits, filled.recall(query))


def test_scopes_are_not_mixed(filled):
    with serving(filled) as url, Client(url) as client:
        handles = {word: client.scoped(f"/{word}") for word in WORDS}
        found = concurrently(
            [lambda h=handle: h.recall("week 3", limit=50) for handle in handles.values() for _ in "123"]
        )
    expected = [word for word in WORDS for _ in "123"]
    for word, hits in zip(expected, found, strict=True):
        assert hits
        assert all(word in hit.text for hit in hits)
        assert {hit.scope for hit in hits} == {"/"}


class Held:
    """Runs functions in threads; the first waits until `release` is set."""

    def __init__(self):
        self.release, self.began, self.ran = threading.Event(), asyncio.Event(), []

    async def __call__(self, work):
        first = not self.ran
        self.ran.append(work)
        self.began.set()
        if first:
            await asyncio.to_thread(self.release.wait, LAST_RESORT_SECONDS)
        return await asyncio.to_thread(work)


def test_those_that_wait_are_one_batch_without_those_that_went(filled):
    async def main():
        held, sizes = Held(), []
        batcher = RecallBatcher(held, seen=sizes.append)
        asked = [asyncio.create_task(batcher.recall(filled, "/", "tea", {}))]
        await held.began.wait()
        asked += [asyncio.create_task(batcher.recall(filled, "/", f"the {word}", {})) for word in WORDS]
        await asyncio.sleep(0)
        asked[3].cancel()
        await asyncio.sleep(0)
        held.release.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert sizes == [1, len(WORDS) - 1]
        assert isinstance(found[3], asyncio.CancelledError)
        for place, hits in enumerate(found[1:]):
            if place != 2:
                assert same(hits, filled.recall(f"the {WORDS[place]}"))

    asyncio.run(asyncio.wait_for(main(), LAST_RESORT_SECONDS))


def test_a_recall_runs_in_the_context_of_its_request(filled):
    whose = contextvars.ContextVar("whose", default="nobody")
    seen = []

    async def main():
        async def run(work):
            return await asyncio.to_thread(lambda: (work(), seen.append(None))[0])

        class Watched:
            _engine, _scope, _shared, _owner = filled._engine, filled.scope, (), True

            def recall(self, query, **options):
                seen.append(whose.get())
                return filled.recall(query, **options)

            def recall_many(self, queries, **options):
                seen.append(whose.get())
                return filled.recall_many(queries, **options)

        batcher = RecallBatcher(run)

        async def ask(name):
            whose.set(name)
            await batcher.recall(Watched(), "/", "tea", {})

        for name in ("ada", "bob"):
            await asyncio.create_task(ask(name))
        await asyncio.gather(*(asyncio.create_task(ask(name)) for name in ("cleo", "dan", "eve")))

    asyncio.run(asyncio.wait_for(main(), LAST_RESORT_SECONDS))
    assert [each for each in seen if each is not None][:2] == ["ada", "bob"]
    assert set([each for each in seen if each is not None][2:]) <= {"cleo", "nobody"}


def test_a_slow_language_model_holds_up_only_who_asks_for_it(tmp_path):
    class Slow:
        name = "slow"

        def __init__(self):
            self.asked, self.release = threading.Event(), threading.Event()

        def complete(self, messages, *, schema=None, max_tokens=None):
            self.asked.set()
            self.release.wait(LAST_RESORT_SECONDS)
            return "[]"

    model, query = Slow(), "tea and coffee and piano and garden " * 3
    with Memory(tmp_path / "a.db", settings=Settings(embedder="none"), language_model=model) as memory:
        memory.remember("green tea")
        with serving(memory) as url, Client(url) as client, ThreadPoolExecutor(1) as thread:
            long = thread.submit(client.recall, query, profile={"long_query_chars": 50})
            try:
                until(lambda: model.asked.is_set() or long.done())
                assert client.recall("tea")
                assert not long.done()
            finally:
                model.release.set()
            assert long.result(LAST_RESORT_SECONDS)
