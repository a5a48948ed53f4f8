"""What recall returns: order, limits, grouping, budgets, thresholds, modes, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recallite import Memory
from recallite.errors import EmbedderError, InvalidInput
from recallite.model.records import Hit, Hits, NewRecord
from recallite.recall.request import recall_arguments
from tests.raising import raises
from tests.unit.core.memory.support import ONLY_STORES, scored, state, unit

TURNS = [
    ("Caroline", "I finally adopted a puppy, his name is Biscuit."),
    ("Melanie", "That is wonderful! What breed is he?"),
    ("Caroline", "A golden retriever, eight weeks old."),
    ("Melanie", "My daughter wants a cat instead."),
    ("Caroline", "We moved to Lisbon because of my job at the museum."),
    ("Melanie", "The weather there must be lovely in spring."),
    ("Caroline", "I paint in the evenings, mostly watercolours of the harbour."),
    ("Melanie", "I ran my first half marathon on Sunday."),
]


@pytest.fixture(scope="module")
def talk():
    with Memory(":memory:") as memory:
        memory.ids = memory.remember_many(
            {"text": text, "context": speaker, "source": f"session {place // 4}", "position": place % 4}
            for place, (speaker, text) in enumerate(TURNS)
        )
        yield memory


@pytest.mark.parametrize(
    ("question", "turn"),
    [
        ("What is the dog called?", 0),
        ("In which city does Caroline live now?", 4),
        ("What does Caroline do as a hobby?", 6),
        ("Which sport does Melanie do?", 7),
    ],
)
def test_a_question_finds_its_answer(talk, question, turn):
    assert talk.ids[turn] in [hit.id for hit in talk.recall(question, limit=3)]


def test_hits_say_all_that_the_record_holds(memory):
    stored = memory.remember(
        NewRecord(
            "apple pie",
            scope="/a",
            kind="note",
            tags=["x", "y"],
            importance=0.9,
            context="recipes",
            source="book",
            metadata={"path": "a.md", "lines": [3, 7]},
            position=4,
            created_at="2026-01-01T00:00:00Z",
            valid_from="2025-01-01T00:00:00Z",
        )
    )
    (hit,) = memory.recall("apple")
    assert isinstance(hit, Hit)
    assert (hit.id, hit.text, hit.scope, hit.kind, hit.tags, hit.importance, hit.context) == (
        stored.id, "apple pie", "/a", "note", ("x", "y"), 0.9, "recipes",
    )  # fmt: skip
    assert hit.metadata == {"path": "a.md", "lines": [3, 7]}
    assert (hit.source.id, hit.source.position, hit.source.path, hit.source.lines) == ("book", 4, "a.md", (3, 7))
    assert hit.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert hit.valid_from == datetime(2025, 1, 1, tzinfo=UTC)
    assert 0 <= hit.score <= 1
    assert 0 <= hit.confidence <= 1
    assert hit.match_reasons == ("keyword", "importance")


@pytest.mark.parametrize("value", ["text", 3, [1], [1, 2, 3], ["a", "b"], None, {}], ids=repr)
def test_lines_of_any_shape_in_the_metadata_stop_nothing(memory, value):
    memory.remember("apple", source="s", metadata={"lines": value, "path": value})
    (hit,) = memory.recall("apple")
    assert hit.text == "apple"
    assert hit.source.lines is None or all(isinstance(line, int) for line in hit.source.lines)
    assert hit.source.path is None or isinstance(hit.source.path, str)


def test_scores_descend_and_equal_ones_keep_the_order_of_writing(memory):
    ids = memory.remember_many(
        [{"text": "same text", "vector": unit(1), "created_at": "2026-01-01T00:00:00Z"} for _ in range(300)],
        policy=ONLY_STORES,
    )
    for limit in (1, 10, 299, 300):
        for options in ({}, {"mode": "vector"}, {"mode": "keyword"}, {"neighbor_boost": 0}, {"fusion": "rrf"}):
            hits = memory.recall(
                "same", vector=unit(1), limit=limit, **recall_arguments({"half_life_days": 0, **options})
            )
            if options.get("fusion") != "rrf":
                assert [hit.id for hit in hits] == ids[:limit]
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_the_same_recall_gives_the_same_hits(talk):
    question = "What pets were talked about?"
    first = talk.recall(question, profile={"half_life_days": 0})
    assert all(scored(talk.recall(question, profile={"half_life_days": 0}), 9) == scored(first, 9) for _ in range(3))


def test_many_at_once_as_one_by_one(talk):
    questions = ["dog", "city", "", "half marathon on Sunday", "dog", "!!!", "What does she paint?"]
    at_once = talk.recall_many(questions, limit=4, profile={"half_life_days": 0})
    assert [scored(hits) for hits in at_once] == [
        scored(talk.recall(question, limit=4, profile={"half_life_days": 0})) for question in questions
    ]
    assert [hits.query for hits in at_once] == questions
    assert talk.recall_many([]) == []


def test_many_vectors_at_once_as_one_by_one(memory):
    memory.remember_many({"text": f"number{number}", "vector": unit(number)} for number in range(40))
    vectors = [unit(number) for number in (3, 7, 11)]
    at_once = memory.recall_many(["", "number7", "x"], vectors=vectors, profile={"half_life_days": 0})
    one_by_one = [
        memory.recall(query, vector=vector, profile={"half_life_days": 0})
        for query, vector in zip(["", "number7", "x"], vectors, strict=True)
    ]
    assert list(map(scored, at_once)) == list(map(scored, one_by_one))


def test_grouping_gives_the_best_record_of_each_source(memory):
    memory.remember_many(
        {"text": f"apple {'pie ' * (number % 5)}number{number}", "source": f"s{number % 7}", "position": number}
        for number in range(35)
    )
    lone = memory.remember_many(["apple alone", "apple lonely"])
    flat = memory.recall("apple pie", limit=50, profile={"half_life_days": 0})
    best: dict[str, str] = {}
    for hit in flat:
        best.setdefault(hit.source.id if hit.source else hit.id, hit.id)
    grouped = memory.recall("apple pie", limit=50, diversify_by="one_per_source", profile={"half_life_days": 0})
    assert [hit.id for hit in grouped] == list(best.values())
    assert set(lone) <= {hit.id for hit in grouped}
    assert len(memory.recall("apple pie", limit=3, diversify_by="one_per_source")) == 3


def test_grouping_finds_k_sources_whenever_k_exist(memory):
    """One source with many near records must not hide the others behind the number of candidates."""
    memory.remember_many({"text": "apple apple apple", "source": "big", "position": n} for n in range(600))
    memory.remember_many(
        {"text": f"apple and much other text number {n} " + "more " * 20, "source": f"s{n}"} for n in range(20)
    )
    hits = memory.recall("apple", limit=10, mode="keyword", diversify_by="one_per_source")
    assert len({hit.source.id for hit in hits}) == 10


def test_a_token_budget_keeps_the_best_and_says_what_is_left_out(talk):
    everything = talk.recall("What is the dog called?", limit=8, profile={"half_life_days": 0})
    for budget in (1, 10, 25, 60, 10_000):
        hits = talk.recall("What is the dog called?", limit=8, token_budget=budget, profile={"half_life_days": 0})
        costs = dict(
            zip(
                (hit.id for hit in everything),
                talk._engine.embedder.count_tokens([hit.text for hit in everything]),
                strict=True,
            )
        )
        assert hits[0].id == everything[0].id
        assert hits.left_out == len(everything) - len(hits)
        assert len(hits) == 1 or sum(costs[hit.id] for hit in hits) <= budget
        order = [hit.id for hit in everything]
        assert [order.index(hit.id) for hit in hits] == sorted(order.index(hit.id) for hit in hits)
    assert talk.recall("dog", token_budget=10_000).left_out == 0


def test_a_minimum_of_score_or_confidence_drops_what_is_below(talk):
    for name in ("min_score", "min_confidence"):
        attribute = name.removeprefix("min_")
        everything = talk.recall("What is the dog called?", limit=8)
        bar = sorted(getattr(hit, attribute) for hit in everything)[4]
        kept = talk.recall("What is the dog called?", limit=8, **recall_arguments({name: bar - 1e-6}))
        assert {hit.id for hit in kept} == {hit.id for hit in everything if getattr(hit, attribute) > bar - 1e-6}
        assert talk.recall("What is the dog called?", **recall_arguments({name: 1.0})) == []


def test_nothing_relevant_can_be_an_answer(talk):
    answered = talk.recall("What is the name of Caroline's puppy?", limit=1)
    not_answered = talk.recall("Which interest rate did the central bank of Japan announce?", limit=1)
    assert answered[0].confidence > not_answered[0].confidence
    assert answered.evidence_gaps == ()
    assert any("japan" in gap.lower() for gap in not_answered.evidence_gaps)
    assert talk.recall("zyxwv qqq", profile={"min_confidence": 0.9}) == []


def test_a_word_of_several_terms_is_missing_once(tmp_path):
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        memory.remember("The password of the printer is on its back")
        gaps = memory.recall("What is the Wi-Fi password?", profile={"gap_confidence": 1.0}).evidence_gaps
    assert gaps[:-1] == ("no hit mentions 'Wi-Fi'",)


def test_an_empty_store_or_scope_answers_with_nothing(memory, talk):
    for hits in (memory.recall("anything"), memory.recall("x", vector=unit(1)), talk.recall("dog", scope="/empty")):
        assert isinstance(hits, Hits)
        assert list(hits) == []
        assert hits.evidence_gaps


def test_modes_use_one_signal_alone(talk):
    keyword = talk.recall("golden retriever", mode="keyword")
    assert [hit.id for hit in keyword] == [talk.ids[2]]
    assert keyword[0].signals["cosine"] == 0
    vector = talk.recall("canine animal", mode="vector", limit=8)
    assert len(vector) == 8
    assert [hit.signals["cosine"] for hit in vector] == sorted((hit.signals["cosine"] for hit in vector), reverse=True)
    assert all(hit.signals["bm25"] == 0 for hit in vector)


def test_one_signal_alone_has_no_threshold_of_the_profile_but_the_callers_own(talk):
    assert len(talk.recall("dog", mode="vector", limit=8)) == 8
    assert talk.recall("dog", mode="vector", limit=8, profile={"min_score": 0.99}) == []


def test_decay_and_importance_follow_their_formulas(memory):
    ages = [0, 30, 60, 3650]
    now = datetime.now(UTC)
    memory.remember_many(
        {"text": "apple", "created_at": now - timedelta(days=age), "importance": 0.5, "metadata": {"age": age}}
        for age in ages
    )
    for options, weights in (
        ({}, [1.0, 0.5 ** (1 / 3), 0.5 ** (2 / 3), 0.5]),
        ({"half_life_days": 30}, [1.0, 0.5, 0.5, 0.5]),
        ({"half_life_days": 60}, [1.0, 0.5**0.5, 0.5, 0.5]),
        ({"decay_floor": 0.0, "half_life_days": 30}, [1.0, 0.5, 0.25, 0.5 ** (3650 / 30)]),
        ({"profile": "reeve", "decay": "exp", "decay_floor": 0.1, "half_life_days": 30}, [1.0, 0.36788, 0.13534, 0.1]),
        ({"half_life_days": 0}, [1.0, 1.0, 1.0, 1.0]),
    ):
        decay = {
            hit.metadata["age"]: hit.signals["decay"] for hit in memory.recall("apple", **recall_arguments(options))
        }
        assert [decay[age] for age in ages] == pytest.approx(weights, abs=1e-4)


def test_importance_lifts_and_lowers(memory):
    for importance in (0.0, 0.5, 1.0):
        memory.remember("apple", importance=importance, policy=ONLY_STORES)
    hits = memory.recall("apple", profile={"half_life_days": 0, "importance_weight": 0.2})
    assert [hit.importance for hit in hits] == [1.0, 0.5, 0.0]
    raw = [hit.signals["score"] for hit in hits]
    assert raw[0] / raw[1] == pytest.approx(1.2)
    assert raw[2] / raw[1] == pytest.approx(0.8)
    assert [
        hit.importance for hit in memory.recall("apple", profile={"half_life_days": 0, "importance_weight": 0})
    ] == [
        0.0,
        0.5,
        1.0,
    ]


def test_a_future_memory_is_not_older_than_a_new_one(memory):
    memory.remember("apple", valid_from="2999-01-01T00:00:00Z")
    assert memory.recall("apple")[0].signals["decay"] == pytest.approx(1.0, abs=1e-4)


def test_diversity_keeps_the_best_and_moves_duplicates_down(memory):
    memory.remember_many(["apple pie recipe with cinnamon"] * 3 + ["apple orchard visit in autumn"])
    plain = memory.recall("apple pie", profile={"half_life_days": 0})
    diverse = memory.recall("apple pie", profile={"half_life_days": 0, "mmr_lambda": 0.3})
    assert diverse[0].id == plain[0].id
    assert diverse[1].text == "apple orchard visit in autumn"
    assert {hit.id for hit in diverse} == {hit.id for hit in plain}
    assert scored(memory.recall("apple pie", profile={"half_life_days": 0, "mmr_lambda": 1.0})) == scored(plain)


def test_texts_in_other_scripts_are_not_all_alike(memory):
    memory.remember_many(["東京の天気は晴れです", "大阪の電車は便利です", "東京の天気は雨です"])
    hits = memory.recall("東京の天気", profile={"mmr_lambda": 0.5, "half_life_days": 0})
    assert {hit.text for hit in hits[:2]} == {"東京の天気は晴れです", "東京の天気は雨です"} or len(hits) == 3


def test_stages_are_timed_when_asked(talk):
    assert set(talk.recall("dog", purpose="explain").stages) >= {"embed", "search", "fetch"}
    assert all(milliseconds >= 0 for milliseconds in talk.recall("dog", purpose="explain").stages.values())


BAD_OPTIONS = [
    {"limit": 0},
    {"limit": -1},
    {"limit": 10**9},
    {"limit": True},
    {"limit": 2.5},
    {"mode": "fuzzy"},
    {"mode": None},
    {"diversify_by": "kind"},
    {"purpose": "look"},
    {"purpose": None},
    {"token_budget": 0},
    {"token_budget": "many"},
    {"min_score": 2},
    {"min_score": "x"},
    {"min_confidence": -0.1},
    {"scope": "app"},
    {"scope": "/app/"},
    {"scope": "/a//b"},
    {"scope": "/a/../b"},
    {"scope": ""},
    {"scope": 3},
    {"scope": "/\ud800"},
    {"kinds": [3]},
    {"kinds": 3},
    {"kinds": [""]},
    {"tags": "x"},
    {"tags": [None]},
    {"tags": ["\ud800"]},
    {"since": "some day"},
    {"since": datetime(2026, 1, 1)},
    {"until": 5},
    {"as_of": "2026-01-01T00:00:00"},
    {"profile": "fast"},
    {"profile": 3},
    {"neighbor_boost": -1},
    {"neighbor_boost": float("nan")},
    {"neighbor_boost": "x"},
    {"fusion": "borda"},
    {"profile": "reeve", "decay": "linear"},
    {"half_life_days": -1},
    {"half_life_days": float("inf")},
    {"decay_floor": 1.5},
    {"mmr_lambda": 2},
    {"candidates": 0},
    {"vector_weight": 0, "keyword_weight": 0},
    {"vector_weight": -1},
    {"nothing_like_it": 1},
    {"base": "/"},
    {"default_profile": "default"},
    {"now": 1},
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=repr)
def test_a_bad_option_is_named_with_its_value(memory, options):
    stored = memory.remember("x")
    before = state(memory)
    name, value = list(options.items())[-1]
    for use in (
        lambda: memory.recall("x", **recall_arguments(options)),
        lambda: memory.recall_many(["x"], **recall_arguments(options)),
        lambda: memory.review.explain("x", stored.id, **recall_arguments(options)),
    ):
        with pytest.raises(InvalidInput) as raised:
            use()
        said = str(raised.value)
        assert name.removesuffix("s") in said or repr(value) in said, said
    assert state(memory) == before


@pytest.mark.parametrize("query", [None, 3, b"bytes", ["a"]], ids=repr)
def test_a_query_is_a_str(memory, query):
    with raises(InvalidInput, "text", match="query"):
        memory.recall(query)
    with pytest.raises(InvalidInput):
        memory.recall_many("a str")


@pytest.mark.parametrize(
    "vector",
    [[1.0], [0.0] * 16, [float("nan")] + [1.0] * 15, [float("inf")] * 16, "abc", [[1.0] * 16], [], ["x"] * 16, 3],
    ids=repr,
)
def test_a_bad_query_vector_is_refused(memory, vector):
    memory.remember(NewRecord("x", vector=unit(1)))
    with raises(InvalidInput, "vector"):
        memory.recall("x", vector=vector)


def test_as_many_vectors_as_queries(memory):
    memory.remember(NewRecord("x", vector=unit(1)))
    for vectors in ([unit(1)], [], 3, [unit(1), unit(2), unit(3)]):
        with pytest.raises(InvalidInput, match="vectors"):
            memory.recall_many(["a", "b"], vectors=vectors)


def test_vector_mode_without_an_embedder_says_what_to_do(memory):
    memory.remember(NewRecord("x", vector=unit(1)))
    with raises(EmbedderError, "missing", match="vector="):
        memory.recall("x", mode="vector")
    hits = memory.recall("x")
    assert [hit.text for hit in hits] == ["x"]
    assert any("no embedder" in gap for gap in hits.evidence_gaps)


ODD = [
    "",
    " ",
    "?!.,;:()[]{}<>",
    '"',
    "'",
    '"unbalanced',
    "AND OR NOT",
    "NEAR(a b, 3)",
    "text:word",
    "word*",
    "^word -word +word",
    "{a b}: c",
    "a AND",
    "%",
    "\\",
    "👩‍👩‍👧 🎉",
    "e\u0301 \u0301",
    "שלום עולם",
    "‮reversed",
    "مرحبا بالعالم",
    "ไทย",
    "\ud800 lone \udfff",
    "nul\0inside",
    "\x01\x02\x7f",
    "\u200b\u200d\ufeff",
    "a" * 5000,
    "word " * 20_000,
    "漢字" * 1000,
    "1" * 400 + ".2.3.4.5.6",
    "--help",
    "'; DROP TABLE record; --",
    "İıſß",
    "\n\r\t",
    "\u2028\u2029",
]


@pytest.mark.parametrize("query", ODD, ids=lambda query: ascii(query[:20]))
def test_no_query_raises(talk, query):
    for options in ({}, {"mode": "keyword"}, {"mode": "vector"}, {"diversify_by": "one_per_source", "mmr_lambda": 0.5}):
        assert isinstance(talk.recall(query, **recall_arguments(options)), Hits)
    talk.review.explain(query, talk.ids[0])
    assert [len(hits) for hits in talk.recall_many([query, query], limit=2)] == [len(talk.recall(query, limit=2))] * 2


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("昨日は東京タワーへ行きました。", "東京"),
        ("我们上周搬到了北京的新办公室", "北京"),
        ("서울에서 회의를 했습니다", "회의"),
        ("C++ and C# are languages", "C#"),
        ("naïve café owner", "cafe"),
        ("the users were migrating", "user migration"),
        ("רכבת לתל אביב", "רכבת"),
        ("don't panic", "don’t"),
        ("version v2.10.3 is out", "2.10.3"),
        ("mail bob@example.com today", "bob@example.com"),
        ("snake_case_name here", "snake"),
        ("ÜBUNG macht den Meister", "übung"),
    ],
)
def test_a_word_is_found_as_people_write_it(memory, text, query):
    memory.remember_many(["something else entirely", "another sentence"])
    stored = memory.remember(text)
    assert [hit.id for hit in memory.recall(query, mode="keyword")] == [stored.id]


def test_the_query_of_hits_can_be_written_as_json(memory):
    memory.remember("apple")
    for adaptive in (True, False):
        hits = memory.recall("lone \ud800 apple", profile={"adaptive": adaptive})
        assert hits.query == "lone \ufffd apple"
