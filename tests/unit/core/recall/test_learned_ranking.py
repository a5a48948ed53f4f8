"""Learned ranking: where it is on, what it does to order and scores, and what is told about it."""

from __future__ import annotations

import numpy as np
import pytest

import recallite_kernels as kernels
from benchmarks.training.measuring import measure_queries
from recallite import Memory
from recallite.model.records import NewRecord
from recallite.model.settings import Profile, resolve_profile
from recallite.recall import plan
from recallite.recall.plan import FEATURES, RANKING_FILE, SIGNALS, contributions, load_ranking
from recallite.recall.request import build_request, recall_arguments
from recallite.system import plugins
from recallite_kernels.signals import UNSEEN_WEIGHT
from tests.unit.core.memory.support import unit

TEXTS = (
    "We migrated from PostgreSQL to MySQL", "The office plants are watered on Fridays", "Ada is on call for billing",
    "MySQL backups run at night", "The plants on the second floor died", "Billing moved to a new provider",
    "Our database is too slow in the mornings", "Who takes care of the plants?", "The migration took three weeks",
    "Dinner is at eight on Sunday", "We moved the office to the second floor", "Night shifts start in October",
)  # fmt: skip
QUESTIONS = ("Which database did we migrate to?", "Who waters the plants?", "When do the backups run?", "zebra")
BEFORE = "2999-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def filled():
    with Memory(":memory:") as memory:
        for place, text in enumerate(TEXTS):
            memory.remember(
                NewRecord(text, source=f"day {place // 4}", position=place % 4, importance=0.2 + place % 3 / 4)
            )
        yield memory


def test_the_order_is_that_of_the_forest_with_age_and_importance_beside_it(filled):
    request = build_request("/", "default", limit=len(TEXTS), as_of=BEFORE)
    ranking = load_ranking()
    for question, query in zip(QUESTIONS, measure_queries(filled._engine, QUESTIONS, request), strict=True):
        outputs = kernels.forest_scores(np.ascontiguousarray(query.features), ranking.forest)
        weights = query.signals[SIGNALS.score] / query.signals[SIGNALS.spread]
        weights[query.signals[SIGNALS.spread] <= 0] = query.signals[SIGNALS.decay][query.signals[SIGNALS.spread] <= 0]
        order = np.argsort(-(outputs + UNSEEN_WEIGHT * np.log(weights)), kind="stable")
        hits = filled.recall(question, limit=len(TEXTS), as_of=BEFORE)
        assert [hit.id for hit in hits] == [query.ids[place] for place in order]


@pytest.mark.parametrize("options", [{}, {"mmr_lambda": 0.7}, {"min_score": 0.2}, {"diversify_by": "one_per_source"}])
def test_the_same_scores_stand_at_the_same_places_as_without_it(filled, options):
    moved = False
    for question in QUESTIONS:
        hits = filled.recall(question, limit=len(TEXTS), **recall_arguments({"as_of": BEFORE, **options}))
        others = filled.recall(
            question, limit=len(TEXTS), **recall_arguments({"as_of": BEFORE, "learned_ranking": False, **options})
        )
        if not options:
            assert {hit.id for hit in hits} == {hit.id for hit in others}
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        if options.keys() <= {"min_score"}:
            assert [hit.score for hit in hits] == [hit.score for hit in others]
        moved = moved or [hit.id for hit in hits] != [hit.id for hit in others]
    assert moved or options


def test_candidates_below_the_best_keep_their_places(filled, monkeypatch):
    plain = filled.recall(QUESTIONS[0], limit=12, as_of=BEFORE, profile={"learned_ranking": False})
    monkeypatch.setattr(plan, "DEPTH", 3)
    monkeypatch.setattr(plan, "plan_of", plan.plan_of.__wrapped__)
    hits = filled.recall(QUESTIONS[0], limit=12, as_of=BEFORE)
    assert {hit.id for hit in hits[:3]} == {hit.id for hit in plain[:3]}
    assert [(hit.id, hit.score) for hit in hits[3:]] == [(hit.id, hit.score) for hit in plain[3:]]


def test_many_questions_are_ranked_as_each_alone(filled):
    for question, hits in zip(QUESTIONS, filled.recall_many(QUESTIONS, as_of=BEFORE), strict=True):
        assert [hit.id for hit in hits] == [hit.id for hit in filled.recall(question, as_of=BEFORE)]


def test_a_decomposed_question_is_ranked_by_its_parts(filled):
    question = "Which slow database did we migrate from? Who waters the plants in the office?"
    hits = filled.recall(question, limit=12, as_of=BEFORE, profile={"long_query_chars": 20})
    others = filled.recall(question, limit=12, as_of=BEFORE, profile={"long_query_chars": 20, "learned_ranking": False})
    assert len(hits.sub_queries) > 1
    assert {hit.id for hit in hits} == {hit.id for hit in others}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.parametrize("name", ["default", *plugins.names("profiles")])
def test_of_the_profiles_the_default_alone_uses_it(name):
    assert resolve_profile(name).ranks_by_forest == (name == "default")


