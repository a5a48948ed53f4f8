"""The best by a weighted sum are the best of all visible records, as if each had been scored."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments

NOW = datetime(2026, 7, 1, tzinfo=UTC)
DIMENSION = 16
HERMES = {"profile": "hermes", "as_of": NOW}


def fill(memory: Memory, count: int, seed: int, dimension: int = DIMENSION, bare: float = 0.1) -> list[dict]:
    """Records of many ages and importances; some have no vector, some are the same as others."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(count, dimension)) + generator.normal(size=dimension)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    rows = []
    for n in range(count):
        same = rows[-1] if rows and generator.random() < 0.1 else None
        rows.append(
            {
                "text": f"{generator.choice(['pear', 'plum', 'pear plum', 'fig'])} {n}",
                "scope": str(generator.choice(["/a", "/a/b", "/c"])),
                "source": f"s{generator.integers(count // 5)}",
                "importance": same["importance"] if same else float(np.float32(generator.random() ** 3)),
                "created_at": same["created_at"] if same else NOW - timedelta(days=float(generator.exponential(60))),
                "pinned": bool(generator.random() < 0.05),
                "vector": None if generator.random() < bare else same["vector"] if same else vectors[n],
            }
        )
    for row, key in zip(rows, memory.remember_many(dict(row) for row in rows), strict=True):
        row["id"] = key
    return rows


def by_hand(rows, query, *, words="", weights=(0.5, 0.3, 0.2), half_life=30.0, bm25=None):
    """Every record's score in float64, best first; without a vector a record needs a word of the query."""
    scored = []
    for row in rows:
        if row["vector"] is None or query is None:
            similarity = (bm25 or {}).get(row["id"], 0.0)
            if similarity <= 0:
                continue
        else:
            similarity = max(0.0, float(np.dot(row["vector"].astype(np.float64), query.astype(np.float64))))
        age = (NOW - row["created_at"]).total_seconds() / 86400
        parts = similarity, 0.5 ** (age / half_life), row["importance"]
        scored.append((math.fsum(w / sum(weights) * p for w, p in zip(weights, parts, strict=True)), row))
    return sorted(scored, key=lambda each: -each[0])


def unit(seed, dimension=DIMENSION):
    vector = np.random.default_rng(seed).normal(size=dimension) + 0.3
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def assert_best(hits, wanted, limit):
    """The same scores in the same order, and the same records wherever two scores are not equal."""
    assert [hit.score for hit in hits] == pytest.approx([score for score, _ in wanted[:limit]], abs=2e-5)
    sure = [n for n, hit in enumerate(hits) if sum(abs(score - hit.score) < 4e-6 for score, _ in wanted) == 1]
    assert [hits[n].id for n in sure] == [wanted[n][1]["id"] for n in sure]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """400 records; five candidates by each signal are asked for, so that nearly all the best are found by the floor."""
    path = str(tmp_path_factory.mktemp("sum") / "a.db")
    with Memory(path, settings=Settings(embedder="none")) as memory:
        return path, fill(memory, 400, 1)


@pytest.fixture(params=[False, True], ids=["memory", "low_memory"])
def opened(request, store, monkeypatch):
    monkeypatch.setenv("RECALLITE_LOW_MEMORY", str(int(request.param)))
    with Memory(store[0], settings=Settings(embedder="none")) as memory:
        yield memory, store[1]


