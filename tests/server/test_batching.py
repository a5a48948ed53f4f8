"""Concurrent recalls are answered together, each as it would be alone."""

from __future__ import annotations

import threading

import httpx2
import pytest

pytest.importorskip("fastapi", reason="the extra server is not installed")

from recollect import Memory
from recollect.client import Client
from recollect.errors import InvalidInput
from tests.limits import LAST_RESORT_SECONDS
from tests.server.serving import serving

WORDS = ("tea", "coffee", "van", "piano", "garden", "server", "invoice", "Oslo")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("filled") / "agent.db"
    with Memory(path) as memory:
        memory.remember_many(
            [{"text": f"Note {n}: the {word} of week {n}", "scope": f"/{word}"} for n in range(30) for word in WORDS]
        )
        memory.warmup()
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
    assert float(lines["recollect_recall_batch_queries_sum"]) == len(asked)
    assert float(lines["recollect_recall_batch_queries_count"]) < len(asked)


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


def test_clients_that_go_are_dropped(filled):
    with serving(filled) as url:

        def leave():
            try:
                httpx2.post(f"{url}/v1/recall", json={"query": "tea"}, timeout=0.001, trust_env=False)
            except httpx2.TimeoutException:
                return "left"

        concurrently([leave] * 16)
        with Client(url, timeout_seconds=LAST_RESORT_SECONDS) as client:
            assert client.recall("tea")
