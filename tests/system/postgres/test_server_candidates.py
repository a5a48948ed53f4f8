"""Recall with candidates from a PostgreSQL server gives the hits of recall by the index in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput
from recallite.model.policies import WritePolicy
from recallite.model.records import NewRecord
from recallite.recall import server_candidates
from recallite.recall.request import recall_arguments
from recallite.remember import similar_records as threshold_search
from tests.unit.core.memory.support import ONLY_STORES, unit

RECORDS = 400
DIMENSION = 32
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
NEWEST = BEGIN + timedelta(days=RECORDS)
WORDS = [f"word{number}" for number in range(120)]


def assert_same(found, expected):
    """The same hits in the same order; between two recalls they grow older."""
    assert [hit.id for hit in found] == [hit.id for hit in expected]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-4)


def open_by(address, candidates, **more):
    settings = Settings(embedder="none", **{"write": ONLY_STORES, **more})
    return Memory(f"{address}&candidates={candidates}", settings=settings)


def items():
    rng = np.random.default_rng(11)
    for number in range(RECORDS):
        words = rng.zipf(1.3, size=9) % len(WORDS)
        yield {
            "text": " ".join(WORDS[word] for word in words) + (" rare" if number % 200 == 7 else ""),
            "vector": unit(number % 300, DIMENSION),
            "scope": f"/a/{number % 10}" if number % 2 else f"/b/{number % 7}",
            "kind": ("memory", "note", "preference")[number % 3],
            "tags": ["tenth"] * (number % 10 == 0) + ["few"] * (number % 100 == 0),
            "source": None if number % 9 == 0 else f"source {number // 25}",
            "position": None if number % 11 == 0 else number % 25,
            "created_at": (BEGIN + timedelta(days=number)).isoformat(),
            "expires_at": (BEGIN + timedelta(days=number, hours=1)).isoformat() if number % 13 == 0 else None,
        }


@pytest.fixture
def filled(postgres_address):
    """The address of a memory with closed versions, deleted, expired and superseded records, and links."""
    with open_by(postgres_address, "memory") as memory:
        ids = memory.remember_many(items())
        memory.forget(ids[20:24])
        for number in range(30, 34):
            memory.update(ids[number], text=f"{WORDS[number]} rewritten", vector=unit(number, DIMENSION))
        for number in range(40, 60, 2):
            memory.supersede(ids[number], ids[number + 70])
        for number in range(60, 90, 3):
            memory.link(ids[number], ids[number + 100])
        assert memory.store.stats().index["candidates"] == "memory"
    return postgres_address


@pytest.fixture
def both(filled):
    """The memory by the index in memory, and by the server's indexes, however few records there are."""
    with open_by(filled, "memory") as first, open_by(filled, "server") as second:
        yield first, second


@pytest.fixture
def only_indexes(monkeypatch):
    """No filter is taken to admit few records."""
    monkeypatch.setattr(server_candidates, "_FEW", 0)
    monkeypatch.setattr(server_candidates, "_READ_COST", 0.0)


FILTERS: list[dict] = [
    {},
    {"scope": "/a"},
    {"scope": ["/a/1", "/b/2"]},
    {"kinds": ["note"]},
    {"tags": ["tenth"]},
    {"tags": ["few"]},
    {"since": BEGIN + timedelta(days=100), "until": BEGIN + timedelta(days=200)},
    {"where": {"source": "source 3"}},
    {"include_superseded": True},
    {"as_of": BEGIN + timedelta(days=250)},
    {"valid_at": BEGIN + timedelta(days=250)},
]

OPTIONS: list[dict] = [
    {},
    {"diversify_by": "one_per_source"},
    {"mode": "keyword"},
    {"mode": "vector"},
    {"diversify_by": "time"},
]


