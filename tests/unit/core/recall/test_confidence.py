"""Confidence: what raises and lowers it, in every mode, in batches and for explain, and what it was fitted on."""

from __future__ import annotations

import json

import numpy as np
import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.model.settings import resolve_profile
from recallite.recall.confidence import FILE, SIGNAL_SETS, load_calibration, passage_weights
from recallite.recall.request import ANSWER_CONFIDENCE, recall_arguments
from recallite_kernels import EVIDENCE
from tests.unit.core.memory.support import PLAIN, unit

NOTES = [
    "We migrated from PostgreSQL to MySQL last week",
    "Ada is on call for the billing service",
    "The office plants are watered on Fridays",
    "Deployments are frozen in the last week of December",
    "Our staging cluster runs in Frankfurt",
]
ASKED = {"Which database did we migrate to?": 0, "Who is on call for billing?": 1, "When are the plants watered?": 2}
UNANSWERABLE = ["What is a ticket to Lisbon?", "Who painted the ceiling?", "How tall is the tower?"]
ASIDE = ("length", "records", "words")
RISING = ("cosine", "near", "coverage", "bm25", "similarity", "speaker", "content")


@pytest.fixture(scope="module")
def notes():
    with Memory(":memory:") as memory:
        memory.ids = memory.remember_many(NOTES)
        yield memory


def test_the_weights_have_the_sign_of_their_sense():
    """More of a signal never makes an answer less likely, and more of it in another record never more likely."""
    calibration = load_calibration()
    every = [calibration.words, *(weights for own in calibration.embedders.values() for weights in own.values())]
    for weights in every:
        for name in EVIDENCE._fields:
            assert name in ASIDE or weights.get(name, 0.0) * (1 if name in RISING else -1) >= 0
    made = json.loads(FILE.read_bytes())
    assert set(made["data"]) >= {"emorynlp/FriendsQA", "Yale-LILY/QMSum"}
    for name, figures in made["figures"].items():
        assert name.split(", ")[-1] in SIGNAL_SETS
        assert figures["calibration_error"] <= 0.05


def test_right_answers_pass_the_threshold_and_questions_without_one_do_not(notes):
    least = resolve_profile("default").gap_confidence
    for question, place in ASKED.items():
        hits = notes.recall(question)
        assert hits[0].id == notes.ids[place]
        assert hits[0].confidence >= least
        assert hits.evidence_gaps == ()
        assert hits[0].id in [hit.id for hit in notes.recall(question, profile={"min_confidence": least})]
    for question in UNANSWERABLE:
        best = max(hit.confidence for hit in notes.recall(question))
        assert best < min(notes.recall(right)[0].confidence for right in ASKED)


def test_relevant_leaves_what_answers_or_nothing(notes):
    for question, place in ASKED.items():
        every, found = notes.recall(question), notes.recall(question, relevant=True)
        best = max(hit.confidence for hit in every)
        assert [hit.id for hit in found] == [
            hit.id for hit in every if hit.confidence >= max(ANSWER_CONFIDENCE, best / 2)
        ]
        assert found[0].id == notes.ids[place]
        assert len(found) < len(every)
    nothing = notes.recall("How much is a ticket to Lisbon?", relevant=True)
    assert (nothing, bool(nothing.evidence_gaps)) == ([], True)
    many = notes.recall_many([*ASKED, *UNANSWERABLE], relevant=True)
    alone = [notes.recall(question, relevant=True) for question in (*ASKED, *UNANSWERABLE)]
    assert [[hit.id for hit in hits] for hits in many] == [[hit.id for hit in hits] for hits in alone]
    assert notes.recall(UNANSWERABLE[0], relevant=True, profile={"min_confidence": 0.9}) == []
    with pytest.raises(InvalidInput, match="relevant"):
        notes.recall("plants", relevant="yes")


def test_explain_names_the_cut(notes):
    question, place = next(iter(ASKED.items()))
    found = notes.recall(question, relevant=True)
    other = next(id for id in notes.ids if id not in [hit.id for hit in found])
    assert notes.review.explain(question, other, relevant=True).stage == "threshold"
    assert notes.review.explain(question, notes.ids[place], relevant=True).stage == "returned"


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_every_mode_gives_chances(notes, mode):
    for question, place in ASKED.items():
        hits = notes.recall(question, mode=mode)
        assert all(0 <= hit.confidence <= 1 for hit in hits)
        if mode != "keyword" or hits:
            assert hits[0].confidence == max(hit.confidence for hit in hits)
            assert hits[0].id == notes.ids[place]


def test_a_store_without_an_embedder_names_no_gap_for_right_answers():
    with Memory(":memory:", settings=PLAIN) as memory:
        ids = memory.remember_many(NOTES)
        for question, word in (("Who is on call for billing?", 1), ("When are the plants watered?", 2)):
            hits = memory.recall(question)
            assert (hits[0].id, hits.evidence_gaps) == (ids[word], ())
        assert memory.recall("Who painted the ceiling?").evidence_gaps


