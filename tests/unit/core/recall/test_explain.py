"""Why a memory is, or is not, among the hits."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recallite import Memory
from recallite.errors import NotFound
from recallite.model.authority import speaking_as
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import ONLY_STORES, unit


def test_a_returned_record_has_the_signals_of_its_hit(memory):
    memory.remember_many({"text": f"apple number{n}", "vector": unit(n)} for n in range(20))
    hits = memory.recall("apple number7", vector=unit(7), limit=5, as_of="2999-01-01T00:00:00Z")
    for place, hit in enumerate(hits, 1):
        said = memory.review.explain("apple number7", hit.id, vector=unit(7), limit=5, as_of="2999-01-01T00:00:00Z")
        assert (said.returned, said.stage, said.rank) == (True, "returned", place)
        assert said.signals == pytest.approx(hit.signals)
        assert said.confidence == pytest.approx(hit.confidence)
        assert said.ranks["score"] == place


@pytest.mark.parametrize(
    "options",
    [
        {}, {"relevant": True}, {"mode": "keyword"}, {"mode": "vector"}, {"diversify_by": "one_per_source"},
        {"diversify_by": "time"}, {"profile": {"reading": 5}}, {"profile": {"mmr_lambda": 0.5}},
    ],
)  # fmt: skip
def test_an_explanation_has_the_confidence_of_the_hit(options):
    with Memory(":memory:") as memory:
        for place, text in enumerate(
            (
                "Ada lives in Oslo",
                "The author of the guide is Mara Lind",
                "Mara Lind lives in Bergen",
                "When is it due?",
            )
        ):
            memory.remember(NewRecord(text, source=f"s{place % 2}", position=place))
        with speaking_as("agent"):
            memory.remember_many(f"Ada lives in Turin, says page {place}" for place in range(30))
        hits_of = {
            question: memory.recall(question, **options)
            for question in ("Where does Ada live?", "Where does the author of the guide live?", "Ada Oslo")
        }
        if not options:
            assert any("authority" in hit.match_reasons for hits in hits_of.values() for hit in hits)
        for question, hits in hits_of.items():
            assert hits
            for hit in hits:
                said = memory.review.explain(question, hit.id, **options)
                assert said.returned
                assert said.confidence == pytest.approx(hit.confidence)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"scope": "/b"}, "scope /b"),
        ({"kinds": ["note"]}, "note"),
        ({"tags": ["y"]}, "tags"),
        ({"since": "2026-02-01T00:00:00Z"}, "since"),
        ({"until": "2025-02-01T00:00:00Z"}, "until"),
        ({"where": {"metadata.n": 2}}, "where"),
        ({"as_of": "2020-01-01T00:00:00Z"}, "as_of"),
    ],
)
def test_a_filtered_record_is_told_which_filter(memory, options, word):
    hidden = memory.remember(
        NewRecord("apple", scope="/a", tags=["x"], metadata={"n": 1}, created_at="2026-01-01T00:00:00Z", vector=unit(1))
    )
    assert memory.recall("apple", **recall_arguments(options)) == []
    said = memory.review.explain("apple", hidden.id, **recall_arguments(options))
    assert (said.returned, said.stage) == (False, "filter")
    assert word in said.reason


def test_an_expired_record_is_told_so(memory):
    gone = memory.remember("apple", expires_at="2021-01-01T00:00:00Z", created_at="2020-01-01T00:00:00Z")
    said = memory.review.explain("apple", gone.id)
    assert (said.returned, said.stage) == (False, "filter")
    assert "expired" in said.reason


def test_a_record_that_two_filters_hide_together_is_told_of_one(memory):
    hidden = memory.remember("apple", kind="note", scope="/a")
    said = memory.review.explain("apple", hidden.id, kinds=["memory"], scope="/b")
    assert (said.returned, said.stage) == (False, "filter")


def test_a_record_below_the_threshold(memory):
    memory.remember(NewRecord("apple apple apple pie", vector=unit(1)))
    low = memory.remember(NewRecord("apple and many other words that are about something else", vector=-unit(1)))
    said = memory.review.explain("apple pie", low.id, vector=unit(1), profile={"min_score": 0.9})
    assert (said.returned, said.stage) == (False, "threshold")
    assert said.score < 0.9
    said = memory.review.explain("apple pie", low.id, vector=unit(1), profile={"min_confidence": 0.9})
    assert (said.returned, said.stage) == (False, "threshold")


def test_a_record_beyond_the_limit(memory):
    ids = memory.remember_many([f"apple {'x ' * number}" for number in range(10)])
    order = [hit.id for hit in memory.recall("apple", limit=10, profile={"half_life_days": 0})]
    assert set(order) == set(ids)
    said = memory.review.explain("apple", order[7], limit=3, profile={"half_life_days": 0})
    assert (said.returned, said.stage, said.rank) == (False, "limit", 8)
    assert "8" in said.reason
    assert "3" in said.reason


def test_a_record_that_another_of_its_source_stands_for(memory):
    best = memory.remember(NewRecord("apple apple pie", source="s", position=0))
    other = memory.remember(NewRecord("apple tree", source="s", position=1))
    assert [hit.id for hit in memory.recall("apple pie", diversify_by="one_per_source")] == [best.id]
    said = memory.review.explain("apple pie", other.id, diversify_by="one_per_source")
    assert (said.returned, said.stage) == (False, "group")


def test_a_record_that_did_not_fit_the_budget(memory):
    memory.remember("apple pie")
    long = memory.remember("apple " + "word " * 200)
    assert len(memory.recall("apple pie", token_budget=20)) == 1
    said = memory.review.explain("apple pie", long.id, token_budget=20)
    assert (said.returned, said.stage) == (False, "token_budget")


def test_a_record_that_diversity_moved_down(memory):
    memory.remember("apple pie recipe")
    double = memory.remember("apple pie recipe", policy=ONLY_STORES)
    memory.remember("apple orchard in autumn")
    options = {"mmr_lambda": 0.2, "limit": 2, "half_life_days": 0}
    assert double.id not in [hit.id for hit in memory.recall("apple pie", **recall_arguments(options))]
    said = memory.review.explain("apple pie", double.id, **recall_arguments(options))
    assert (said.returned, said.stage) == (False, "diversify")


def test_a_record_that_neither_signal_found(memory):
    memory.remember("apple")
    other = memory.remember("nothing of the kind")
    said = memory.review.explain("apple", other.id)
    assert (said.returned, said.stage) == (False, "candidates")
    assert said.signals["bm25"] == 0


def test_the_text_that_stood_at_the_time_is_explained(memory):
    kept = memory.remember("apple pie")
    then = datetime.now(UTC)
    memory.update(kept.id, text="plum cake")
    assert [hit.text for hit in memory.recall("apple", as_of=then)] == ["apple pie"]
    said = memory.review.explain("apple", kept.id, as_of=then)
    assert (said.returned, said.stage, said.rank) == (True, "returned", 1)
    assert not memory.review.explain("apple", kept.id).returned


def test_an_unknown_id_is_not_found(memory):
    hidden = memory.remember("apple", scope="/b")
    for handle, record_id in ((memory, "nothing"), (memory.scoped("/a"), hidden.id)):
        with pytest.raises(NotFound, match="no memory"):
            handle.review.explain("apple", record_id)


def test_explaining_counts_as_no_access(memory):
    kept = memory.remember("apple")
    memory.review.explain("apple", kept.id)
    assert memory.get(kept.id).access_count == 0


@pytest.mark.parametrize(("purpose", "counted"), [("use", 1), ("inspect", 0), ("explain", 0)])
def test_only_hits_to_use_count_as_accessed(memory, purpose, counted):
    kept = memory.remember("apple")
    assert [hit.id for hit in memory.recall("apple", purpose=purpose)] == [kept.id]
    assert memory.get(kept.id).access_count == counted


def test_an_explained_hit_says_its_rank_in_every_signal(memory):
    memory.remember_many(["apple pie", "apple tart with apple sauce", "pear cake"])
    plain = memory.recall("apple", limit=2)
    explained = memory.recall("apple", limit=2, purpose="explain")
    assert [hit.id for hit in explained] == [hit.id for hit in plain]
    assert [hit.signals["bm25_rank"] for hit in explained] == [1.0, 2.0]
    assert {f"{name}_rank" for name in ("cosine", "bm25", "fused", "spread")} <= set(explained[0].signals)
    assert not any(name.endswith("_rank") for name in plain[0].signals)
