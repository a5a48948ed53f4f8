"""Adaptive depth: a long question is searched in parts too, with and without a language model."""

from __future__ import annotations

import json

import pytest

from recallite import Memory
from recallite.errors import LanguageModelError
from recallite.recall.decomposition import split_question
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import PLAIN, scored

FACTS = {
    "db": ("We migrated the billing service from PostgreSQL to MySQL last week.", "/infrastructure/database"),
    "deploy": ("Deployments to production happen on Tuesdays after the stand-up.", "/infrastructure/process"),
    "cat": ("The office cat is called Biscuit and sleeps on the printer.", "/office"),
    "lunch": ("Lunch is served at noon in the canteen on the third floor.", "/office"),
    "budget": ("The marketing budget for next year is two million euros.", "/finance"),
    "hiring": ("We are hiring two data engineers in Lisbon this spring.", "/people"),
}
LONG = (
    "I am preparing the handover for my successor and I need to write everything down properly before Friday. "
    "Which database does the billing service use now? On which day of the week do we deploy to production? "
    "And what is the name of the cat that lives in our office?"
)
SHORT = "Which database does the billing service use?"


class Model:
    """A language model that says what it is told to, or fails, and remembers what it was asked."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[list[dict[str, str]]] = []
        self.during = lambda: None

    def complete(self, messages, *, schema=None, max_tokens=None):
        self.asked.append(messages)
        assert schema["required"] == ["queries", "scopes"]
        self.during()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer)


def filled(model: object = None, **options: object) -> Memory:
    memory = Memory(":memory:", language_model=model, **options)
    memory.ids = {
        memory.remember(text, scope=scope, created_at="2026-01-01T00:00:00Z").id: name
        for name, (text, scope) in FACTS.items()
    }
    return memory


def names(memory: Memory, hits: list) -> list[str]:
    return [memory.ids[hit.id] for hit in hits]


def ask(memory: Memory, query: str = LONG, **options: object):
    return memory.recall(query, **recall_arguments({"profile": "hermes", "as_of": "2026-01-02T00:00:00Z", **options}))


@pytest.fixture(scope="module")
def plain():
    with filled() as memory:
        yield memory


# ── splitting without a model ──────────────────────────────────────────────────────────────────────────────────────


def test_a_text_is_split_by_sentence_and_clause():
    assert split_question(LONG) == [
        "I am preparing the handover for my successor and I need to write everything down properly before Friday.",
        "Which database does the billing service use now?",
        "On which day of the week do we deploy to production?",
        "And what is the name of the cat that lives in our office?",
    ]
    assert split_question("Tell me where the red car was parked, and who drove the blue lorry home") == [
        "Tell me where the red car was parked",
        "and who drove the blue lorry home",
    ]
    assert split_question("我们用什么数据库？办公室的猫叫什么名字？") == [
        "我们用什么数据库？",
        "办公室的猫叫什么名字？",
    ]


def test_there_are_five_parts_at_most_and_they_hold_every_word():
    text = " ".join(f"The number{n} engine burns diesel{n} in harbour{n}." for n in range(12))
    parts = split_question(text)
    assert len(parts) == 5
    assert " ".join(parts) == text


@pytest.mark.parametrize(
    "text", ["", "word " * 80, "!!! ??? ...", "one. One! one?", "a. b. c.", "x" * 500, "...\n\n\n"]
)
def test_what_cannot_be_divided_has_no_parts_or_other_ones(text):
    parts = split_question(text)
    assert text not in parts
    assert all(any(character.isalnum() for character in part) for part in parts)


# ── searching ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_query_under_200_characters_runs_once_with_no_model():
    model = Model({"queries": ["x"], "scopes": []})
    with filled(model) as memory:
        assert len(SHORT) < 200
        assert ask(memory, SHORT).sub_queries == ()
        assert ask(memory, ("a short question. " * 12)[:199]).sub_queries == ()
    assert model.asked == []


def test_a_long_query_is_searched_by_its_parts_and_says_so(plain):
    hits = ask(plain)
    assert hits.sub_queries == tuple(split_question(LONG))
    assert len(set(hits.sub_queries) | {LONG}) == 5
    assert set(names(plain, hits)[:3]) == {"db", "deploy", "cat"}
    assert list(hits.stages) == ["split", "embed", "catch_up", "search", "fetch"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_score_is_the_mean_of_the_whole_and_the_best_part(plain):
    whole = {hit.id: hit for hit in ask(plain, long_query_chars=None, limit=6)}
    parts = [{hit.id: hit for hit in ask(plain, part, limit=6)} for part in split_question(LONG)]
    for hit in ask(plain, limit=6):
        best = max((part[hit.id] for part in parts), key=lambda one: one.score)
        assert hit.score == pytest.approx((whole[hit.id].score + best.score) / 2, abs=1e-5)
        mean = (max(whole[hit.id].signals["cosine"], 0) + max(best.signals["cosine"], 0)) / 2
        assert hit.score == pytest.approx(0.5 * mean + 0.3 * hit.signals["decay"] + 0.2 * 0.5, abs=1e-5)
        assert hit.confidence == pytest.approx(max(one[hit.id].confidence for one in (whole, *parts)), abs=1e-4)


def test_many_long_queries_as_one_by_one(plain):
    queries = [LONG, SHORT, LONG[::-1], "", LONG]
    at_once = plain.recall_many(queries, profile="hermes", as_of="2026-01-02T00:00:00Z")
    assert [scored(hits) for hits in at_once] == [scored(ask(plain, query)) for query in queries]
    assert [hits.sub_queries for hits in at_once] == [ask(plain, query).sub_queries for query in queries]
    assert [hits.query for hits in at_once] == queries


@pytest.mark.parametrize("profile", ["default", "reeve", "memweave"])
def test_other_profiles_search_once_unless_asked(plain, profile):
    assert plain.recall(LONG, profile=profile).sub_queries == ()
    hits = plain.recall(LONG, **recall_arguments({"profile": profile, "long_query_chars": 200, "min_score": 0}))
    assert len(hits.sub_queries) == 4
    assert set(names(plain, hits)[:3]) == {"db", "deploy", "cat"}


def test_a_query_with_its_own_vector_is_not_split(plain):
    vector = plain._engine.embedder.queries([LONG])[0].vector
    assert ask(plain, vector=vector).sub_queries == ()


@pytest.mark.parametrize("options", [{"mode": "keyword"}, {"mode": "vector"}])
def test_one_signal_alone_is_asked_once_unless_asked(plain, options):
    assert ask(plain, **options).sub_queries == ()
    assert len(ask(plain, **options, long_query_chars=100).sub_queries) == 4


def test_gaps_are_said_part_by_part(plain):
    lacking = "Which database does the billing service use now? " * 2 + "Who repaired the zeppelin hangar in Reykjavik?"
    gaps = ask(plain, lacking, long_query_chars=50, gap_confidence=0.5).evidence_gaps
    assert any("'zeppelin'" in gap and "Reykjavik" in gap for gap in gaps)
    assert not any("database" in gap for gap in gaps)


def test_token_budgets_groups_and_thresholds_hold_for_the_whole(plain):
    assert len(ask(plain, token_budget=20)) < 5
    assert ask(plain, min_confidence=1.0) == []
    assert len(ask(plain, limit=2)) == 2
    assert len(ask(plain, diversify_by="one_per_source")) == 5
    assert len(ask(plain, mmr_lambda=0.5, limit=3)) == 3


def test_explain_follows_a_record_through_the_parts(plain):
    hits = ask(plain, limit=3)
    for place, hit in enumerate(hits, 1):
        said = plain.review.explain(LONG, hit.id, profile="hermes", limit=3, as_of="2026-01-02T00:00:00Z")
        assert (said.stage, said.rank) == ("returned", place)
        assert said.score == pytest.approx(hit.score)
        assert said.confidence == pytest.approx(hit.confidence)
        assert said.signals == pytest.approx(hit.signals)
    cat = next(id for id, name in plain.ids.items() if name == "cat")
    said = plain.review.explain(LONG, cat, profile="hermes", as_of="2026-01-02T00:00:00Z")
    assert "answers 'And what is the name of the cat that lives in our office?' best" in said.reason
    lunch = next(id for id, name in plain.ids.items() if name == "lunch")
    said = plain.review.explain(LONG, lunch, profile="hermes", limit=1, as_of="2026-01-02T00:00:00Z")
    assert (said.returned, said.stage) == (False, "limit")
    assert len(ask(plain, purpose="explain")[0].signals) > len(ask(plain)[0].signals)


def test_parts_by_keyword_alone():
    with filled(settings=PLAIN) as memory:
        hits = ask(memory)
        assert len(hits.sub_queries) == 4
        assert {"db", "deploy", "cat"} <= set(names(memory, hits)[:4])


# ── with a model ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_gives_the_parts_and_no_transaction_is_open_while_it_is_asked(path):
    model = Model({"queries": ["billing service database", "name of the office cat"], "scopes": []})
    with Memory(path, language_model=model) as memory, Memory(path) as other:
        memory.remember_many({"text": text, "created_at": "2026-01-01T00:00:00Z"} for text, _ in FACTS.values())
        model.during = lambda: other.remember("written meanwhile")
        hits = ask(memory)
        assert hits.sub_queries == ("billing service database", "name of the office cat")
        assert (hits.scopes, hits.evidence_gaps) == ((), ())
        assert memory.count() == len(FACTS) + 1
        model.during = lambda: memory.store.vacuum()  # impossible in a transaction
        ask(memory)
    (system, user) = model.asked[0]
    assert (system["role"], user["role"]) == ("system", "user")
    assert json.loads(user["content"])["question"] == LONG


def test_a_model_chooses_among_the_scopes_that_the_caller_may_see():
    model = Model({"queries": ["billing service database"], "scopes": ["/infrastructure/database", "/office"]})
    with filled(model) as memory:
        hits = ask(memory)
        assert hits.scopes == ("/infrastructure/database", "/office")
        assert set(names(memory, hits)) == {"db", "cat", "lunch"}
        offered = json.loads(model.asked[0][1]["content"])["scopes"]
        assert offered == ["/finance", "/office", "/people", "/infrastructure/database", "/infrastructure/process"]
        model.answer = {"queries": ["database"], "scopes": ["/database"]}
        hits = memory.scoped("/infrastructure").recall(LONG, profile="hermes")
        assert json.loads(model.asked[1][1]["content"])["scopes"] == ["/database", "/process"]
        assert [(hit.scope, memory.ids[hit.id]) for hit in hits] == [("/database", "db")]
        ask(memory, scope=["/finance", "/office"])
        assert json.loads(model.asked[2][1]["content"])["scopes"] == ["/finance", "/office"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (LanguageModelError("timed out after 30 s"), "LanguageModelError: timed out after 30 s"),
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
        (RuntimeError("lone \ud800"), "RuntimeError: lone \ufffd"),
        (RuntimeError("x" * 10**6), "RuntimeError: " + "x" * 285 + "…"),
        ("no JSON", "LanguageModelError: the model's sub-queries are not the JSON that was asked for"),
        ("", "are not the JSON"),
        ({"queries": "database"}, "Expected `array`, got `str`"),
        ({"queries": ["a database"], "more": 1}, "unknown field `more`"),
        ({"queries": [], "scopes": []}, "no query of its own"),
        ({"queries": [LONG, LONG.upper(), " ", "..."], "scopes": []}, "no query of its own"),
        ({"queries": ["x" * 5000]}, "no query of its own"),
        ({"queries": ["a database"], "scopes": ["/finance"]}, "the scope '/finance', which it was not offered"),
        ({"queries": ["a database"], "scopes": ["../finance"]}, "which it was not offered"),
    ],
)
def test_a_failing_model_is_as_none_and_the_hits_say_so(answer, reason):
    with filled(Model(answer)) as memory, filled() as without:
        options = {"scope": ["/infrastructure", "/office"]}
        hits, wanted = ask(memory, **options), ask(without, **options)
        assert hits.sub_queries == wanted.sub_queries == tuple(split_question(LONG))
        assert [score for _, score in scored(hits)] == [score for _, score in scored(wanted)]
        assert names(memory, hits) == names(without, wanted)
        (gap,) = [gap for gap in hits.evidence_gaps if "without the language model" in gap]
        assert reason in gap
        assert not any("language model" in gap for gap in wanted.evidence_gaps)


def test_a_failing_model_is_told_where_the_question_has_no_parts_too():
    with filled(Model(LanguageModelError("down"))) as memory:
        hits = ask(memory, "database " * 30)
        assert hits.sub_queries == ()
        assert any("LanguageModelError: down" in gap for gap in hits.evidence_gaps)


def test_no_more_than_five_queries_of_a_model_and_each_once():
    queries = ["one apple", "One apple!", *[f"query {n}" for n in range(9)], LONG]
    with filled(Model({"queries": queries})) as memory:
        assert ask(memory).sub_queries == ("one apple", "query 0", "query 1", "query 2", "query 3")
