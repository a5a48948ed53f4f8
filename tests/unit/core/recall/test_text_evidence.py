"""What the texts of hits do to their confidence, and which hits the cut leaves."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from recallite import Memory
from recallite.model.match_reasons import CHANGE_BIT
from recallite.model.records import NewRecord
from recallite.recall.confidence import SIGNAL_SETS, TextWeights, load_calibration, text_weights
from recallite.recall.judge import adjust_confidence
from recallite.recall.order import surest_first
from recallite.recall.request import ANSWER_CONFIDENCE, Answer
from recallite.text.questions import CONTENT, NAMED, read_question, recognise

WEIGHTS = TextWeights(lacking=-1.0, turn_lacking=-0.5, asking=-2.0)
FACTS = [
    "User works at Calder Freight", "User has a cat named Biscuit", "User's mother is called Birthe",
    "The car has done 143,000 km", "User takes tram 16 to the office", "Ebba administers the database",
]  # fmt: skip


@dataclass
class Text:
    text: str
    context: str | None = None
    position: int | None = None


@pytest.fixture(scope="module")
def facts():
    with Memory(":memory:") as memory:
        memory.remember_many(FACTS)
        yield memory


def test_a_text_without_the_value_or_that_asks_is_less_sure_and_a_turn_is_judged_less_hard():
    lake = Text("at the lake")
    plain = adjust_confidence(0.5, lake, False, WEIGHTS)
    turn = adjust_confidence(0.5, Text("at the lake", position=3), True, WEIGHTS)
    lacking = adjust_confidence(0.5, lake, True, WEIGHTS)
    asking = adjust_confidence(0.5, Text("is it at the lake?"), True, WEIGHTS)
    assert plain == 0.5 > turn > lacking > asking > 0
    assert lacking == pytest.approx(1 / (1 + 2.718281828), abs=1e-6)
    assert adjust_confidence(1.0, lake, True, WEIGHTS) == 1.0


def test_no_text_raises_confidence():
    for embedder in load_calibration().embedders:
        assert all(weight <= 0 for signals in SIGNAL_SETS for weight in text_weights(embedder, signals))


def test_what_is_asked_for_and_lacking_is_named(facts):
    asked = {"What is the user's phone number?": ("phone", "no hit has a phone number"),
             "When is the user's birthday?": ("birthday", "no hit has a time")}  # fmt: skip
    for question, (word, gap) in asked.items():
        gaps = facts.recall(question, profile={"gap_confidence": 1.0}).evidence_gaps
        assert any(word in each for each in gaps)
        assert gap in gaps
    gaps = facts.recall("What is the name of the user's cat?", profile={"gap_confidence": 1.0}).evidence_gaps
    assert not any("no hit has" in gap for gap in gaps)


def test_a_cut_that_leaves_nothing_names_what_no_memory_has(facts):
    hits = facts.recall("Where was Shakespeare's theatre?", relevant=True, profile={"min_confidence": 0.99})
    assert hits == []
    assert any("theatre" in gap for gap in hits.evidence_gaps)


def test_fewer_hits_than_the_limit_are_the_first_of_more(facts):
    for question in ("Who administers the database?", "How does the user get to work?", "Who is Birthe?"):
        many = facts.recall(question, limit=10, relevant=True)
        for limit in (1, 2):
            assert [hit.id for hit in facts.recall(question, limit=limit, relevant=True)] == [
                hit.id for hit in many[:limit]
            ]


def test_words_that_do_not_ask_need_no_confidence_where_a_memory_has_all_of_them():
    with Memory(":memory:") as memory:
        memory.remember_many([f"Note {place} on the {thing} of the shed" for place, thing in enumerate("abcdefgh")])
        kept = memory.remember(NewRecord("Bought yarn and needles", tags=["knitting"]))
        assert [hit.id for hit in memory.recall("knitting", relevant=True)] == [kept.id]
        assert memory.recall("zebra", relevant=True) == []
        every = memory.recall_many(["knitting", "What is a zebra?"], relevant=True)
        assert [len(hits) for hits in every] == [1, len(memory.recall("What is a zebra?", relevant=True))]


def test_keywords_are_few_words_that_all_count():
    assert recognise("knitting").keywords
    assert recognise("mysql migration date").keywords
    for query in ("knitting?", "the knitting", "how much", "a b c d", "one two three four five", "", "  "):
        assert not recognise(query).keywords


def test_a_story_is_not_cut():
    with Memory(":memory:") as memory:
        memory.remember_many(
            [NewRecord(f"We built part {place} of the boat", valid_from=f"2024-0{place}-01") for place in range(1, 9)]
        )
        question = "Can you summarize how the building of the boat progressed over time?"
        assert len(memory.recall(question, relevant=True)) == len(memory.recall(question))


def test_names_and_numbers_of_a_question_are_told_from_what_it_is_about():
    def roles(text):
        question = read_question(text)
        return dict(zip(question.words, question.roles, strict=True))

    found = roles("What did Ada say about the GHA pipeline in May 2024?")
    assert (found["ada"], found["gha"], found["pipelin"]) == (NAMED, NAMED, CONTENT)
    assert NAMED not in (found["may"], found["2024"])
    assert found["say"] == 0
    assert NAMED not in roles("Where Does The User Live These Days").values()
    assert NAMED not in roles("").values()


def test_the_cut_is_a_chance():
    assert 0 < ANSWER_CONFIDENCE < 0.5


HOUR_US = 3_600_000_000


class Told:
    def __init__(self, created_at: int = 0, authority: int = 0) -> None:
        self.created_at, self.authority = created_at, authority


def ranked(*sure: float, reasons: tuple[int, ...] = (), successors: tuple[int, ...] = (), brought: int = 0) -> Answer:
    count = len(sure)
    return Answer(
        list(range(count)), [1.0 - rank / 10 for rank in range(count)], list(sure), list(reasons or [0] * count),
        [[0.0]] * count, list(successors or [-1] * count), brought, (),
    )  # fmt: skip


def test_what_is_better_known_goes_before_less_sure_hits_and_scores_keep_their_places():
    answer = ranked(0.1, 0.4, 0.9, 0.5)
    told = {key: Told() for key in range(4)}
    moved = surest_first(answer, {2}, told)
    assert (moved.row_ids, moved.confidence) == ([2, 0, 1, 3], [0.9, 0.1, 0.4, 0.5])
    assert moved.scores == answer.scores
    assert surest_first(answer, {1, 2, 3}, told).row_ids == [2, 3, 1, 0]


def test_what_is_surer_waits_behind_the_user_a_change_a_newer_answer_and_standing_hits():
    same, newer_first = {0: Told(), 1: Told()}, {0: Told(created_at=2 * HOUR_US), 1: Told()}
    assert surest_first(ranked(0.3, 0.9), {1}, {0: Told(), 1: Told(authority=-3)}).row_ids == [0, 1]
    assert surest_first(ranked(0.3, 0.9, reasons=(CHANGE_BIT, 0)), {1}, same).row_ids == [0, 1]
    assert surest_first(ranked(0.3, 0.9, successors=(-1, 0)), {1}, same).row_ids == [0, 1]
    assert surest_first(ranked(0.3, 0.9), {1}, newer_first).row_ids == [0, 1]
    assert surest_first(ranked(0.1, 0.9), {1}, newer_first).row_ids == [1, 0]
    assert surest_first(ranked(0.3, 0.9), {1}, {0: Told(created_at=HOUR_US), 1: Told()}).row_ids == [1, 0]
    assert surest_first(ranked(0.3, 0.9, brought=1), {1}, same).row_ids == [0, 1]