@pytest.mark.parametrize(
    "changes",
    [
        {"vector_weight": 0.7}, {"keyword_weight": 0.5}, {"fusion": "rrf"}, {"neighbor_boost": 0.0},
        {"rerank_weight": 0.0},
    ],
)  # fmt: skip
def test_weights_of_ones_own_turn_it_off_unless_it_is_asked_for(changes):
    assert not Profile(**changes).ranks_by_forest
    assert not resolve_profile("default").override(changes).ranks_by_forest
    assert Profile(**changes, learned_ranking=True).ranks_by_forest


def test_other_options_leave_it_on():
    assert Profile(half_life_days=7, mmr_lambda=0.5, limit=3, min_score=0.2, neighbor_boost=1.0).ranks_by_forest
    assert not Profile(learned_ranking=False).ranks_by_forest


@pytest.mark.parametrize("mode", ["vector", "keyword"])
def test_one_signal_alone_is_not_ranked_by_it(filled, mode):
    for question in QUESTIONS:
        hits = filled.recall(question, mode=mode, as_of=BEFORE)
        others = filled.recall(question, mode=mode, as_of=BEFORE, profile={"learned_ranking": False})
        assert [hit.id for hit in hits] == [hit.id for hit in others]


def test_vectors_of_an_embedder_that_it_was_not_trained_with_are_ranked_by_the_formula(memory):
    memory.remember_many({"text": f"apple number{n}", "vector": unit(n)} for n in range(9))
    hits = memory.recall("apple", vector=unit(3), profile={"learned_ranking": True})
    others = memory.recall("apple", vector=unit(3), profile={"learned_ranking": False})
    assert [hit.id for hit in hits] == [hit.id for hit in others]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in others])


def test_an_explanation_tells_the_rank_without_it_and_what_it_went_by(filled):
    question, moved = QUESTIONS[0], 0
    hits = filled.recall(question, limit=12, as_of=BEFORE)
    plain = [hit.id for hit in filled.recall(question, limit=12, as_of=BEFORE, profile={"learned_ranking": False})]
    for place, hit in enumerate(hits, 1):
        told = filled.review.explain(question, hit.id, limit=12, as_of=BEFORE)
        assert told.rank == place
        assert told.score == pytest.approx(hit.score)
        assert told.ranks["formula"] == plain.index(hit.id) + 1
        assert told.learned.keys() == set(FEATURES.values())
        moved += told.ranks["formula"] != place
    assert moved
    told = filled.review.explain(question, hits[0].id, as_of=BEFORE, profile={"learned_ranking": False})
    assert told.learned == {}
    assert "formula" not in told.ranks


def test_contributions_add_up_to_the_output(filled):
    ranking = load_ranking()
    (query,) = measure_queries(filled._engine, QUESTIONS[:1], build_request("/", "default"))
    outputs = kernels.forest_scores(np.ascontiguousarray(query.features), ranking.forest)
    added = contributions(ranking, query.features)
    np.testing.assert_allclose(added.sum(axis=0), outputs - outputs.mean(), atol=1e-6)


def test_the_ranking_that_ships_has_the_features_of_this_version_and_never_lowers_by_more_of_a_signal():
    assert RANKING_FILE.stat().st_size <= 64 * 1024
    ranking = load_ranking()
    assert ranking is not None
    generator = np.random.default_rng(0)
    features = generator.normal(0, 0.5, (len(FEATURES), 500))
    before = kernels.forest_scores(features, ranking.forest)
    for place in range(len(FEATURES)):
        raised = features.copy()
        raised[place] += generator.exponential(0.3, 500)
        after = kernels.forest_scores(raised, ranking.forest)
        assert (after >= before - 1e-9).all()


TAGGED = {
    "urgent": "Call the plumber before noon", "pancakes": "Mix flour, eggs and milk, rest for an hour",
    "folder": "Bring the blue one to Ms Okafor", "passport": "Renewed until 2028", "dentist": "Room 4, ask for Lena",
    "garage": "The code is 4417", "groceries": "Oat milk, rye bread, plums", "grandma": "She likes orchids",
    "insurance": "Paid in full in March", "flight": "Seat 14A, leaves at 9:40", "sneakers": "Blue, size 43",
    "zendesk": "Ticket 8812 is open",
}  # fmt: skip


def test_what_alone_has_all_words_of_the_query_stays_first():
    with Memory(":memory:") as memory:
        memory.remember_many([{"text": text, "tags": [tag]} for tag, text in TAGGED.items()])
        for question in ("{}", "Where is the {}?"):
            found = memory.recall_many([question.format(tag) for tag in TAGGED])
            assert [hits[0].text for hits in found] == [*TAGGED.values()]


def test_a_time_that_the_query_names_comes_before_what_resembles_the_query():
    with Memory(":memory:") as memory:
        for who, text, moment in (
            ("Anna", "I think we should hire two more engineers", "2026-05-04"),
            ("Anna", "Let's postpone the launch by a month", "2026-07-09"),
            ("Anna", "I'm leaving for Crete on Sunday", "2026-05-20"),
            ("Bob", "We should cut the marketing budget", "2026-05-11"),
        ):
            memory.remember(text, context=who, valid_from=moment)
        found = memory.recall("What did Anna say in May?", limit=2)
        assert {hit.text for hit in found} == {
            "I think we should hire two more engineers",
            "I'm leaving for Crete on Sunday",
        }
        assert memory.recall("What did Anna say on 20 May 2026?", limit=1)[0].text == "I'm leaving for Crete on Sunday"