def test_where_candidates_cover_all_the_hits_are_those_of_the_index_in_memory(both):
    memory, server = both
    for chosen in FILTERS:
        for options in OPTIONS:
            for seed in (3, 151):
                question = {"query": f"{WORDS[seed % 40]} {WORDS[1]} rare", "vector": unit(seed, DIMENSION)}
                expected = memory.recall(**recall_arguments({**question, **chosen, **options}))
                assert_same(server.recall(**recall_arguments({**question, **chosen, **options})), expected)
                assert len(expected) > 0


def test_vectors_kept_as_float16_are_searched_alike(filled):
    with open_by(filled, "server", vectors="float16") as memory:
        assert memory.store.rebuild().ok
        assert memory.store.stats().vector_type == "float16"
        expected = memory.recall(vector=unit(7, DIMENSION), query="", mode="vector", limit=5)
    with open_by(filled, "memory", vectors="float16") as memory:
        assert_same(memory.recall(vector=unit(7, DIMENSION), query="", mode="vector", limit=5), expected)
        memory.remember(NewRecord("another", vector=unit(301, DIMENSION)))
        assert memory.store.verify().ok


@pytest.mark.parametrize("type", ["<f4", "<f2"])
def test_the_server_reads_components_as_they_are_stored(filled, connected, type):
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.1, -0.3, 1 / 3, 6e-5, -3e-6, 0.99], dtype=type)
    with connected(filled).connect() as connection:
        row = connection.execute("SELECT halves(%s, 10)::text", (values.tobytes(),)).fetchone()
    found = np.array(row[0][1:-1].split(","), dtype=np.float64)
    assert found == pytest.approx(values.astype(np.float16).astype(np.float64), rel=1.1e-3, abs=1e-7)


def test_questions_that_are_asked_together_have_the_hits_of_each(both):
    _, server = both
    questions = [f"{WORDS[place]} rare" for place in range(5)]
    vectors = [unit(place, DIMENSION) for place in range(5)]
    expected = [server.recall(query, vector=vector) for query, vector in zip(questions, vectors, strict=True)]
    found = server.recall_many(questions, vectors=vectors)
    for own, alone in zip(found, expected, strict=True):
        assert_same(own, alone)


def test_without_its_indexes_a_server_is_not_searched(both, only_indexes):
    _, server = both
    assert server.store.stats().index == {"candidates": "server", "indexes": {}}
    assert any("warmup" in note for note in server.store.stats().notes)
    with pytest.raises(InvalidInput, match="warmup"):
        server.recall("word1", vector=unit(1, DIMENSION))


@pytest.fixture
def indexed(both, only_indexes):
    memory, server = both
    server.store.warmup()
    assert set(server.store.stats().index["indexes"]) == {"record_words", "vector_near_1"}
    return memory, server


def test_the_indexes_find_what_the_index_in_memory_finds(indexed):
    memory, server = indexed
    for chosen in FILTERS:
        for seed in (3, 151):
            question = {"query": f"{WORDS[seed % 40]} {WORDS[1]} rare", "vector": unit(seed, DIMENSION), **chosen}
            expected, found = memory.recall(**recall_arguments(question)), server.recall(**recall_arguments(question))
            assert len(found) == len(expected), chosen  # a narrow filter fills the list too
            assert len({hit.id for hit in found} & {hit.id for hit in expected}) >= len(expected) - 1, chosen
            assert_same(server.recall(**recall_arguments(question)), found)


def test_what_was_deleted_superseded_or_has_expired_is_not_found(indexed):
    memory, server = indexed
    hits = server.recall("word1 word2 rare", vector=unit(3, DIMENSION), limit=1000)
    current = {record.id for record in memory.list(limit=1000)}
    assert {hit.id for hit in hits} <= current


def test_writes_are_found_at_once(indexed):
    _, server = indexed
    new = server.remember(NewRecord("an unheard syllable", vector=unit(7777, DIMENSION))).id
    assert server.recall("unheard", mode="keyword")[0].id == new
    assert server.recall("", vector=unit(7777, DIMENSION))[0].id == new
    server.update(new, text="another syllable", vector=unit(8888, DIMENSION))
    assert not server.recall("unheard", mode="keyword")
    assert server.recall("", vector=unit(8888, DIMENSION))[0].id == new
    server.forget(new)
    assert not server.recall("syllable", mode="keyword")