@pytest.mark.parametrize("seed", range(6))
def test_hermes_the_best_are_those_of_all_visible_records(opened, seed):
    memory, rows = opened
    query = unit(seed)
    few = {"candidates": 5, "candidate_multiplier": 1}
    hits = memory.recall("zzz", vector=query, limit=5, **recall_arguments({**few, **HERMES}))
    assert_best(hits, by_hand(rows, query), 5)
    hits = memory.recall("zzz", vector=query, limit=7, **recall_arguments({"scope": ["/a/b", "/c"], **few, **HERMES}))
    assert_best(hits, by_hand([row for row in rows if row["scope"] in ("/a/b", "/c")], query), 7)
    hits = memory.recall("zzz", vector=query, limit=7, **recall_arguments({"where": {"pinned": True}, **few, **HERMES}))
    assert_best(hits, by_hand([row for row in rows if row["pinned"]], query), 7)
    wanted = by_hand(rows, query)
    least = wanted[3][0] - 1e-5
    assert (
        len(memory.recall("zzz", vector=query, limit=9, **recall_arguments({"min_score": least, **few, **HERMES}))) == 4
    )
    grouped: dict[tuple, tuple] = {}  # sources of two scopes are two
    for score, row in wanted:
        grouped.setdefault((row["scope"], row["source"]), (score, row))
    options = recall_arguments({"diversify_by": "one_per_source", **few, **HERMES})
    hits = memory.recall("zzz", vector=query, limit=6, **options)
    assert_best(hits, list(grouped.values()), 6)


@pytest.mark.parametrize("weights", [(0.5, 0.3, 0.2), (1, 0, 0), (0, 1, 1), (0.1, 5, 3)])
def test_any_weights_of_any_profile_and_many_queries_at_once(opened, weights):
    memory, rows = opened
    names = dict(zip(("semantic_weight", "recency_weight", "importance_weight"), weights, strict=True))
    queries = [unit(seed) for seed in range(40, 44)]
    chosen = {
        "composition": "weighted_sum", "candidates": 5, "candidate_multiplier": 1, "neighbor_boost": 0.0,
        "keyword_weight": 0.0,
        "half_life_days": 20.0, "decay_floor": 0.0, "profile": "hermes", "as_of": NOW, **names,
    }  # fmt: skip
    every = memory.recall_many(["zzz"] * 4, vectors=queries, limit=5, **recall_arguments(chosen))
    for query, hits in zip(queries, every, strict=True):
        assert_best(hits, by_hand(rows, query, weights=weights, half_life=20.0), 5)


def test_what_has_no_vector_competes_by_its_words(opened):
    memory, rows = opened
    full = memory.recall("pear", mode="keyword", limit=400, as_of=NOW)
    greatest = max(hit.signals["bm25"] for hit in full)
    bm25 = {hit.id: hit.signals["bm25"] / greatest for hit in full}
    query = unit(9)
    hits = memory.recall(
        "pear", vector=query, limit=6, **recall_arguments({"candidates": 5, "candidate_multiplier": 1, **HERMES})
    )
    assert_best(hits, by_hand(rows, query, bm25=bm25), 6)


def test_an_important_old_record_is_found_among_many_that_are_nearer():
    """200 were looked at by cosine: .65 was missed, .21 was the answer."""
    generator = np.random.default_rng(5)
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        near = np.zeros((6000, 64), dtype=np.float32)
        near[:, 0] = 0.4
        near[:, 1:] = generator.normal(size=(6000, 63))
        near[:, 1:] *= math.sqrt(1 - 0.16) / np.linalg.norm(near[:, 1:], axis=1, keepdims=True)
        old = NOW - timedelta(days=900)
        memory.remember_many(
            {"text": f"n{n}", "importance": 0.05, "created_at": old, "vector": near[n]} for n in range(6000)
        )
        other = np.zeros(64, dtype=np.float32)
        other[0], other[1] = 0.35, math.sqrt(1 - 0.35**2)
        important = memory.remember(NewRecord("decision", vector=other, importance=1.0, created_at=old)).id
        query = np.eye(64, dtype=np.float32)[0]
        hit = memory.recall("zzz", vector=query, limit=1, **recall_arguments(HERMES))[0]
        assert (hit.id, hit.score) == (important, pytest.approx(0.375, abs=2e-5))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_hermes_the_best_of_many_by_sketches(seed):
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        rows = fill(memory, 6000, seed, dimension=96, bare=0.0)
        for number in range(5):
            query = unit(number, 96)
            hits = memory.recall("zzz", vector=query, limit=10, **recall_arguments({"candidates": 20, **HERMES}))
            assert_best(hits, by_hand(rows, query), 10)
