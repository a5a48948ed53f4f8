"""The profiles of other memory systems: their formulas, defaults and names, on given vectors and on the real model."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput
from recallite.model.filters import Filter
from recallite.model.records import NewRecord
from recallite.model.settings import Profile, WritePolicy, resolve_profile
from recallite.recall.request import recall_arguments
from recallite.system import plugins
from tests.unit.core.memory.support import PLAIN, WordEmbedder, scored

NOW = datetime(2026, 7, 1, tzinfo=UTC)
DIMENSION = 16
QUERY = np.eye(DIMENSION, dtype=np.float32)[0]


def at_cosine(cosine: float, axis: int = 1) -> np.ndarray:
    """A unit vector whose cosine with QUERY is `cosine`, to float32."""
    vector = np.zeros(DIMENSION)
    vector[0], vector[axis] = cosine, math.sqrt(1 - cosine * cosine)
    return vector.astype(np.float32)


def add(memory: Memory, text: str, *, cosine: float | None = None, days: float = 0.0, importance: float = 0.5) -> str:
    """A memory of that age at NOW."""
    vector = None if cosine is None else at_cosine(cosine)
    created = NOW - timedelta(days=days)
    return memory.remember(NewRecord(text, vector=vector, created_at=created, importance=importance)).id


def ask(memory: Memory, profile: str, query: str = "zzz", vector: np.ndarray | None = QUERY, **options: object):
    return memory.recall(query, vector=vector, **recall_arguments({"profile": profile, "as_of": NOW, **options}))


# ── Reeve ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("days", "form", "weight"),
    [
        (1, "half_life", 0.9771599684342459),  # "~0.98"
        (30, "half_life", 0.5),
        (180, "half_life", 0.5),  # the floor
        (1, "exp", 0.9672161004820059),  # the printed formula
        (30, "exp", 0.5),  # e^-1 = 0.368, under the floor
    ],
)
def test_reeve_decay_is_the_text_and_exp_the_printed_formula(memory, days, form, weight):
    add(memory, "apple", cosine=0.9, days=days)
    (hit,) = ask(memory, "reeve", decay=form)
    assert hit.signals["decay"] == pytest.approx(weight, abs=1e-9)
    (hit,) = ask(memory, "reeve", decay="exp", decay_floor=0.0, half_life_days=30)
    assert hit.signals["decay"] == pytest.approx(math.exp(-days / 30), abs=1e-9)


def test_reeve_worked_example_the_recent_memory_outranks_the_relevant_one(memory):
    """0.95 x 0.5 = 0.475 against 0.6 x 0.98 = 0.588."""
    old = add(memory, "old and highly relevant", cosine=0.95, days=180)
    new = add(memory, "recent and somewhat relevant", cosine=0.6, days=-30 * math.log2(0.98))
    hits = ask(memory, "reeve", fusion="weighted", keyword_weight=0)
    assert [hit.id for hit in hits] == [new, old]
    assert [hit.signals["decay"] for hit in hits] == pytest.approx([0.98, 0.5], abs=1e-9)
    assert [hit.score for hit in hits] == pytest.approx([0.588, 0.475], abs=2e-5)


def test_reeve_score_is_rrf_over_both_signals_from_04_to_1_times_decay(memory):
    """Ranks by hand: vector a b c d, keyword d b a; k is 60."""
    texts = {"a": "pear", "b": "pear pear", "c": "plum", "d": "pear pear pear pear"}
    ages = {"a": 3, "b": 40, "c": 0, "d": 12}
    cosines = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}
    ids = {add(memory, text, cosine=cosines[name], days=ages[name]): name for name, text in texts.items()}
    hits = ask(memory, "reeve", "pear")
    by_words = sorted((hit for hit in hits if hit.signals["bm25"] > 0), key=lambda hit: -hit.signals["bm25"])
    assert [ids[hit.id] for hit in by_words] == ["d", "b", "a"]
    rrf = {"a": 1 / 61 + 1 / 63, "b": 1 / 62 + 1 / 62, "c": 1 / 63, "d": 1 / 64 + 1 / 61}
    low, high = min(rrf.values()), max(rrf.values())
    wanted = {
        name: (0.4 + 0.6 * (value - low) / (high - low)) * max(0.5, 0.5 ** (ages[name] / 30))
        for name, value in rrf.items()
    }
    assert {ids[hit.id]: hit.score for hit in hits} == pytest.approx(wanted, abs=1e-9)
    assert [ids[hit.id] for hit in hits] == sorted(wanted, key=lambda name: -wanted[name])


def test_reeve_an_old_answer_stands_before_fresh_notes_without_evidence(memory):
    """The page: a memory that is semantically close but old can still outrank a recent but weakly related one."""
    answer = add(memory, "old", cosine=0.6, days=200)
    weak = [add(memory, f"cat {n}", cosine=0.29 - n / 100) for n in range(20)]
    for n in range(30):
        add(memory, f"unrelated {n}", cosine=-n / 100)
    hits = ask(memory, "reeve", limit=60)
    assert hits[0].id == answer
    assert [hit.score for hit in hits] == pytest.approx([0.5] + [0.4] * 20, abs=1e-9)
    assert {hit.id for hit in hits[1:]} == set(weak)  # what carries no evidence is no hit
    word = add(memory, "zzz", cosine=-0.5)  # a word in common is evidence too
    assert [(hit.id, hit.score) for hit in ask(memory, "reeve", limit=2)] == [(word, 1.0), (answer, 0.5)]


def test_plain_rank_fusion_is_not_stretched_by_what_carries_no_evidence(memory):
    cosines = [0.6, 0.5, 0.4]
    for n, cosine in enumerate(cosines):
        add(memory, f"n{n}", cosine=cosine)
    before = [hit.score for hit in ask(memory, "default", fusion="rrf", neighbor_boost=0)]
    for n in range(20):
        add(memory, f"none {n}", cosine=-0.1)
    after = ask(memory, "default", fusion="rrf", neighbor_boost=0)
    assert [hit.score for hit in after] == pytest.approx(before, abs=1e-12)


def test_reeve_an_old_answer_stands_before_fresh_notes_about_cats(embedded):
    """With the real model, whose cosines of what has nothing in common are not 0: 0.17 at most here."""
    now = datetime.now(UTC)
    answers = {
        "What database do we use?": "We migrated from PostgreSQL to MySQL last week",
        "Where does Anna work?": "Anna is employed at the harbour authority of Gothenburg",
        "What should I cook for Tom?": "Tom is allergic to peanuts",
    }
    embedded.remember_many([{"text": text, "created_at": now - timedelta(days=200)} for text in answers.values()])
    verbs, places = ("slept", "played", "ate", "purred", "hid"), ("on the sofa", "in the garden", "under the table")
    embedded.remember_many(
        [{"text": f"The cat {verb} {place} {n}"} for verb in verbs for place in places for n in (1, 2)]
    )
    for query, answer in answers.items():
        assert embedded.recall(query, profile="reeve")[0].text == answer


# ── Hermes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_hermes_score_is_the_weighted_sum(memory):
    table = [(0.9, 0, 0.5), (0.3, 30, 1.0), (0.75, 365, 0.0), (-0.4, 7, 0.9), (0.0, 60, 0.25)]
    ids = [
        add(memory, f"n{n}", cosine=cosine, days=days, importance=importance)
        for n, (cosine, days, importance) in enumerate(table)
    ]
    wanted = [0.5 * max(c, 0) + 0.3 * 0.5 ** (days / 30) + 0.2 * importance for c, days, importance in table]
    hits = ask(memory, "hermes")
    assert {hit.id: hit.score for hit in hits} == pytest.approx(dict(zip(ids, wanted, strict=True)), abs=2e-5)
    for hit in hits:  # the float64 stages of what float32 gave
        parts = 0.5 * max(hit.signals["cosine"], 0), 0.3 * hit.signals["decay"], 0.2 * float(np.float32(hit.importance))
        assert hit.score == pytest.approx(sum(parts), abs=1e-9)


@pytest.mark.parametrize(("gap", "first"), [(0.2570, "decision"), (0.2568, "trivial")])
def test_hermes_old_decision_outranks_a_trivial_note_when_its_similarity_is_greater_by_0257(memory, gap, first):
    """0.3 * (0.5^(1/30) - 0.5^6) - 0.2 * (0.9 - 0.1) = 0.5 * 0.25692."""
    ids = {
        add(memory, "critical decision", cosine=0.4 + gap, days=180, importance=0.9): "decision",
        add(memory, "trivial note", cosine=0.4, days=1, importance=0.1): "trivial",
    }
    assert ids[ask(memory, "hermes")[0].id] == first


def test_hermes_gives_five_hits_and_normalises_its_weights(memory):
    for n in range(8):
        add(memory, f"n{n}", cosine=0.5, days=n)
    assert len(ask(memory, "hermes")) == 5
    assert len(ask(memory, "hermes", limit=7)) == 7
    (hit,) = ask(memory, "hermes", limit=1, semantic_weight=2, recency_weight=1, importance_weight=1, half_life_days=7)
    assert hit.score == pytest.approx((2 * 0.5 + 1 + 0.5) / 4, abs=2e-5)


def test_hermes_scores_what_only_a_keyword_found_by_its_cosine(memory):
    for n in range(30):
        add(memory, f"number{n}", cosine=0.9 - n / 100, days=900)
    far = add(memory, "apple", cosine=0.2, importance=1.0)
    # Nor does its place by cosine hide it: 0.6 is more than any other's sum.
    assert ask(memory, "hermes", "zzz", candidates=5, limit=1)[0].id == far
    (hit,) = ask(memory, "hermes", "apple", candidates=5, limit=1)
    assert (hit.id, hit.match_reasons) == (far, ("semantic", "recency", "importance"))
    assert hit.score == pytest.approx(0.5 * 0.2 + 0.3 + 0.2, abs=2e-5)


@pytest.mark.parametrize("why", ["no embedder", "failing"])
def test_hermes_without_vectors_lets_bm25_stand_in_for_similarity_and_says_so(why):
    embedder = WordEmbedder()
    with Memory(":memory:", **({"settings": PLAIN} if why == "no embedder" else {"embedder": embedder})) as memory:
        best, half = add(memory, "apple apple"), add(memory, "apple among many other words here", days=30)
        embedder.fail = "raises"
        hits = memory.recall("apple", profile="hermes", as_of=NOW)
        by_id = {hit.id: hit for hit in hits}
        relevance = by_id[half].signals["bm25"] / by_id[best].signals["bm25"]
        assert by_id[best].score == pytest.approx(0.5 + 0.3 + 0.1, abs=1e-9)
        assert by_id[half].score == pytest.approx(0.5 * relevance + 0.15 + 0.1, abs=2e-5)
        assert by_id[best].match_reasons == ("keyword", "recency")
        if why == "failing":
            assert any("meaning was not searched" in gap for gap in hits.evidence_gaps)


def test_hermes_lets_bm25_stand_in_for_a_record_that_waits_for_its_vector(path):
    """Beside records that have one."""
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        memory.remember("plum and pear", created_at=NOW)
        embedder.fail = "raises"
        waiting = memory.remember("apple", created_at=NOW).id
        embedder.fail = None
        hit = memory.recall("apple", profile="hermes", as_of=NOW)[0]
        assert (hit.id, hit.match_reasons) == (waiting, ("keyword", "recency"))
        assert hit.score == pytest.approx(0.9, abs=1e-9)


@pytest.mark.parametrize(
    "weights",
    [
        {"semantic_weight": -0.1},
        {"recency_weight": math.nan},
        {"importance_weight": math.inf},
        {"semantic_weight": 0, "recency_weight": 0, "importance_weight": 0},
        {"semantic_weight": "0.5"},
    ],
)
def test_hermes_weights_are_finite_and_not_negative(memory, weights):
    with pytest.raises(InvalidInput, match="weight"):
        ask(memory, "hermes", **weights)


# ── memweave ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_memweave_defaults():
    own = resolve_profile("memweave")
    assert (own.vector_weight, own.keyword_weight, own.min_score, own.limit) == (0.7, 0.3, 0.35, 6)
    assert (own.candidate_multiplier, own.half_life_days, own.decay, own.mmr_lambda) == (4, 0, "half_life", None)
    assert (own.neighbor_boost, own.importance_weight, own.rerank_weight) == (0, 0, 0)


def test_memweave_score_is_07_vector_and_03_keyword(memory):
    near = add(memory, "apple", cosine=0.6, days=400, importance=1.0)
    far = add(memory, "pear", cosine=0.8)
    add(memory, "plum", cosine=0.4)  # 0.28: under the threshold
    hits = ask(memory, "memweave", "apple")
    assert scored(hits, 4) == [(near, 0.72), (far, 0.56)]


def test_memweave_thresholds_before_decay(memory):
    old = add(memory, "apple", cosine=0.6, days=60)
    (hit,) = ask(memory, "memweave", half_life_days=30)
    assert hit.id == old
    assert hit.score == pytest.approx(0.42 * 0.25, abs=2e-5)
    assert ask(memory, "memweave", half_life_days=30, min_score_of="score") == []
    assert ask(memory, "memweave", min_score=0.43) == []
    said = memory.review.explain("zzz", old, vector=QUERY, as_of=NOW, profile={"name": "memweave", "min_score": 0.43})
    assert said.stage == "threshold"


def test_memweave_gives_six_hits_of_24_candidates(memory):
    for n in range(40):
        add(memory, f"n{n}", cosine=0.9 - n / 100)
    assert len(ask(memory, "memweave")) == 6
    last = memory.list(order="newest", limit=1)[0]
    said = memory.review.explain("zzz", last.id, vector=QUERY, profile="memweave", as_of=NOW)
    assert "24 best" in said.reason


def test_memweave_keyword_only_hits_can_pass_the_threshold(memory):
    add(memory, "apple pie")
    assert [hit.match_reasons for hit in memory.recall("apple", profile="memweave")] == [("keyword",)]


def test_memweave_mmr_prefers_what_is_unlike(memory):
    texts = ["red apple pie recipe", "red apple pie recipe, page two", "blue boat on the lake"]
    ids = [add(memory, text, cosine=0.9 - n / 50) for n, text in enumerate(texts)]
    assert [hit.id for hit in ask(memory, "memweave", limit=2)] == ids[:2]
    assert [hit.id for hit in ask(memory, "memweave", limit=2, mmr_lambda=0.3)] == [ids[0], ids[2]]


# ── all of them ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("profile", ["default", *plugins.names("profiles")])
def test_decay_never_compounds(memory, profile):
    add(memory, "apple", cosine=0.9, days=45)
    add(memory, "apple pie", cosine=0.8, days=10, importance=0.9)
    first = [(hit.id, hit.score, hit.signals) for hit in ask(memory, profile, "apple", half_life_days=30)]
    for _ in range(100):
        ask(memory, profile, "apple", half_life_days=30)
    memory.update(first[0][0], metadata={"x": 1})  # access counts are written with it
    assert memory.get(first[0][0]).access_count >= 101
    again = [(hit.id, hit.score, hit.signals) for hit in ask(memory, profile, "apple", half_life_days=30)]
    assert again == first


@pytest.mark.parametrize("profile", ["default", *plugins.names("profiles")])
def test_explain_and_ranks_are_right_for_every_profile(embedded, profile):
    texts = ["We moved to MySQL last week", "The cat sleeps", "MySQL is the database in production", "Lunch was good"]
    ids = embedded.remember_many({"text": text, "created_at": NOW - timedelta(days=n)} for n, text in enumerate(texts))
    query = "Which database do we use, MySQL?"
    hits = embedded.recall(
        query, **recall_arguments({"profile": profile, "as_of": NOW, "min_score": 0, "purpose": "explain"})
    )
    assert {hit.id for hit in hits[:2]} == {ids[0], ids[2]}
    for place, hit in enumerate(hits, 1):
        said = embedded.review.explain(
            query, hit.id, **recall_arguments({"profile": profile, "as_of": NOW, "min_score": 0})
        )
        assert (said.returned, said.rank) == (True, place)
        assert said.score == pytest.approx(hit.score, abs=1e-9)
        assert said.confidence == pytest.approx(hit.confidence)
        ranks = {name.removesuffix("_rank"): value for name, value in hit.signals.items() if name.endswith("_rank")}
        assert ranks["cosine"] == (said.ranks["cosine"] if hit.signals["cosine"] > 0 else 0)


@pytest.mark.parametrize("profile", ["reeve", "hermes", "memweave"])
def test_profiles_rank_by_meaning_on_the_real_model(embedded, profile):
    told = embedded.remember("We migrated from PostgreSQL to MySQL last week", importance=0.8)
    embedded.remember_many(["The cat sleeps all day", "Lunch is at noon", "The office moved to the third floor"])
    hit = embedded.recall("What database are we using?", **recall_arguments({"profile": profile, "min_score": 0}))[0]
    assert hit.id == told.id
    assert "semantic" in hit.match_reasons


def test_a_signal_of_weight_0_is_never_named(memory):
    add(memory, "apple", cosine=0.9, importance=0.9)
    assert ask(memory, "hermes", "apple")[0].match_reasons == ("semantic", "recency", "importance")
    assert ask(memory, "hermes", "apple", recency_weight=0)[0].match_reasons == ("semantic", "importance")
    assert ask(memory, "hermes", "apple", importance_weight=0)[0].match_reasons == ("semantic", "recency")
    assert ask(memory, "hermes", "apple", semantic_weight=0)[0].match_reasons == ("recency", "importance")
    assert ask(memory, "reeve", "apple")[0].match_reasons == ("semantic", "keyword", "recency")
    assert ask(memory, "memweave", "apple")[0].match_reasons == ("semantic", "keyword")
    assert ask(memory, "memweave", "apple", keyword_weight=0)[0].match_reasons == ("semantic",)


def test_recency_is_named_above_one_half_only(memory):
    add(memory, "apple", cosine=0.9, days=30.01)
    assert ask(memory, "hermes")[0].match_reasons == ("semantic",)


def test_a_similarity_that_makes_up_little_of_the_sum_is_not_named(memory):
    add(memory, "apple", cosine=0.05)
    assert ask(memory, "hermes")[0].match_reasons == ("recency",)


@pytest.mark.parametrize("foreign", ["halfLife", "floor", "recency_half_life_days", "decay_half_life_days"])
def test_recall_has_one_name_for_an_option(memory, foreign):
    with pytest.raises(InvalidInput, match=f"recall has no option '{foreign}': .*use one of limit, .*half_life_days"):
        ask(memory, "reeve", **{foreign: 0.5})


@pytest.mark.parametrize("profile", ["reeve", "memweave"])
def test_weights_of_the_sum_are_refused_where_the_score_is_a_product(memory, profile):
    with pytest.raises(InvalidInput, match="semantic_weight is a weight of a sum"):
        ask(memory, profile, semantic_weight=0.4)


def test_choices_of_other_systems_are_not_those_of_the_default_profile(memory):
    with pytest.raises(InvalidInput, match="'semantic_weight': profiles of other systems have it: give profile="):
        ask(memory, "default", semantic_weight=0.4)
    assert len(Profile.__struct_fields__) == 26


def test_the_settings_profile_says_how_recall_and_writing_go():
    changed = resolve_profile("hermes").override({"limit": 2, "half_life_days": 9})
    for profile in ("hermes", changed):
        with Memory(":memory:", settings=Settings(embedder="none", profile=profile)) as memory:
            memory.remember_many(["apple", "apple pie", "apple cake"])
            assert len(memory.recall("apple")) == (3 if profile == "hermes" else 2)
    hermes = WritePolicy(supersede_confidence=None, recognise_recalled=True)
    assert Settings(profile="hermes").write_policy == Settings(profile=changed).write_policy == hermes
    reeve = WritePolicy(merge_strategy="latest", topic_cosine=0.92)
    assert Settings(profile="reeve").write_policy == reeve
    assert Settings().write_policy == Settings(profile="memweave").write_policy == WritePolicy()
    assert Settings(profile="reeve", write=WritePolicy()).write_policy == WritePolicy()


def test_the_hits_of_an_exact_profile_have_their_cosines_from_float32(embedded):
    """Not from the int8 codes."""
    texts = [
        f"{animal} number {n} eats {food}" for n in range(20) for animal in ("cat", "dog") for food in ("fish", "hay")
    ]
    embedded.remember_many(texts)
    query = "what does the dog eat?"
    vectors = {text: embedded._engine.embedder.queries([text])[0].vector for text in texts}
    asked = embedded._engine.embedder.queries([query])[0].vector
    for profile in ("hermes", "memweave"):
        for hit in embedded.recall(query, limit=40, **recall_arguments({"profile": profile, "min_score": 0})):
            exact = float(vectors[hit.text].astype(np.float64) @ asked.astype(np.float64))
            assert hit.signals["cosine"] == pytest.approx(exact, abs=1e-5)


# ── several scopes, time ranges ────────────────────────────────────────────────────────────────────────────────────


def test_several_scopes_are_searched_listed_counted_and_forgotten(memory):
    for scope in ("/a", "/a/x", "/b", "/c", "/ab"):
        memory.remember(f"apple of {scope}", scope=scope)
    both = ["/a", "/c", "/a/x"]
    assert {hit.scope for hit in memory.recall("apple", scope=both)} == {"/a", "/a/x", "/c"}
    assert {record.scope for record in memory.list(scope=both)} == {"/a", "/a/x", "/c"}
    assert memory.count(scope=both) == 3
    assert memory.count(scope=["/a", "/"]) == 5
    assert memory.forget(scope=["/b", "/c"]).records == 2
    assert memory.count() == 3
    for bad in ([], [3], ["a"], {"/a": 1}, 7, [None]):
        for verb in (lambda bad=bad: memory.recall("apple", scope=bad), lambda bad=bad: memory.forget(scope=bad)):
            with pytest.raises(InvalidInput, match="scope"):
                verb()
    assert memory.count() == 3


def test_several_scopes_stay_within_a_handle(memory):
    for scope in ("/a/x", "/a/y", "/x", "/y"):
        memory.remember("apple", scope=scope)
    handle = memory.scoped("/a")
    assert sorted(hit.scope for hit in handle.recall("apple", scope=["/x", "/y"])) == ["/x", "/y"]
    assert handle.count(scope=["/", "/x"]) == 2
    assert handle.forget(scope=["/x", "/y"]).records == 2
    assert memory.count() == 2


def test_an_asked_for_time_range_without_a_hit_is_a_gap(memory):
    memory.remember("apple", created_at="2026-01-01T00:00:00Z")
    ranges = [
        ({"since": "2026-02-01T00:00:00Z"}, "no hit is not before 2026-02-01T00:00:00+00:00"),
        ({"until": "2025-02-01T00:00:00Z"}, "no hit is not later than 2025-02-01T00:00:00+00:00"),
        (
            {"since": "2026-02-01T00:00:00Z", "until": "2026-03-01T00:00:00Z"},
            "no hit is from 2026-02-01T00:00:00+00:00 to 2026-03-01T00:00:00+00:00",
        ),
    ]
    for options, gap in ranges:
        assert memory.recall("apple", **recall_arguments(options)).evidence_gaps == (gap,)
    assert memory.recall("apple", filter=Filter(since="2025-02-01T00:00:00Z")).evidence_gaps == ()
    assert memory.recall("apple", scope="/b").evidence_gaps == ("nothing in this scope matches the query",)


@pytest.mark.parametrize("profile", ["hermes", "memweave", "reeve"])
def test_a_small_memory_says_what_it_does_not_know(profile):
    with Memory(":memory:", settings=Settings(profile=profile)) as memory:
        memory.remember("Ada is on call for the billing service this week.")
        assert memory.recall("Who is on call for billing?").evidence_gaps == ()
        for question in ("Who won the world cup in 1998?", "How do I bake sourdough bread?", "Where do penguins live?"):
            assert memory.recall(question).evidence_gaps, question


def test_of_an_embedder_that_confidence_was_not_fitted_on_the_score_closes_the_gap():
    class Crowded:
        """Cosines of unrelated texts are .9, as with some models."""

        name = fingerprint = "crowded"
        dimension = 8

        def embed(self, texts):
            rows = np.full((len(texts), 8), 1.0, dtype=np.float32)
            rows[:, 0] += [len(text) % 7 for text in texts]
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    with Memory(":memory:", embedder=Crowded(), settings=Settings(profile="hermes")) as memory:
        memory.remember("Ada is on call", created_at="2020-01-01", importance=0.0)
        old = memory.recall("penguins")  # half of the cosine: no more than 0.5
        assert old[0].confidence > 0.6
        assert old.evidence_gaps
        memory.remember("Tom waters the plants")
        assert memory.recall("penguins").evidence_gaps == ()