def test_words_weigh_what_they_weigh_in_the_handles_scope(indexed):
    memory, server = indexed
    for scope in ("/a", "/b/2"):
        question = {"query": "word1 rare", "vector": unit(5, DIMENSION)}
        expected = {hit.id: hit.signals["bm25"] for hit in memory.scoped(scope).recall(**recall_arguments(question))}
        found = {hit.id: hit.signals["bm25"] for hit in server.scoped(scope).recall(**recall_arguments(question))}
        same = expected.keys() & found.keys()
        assert len(same) >= len(expected) - 1
        assert [found[each] for each in same] == pytest.approx([expected[each] for each in same], abs=1e-5)


def test_explain_says_what_answered(both, monkeypatch):
    memory, server = both
    hit = memory.recall("word1 rare", vector=unit(3, DIMENSION))[0]
    by_memory = memory.review.explain("word1 rare", hit.id, vector=unit(3, DIMENSION))
    all_admitted = server.review.explain("word1 rare", hit.id, vector=unit(3, DIMENSION))
    assert by_memory.index == "store"
    assert all_admitted.index == "server: every record that the filter admits"
    assert (all_admitted.rank, all_admitted.ranks) == (by_memory.rank, by_memory.ranks)
    server.store.warmup()
    monkeypatch.setattr(server_candidates, "_FEW", 0)
    monkeypatch.setattr(server_candidates, "_READ_COST", 0.0)
    by_indexes = server.review.explain("word1 rare", hit.id, vector=unit(3, DIMENSION))
    assert by_indexes.returned
    assert by_indexes.index.startswith("server: the nearest by HNSW")
    far = memory.list(limit=1000)[-1].id
    assert server.review.explain("rare", far, vector=unit(3, DIMENSION)).signals.keys() >= {"cosine", "bm25"}


def test_similar_records_are_linked_where_the_server_finds_them(postgres_address, monkeypatch):
    monkeypatch.setattr(threshold_search, "_FEW", 3)
    policy = WritePolicy(link_cosine=0.9, duplicates="store", supersede_confidence=None, contradict_confidence=None)
    with open_by(postgres_address, "server", write=policy) as memory:
        others = memory.remember_many([{"text": f"text {seed}", "vector": unit(seed)} for seed in range(20)])
        memory.store.warmup()
        assert [link.target for link in memory.remember(NewRecord("one more", vector=unit(5))).links] == [others[5]]


def test_a_file_is_searched_in_memory():
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        memory.remember(NewRecord("Ada lives in Bergen", vector=unit(1)))
        assert len(memory.recall("Ada", vector=unit(1))) == 1
        assert memory.store.stats().index["candidates"] == "memory"


def test_where_nothing_is_admitted_nothing_is_found(postgres_address):
    with open_by(postgres_address, "server") as memory:
        assert not memory.recall("anything")
        assert memory.recall_many([]) == []
        memory.remember(NewRecord("Ada lives in Bergen", vector=unit(1)))
        assert not memory.recall("Ada", vector=unit(1), kinds=["note"])
        assert not memory.recall("Ada", vector=unit(1), as_of=BEGIN - timedelta(days=3650))
        assert [hit.text for hit in memory.recall("Ada", vector=unit(1))] == ["Ada lives in Bergen"]


def test_the_indexes_are_kept_by_rebuild_and_made_once(indexed):
    _, server = indexed
    before = server.recall("word1 word2 rare", vector=unit(3, DIMENSION))
    assert not server.store.rebuild().problems
    assert_same(server.recall("word1 word2 rare", vector=unit(3, DIMENSION)), before)
    server.store.warmup()
    assert set(server.store.stats().index["indexes"]) == {"record_words", "vector_near_1"}