def test_a_nearer_vector_is_more_certain_and_makes_the_others_less():
    query, away = unit(1), unit(2)
    away -= (away @ query) * query
    away /= np.linalg.norm(away)

    def near(cosine):
        return (cosine * query + np.sqrt(1 - cosine**2) * away).astype(np.float32)

    last, least_other = 0.0, 1.0
    for cosine in (0.2, 0.4, 0.6, 0.8):
        with Memory(":memory:", settings=PLAIN) as memory:
            memory.remember(NewRecord("alpha", vector=near(cosine)))
            memory.remember(NewRecord("omega", vector=near(0.1)))
            found = {hit.text: hit.confidence for hit in memory.recall("", vector=query, mode="vector")}
        assert found["alpha"] >= last
        assert found["omega"] <= least_other
        last, least_other = found["alpha"], found["omega"]
    assert last > least_other


def test_stores_of_one_record_and_of_none(memory):
    assert memory.recall("anything").evidence_gaps == ("nothing in this scope matches the query",)
    memory.remember(NewRecord("apple pie", vector=unit(1)))
    (right,) = memory.recall("apple pie", vector=unit(1))
    (wrong,) = memory.recall("bridge toll", vector=-unit(1))
    assert 0 < wrong.confidence < right.confidence < 1


def test_a_batch_gives_what_each_query_gives_and_explain_what_its_hit_has(notes):
    asked = [*ASKED, *UNANSWERABLE, "the of", "mysql"]
    for options in ({}, {"mode": "keyword"}, {"profile": "reeve"}, {"profile": "hermes"}, {"profile": "memweave"}):
        moment = {"as_of": "2999-01-01T00:00:00Z"}
        for question, together in zip(
            asked, notes.recall_many(asked, **recall_arguments({**options, **moment})), strict=True
        ):
            alone = notes.recall(question, **recall_arguments({**options, **moment}))
            assert [hit.confidence for hit in together] == pytest.approx([hit.confidence for hit in alone], abs=1e-6)
            for hit in alone[:2]:
                said = notes.review.explain(question, hit.id, **recall_arguments({**options, **moment}))
                assert said.confidence == pytest.approx(hit.confidence, abs=1e-6)


def test_profiles_that_rank_otherwise_mean_the_same(notes):
    """They have no token codes, and other ranks: confidence differs by that alone."""
    for question in ASKED:
        plain = notes.recall(question, profile={"rerank_weight": 0.0})[0].confidence
        for profile in ("reeve", "hermes", "memweave"):
            assert notes.recall(question, profile=profile)[0].confidence == pytest.approx(plain, abs=0.1)


def test_a_match_of_stop_words_alone_says_nothing():
    with Memory(":memory:", settings=PLAIN) as memory:
        memory.remember("this is what they were then")
        memory.remember("zebra crossing")
        stop, said = memory.recall("what were they"), memory.recall("zebra crossing")
        assert stop[0].confidence < said[0].confidence
        assert stop.evidence_gaps


def test_another_embedder_takes_the_weights_of_the_first():
    calibration = load_calibration()
    first = next(iter(calibration.embedders))
    for signals in SIGNAL_SETS:
        assert calibration.weights("unheard-of", signals) is calibration.weights(first, signals)


@pytest.mark.parametrize("signals", SIGNAL_SETS)
def test_a_passage_is_surer_among_many_than_a_turn_as_near_and_less_so_among_few(signals):
    weights = passage_weights("recallite-minilm", signals)
    rising = [weights.confidence(sure, 1000) for sure in (0.0, 0.05, 0.2, 1.0)]
    assert rising == sorted(set(rising))
    assert weights.confidence(ANSWER_CONFIDENCE, 1000) > ANSWER_CONFIDENCE > weights.confidence(ANSWER_CONFIDENCE, 10)
    assert passage_weights("another embedder", signals) is (weights if signals == "words" else None)


def test_a_passage_of_a_document_has_the_confidence_of_passages(monkeypatch):
    with Memory(":memory:") as memory:
        memory.knowledge.ingest(NOTES[1].encode(), name="note.md")
        (alone,) = memory.knowledge.search(NOTES[1])
        memory.remember_many([*NOTES[2:], NOTES[1]])
        passage, turn = (memory.recall(NOTES[1], kinds=[kind], limit=1)[0] for kind in ("chunk", "memory"))
        assert (passage.text, turn.text) == (NOTES[1], NOTES[1])
        weights = passage_weights("recallite-minilm", "tokens")
        assert passage.confidence == pytest.approx(weights.confidence(turn.confidence, memory.count()), abs=0.1)
        assert passage.confidence != alone.confidence
        told = memory.review.explain(NOTES[1], passage.id, kinds=["chunk"])
        assert told.confidence == pytest.approx(passage.confidence)
        several = "Who repaired the roof of the house last summer? And on which day is the billing run?"

        def confidence() -> float:
            hits = memory.recall(several, kinds=["chunk"], profile={"long_query_chars": 20})
            assert hits.sub_queries
            return hits[0].confidence

        shown = confidence()
        monkeypatch.setattr("recallite.recall.judge.passage_weights", lambda *_: None)
        assert shown == pytest.approx(weights.confidence(confidence(), memory.count())) != confidence()
