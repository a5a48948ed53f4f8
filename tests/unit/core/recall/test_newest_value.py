"""Of long texts that give the value which is asked for, the newest leads."""

from __future__ import annotations

import pytest

from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from recallite.text.questions import recognise
from tests.unit.core.memory.support import unit

MARCH = (
    "I'm writing more tests for the API integration module and wonder which of the error cases matter most, as I have "
    "little time. The test coverage of the API integration module is at 65 % now."
)
APRIL = (
    "Can you have a look at the mocks that I wrote for the weather service? They seem to hide the timeouts. The test "
    "coverage of my API integration module has improved to 78 % after last week's work."
)
ASKED = "What is the test coverage of the API integration module?"


def remember(memory, *texts, **fields):
    """One a month, with vectors that make the first the nearest to `unit(0)`."""
    return [
        memory.remember(
            NewRecord(
                text, created_at=f"2024-0{3 + place}-01T00:00:00Z", vector=unit(0) + 0.1 * place * unit(place), **fields
            )
        ).id
        for place, text in enumerate(texts)
    ]


def ask(memory, question, **options):
    return memory.recall(question, vector=unit(0), **recall_arguments({"half_life_days": 0, **options}))


def test_the_newest_value_leads_in_the_places_and_scores_that_there_are(memory):
    march, april = remember(memory, MARCH, APRIL)
    ignored = ask(memory, ASKED, superseded="as_ranked")
    assert [hit.id for hit in ignored] == [march, april]
    hits = ask(memory, ASKED)
    assert [hit.id for hit in hits] == [april, march]
    assert [hit.score for hit in hits] == [hit.score for hit in ignored]
    assert ["change" in hit.match_reasons for hit in hits] == [True, False]
    assert "older value" in memory.review.explain(ASKED, april, vector=unit(0), profile={"half_life_days": 0}).reason


@pytest.mark.parametrize(
    "question",
    [
        "Which error cases of the API integration module matter?",
        "What was the test coverage of the API integration module before?",
        "What was my previous test coverage?",
        "Tell me about the tests.",
    ],
)
def test_other_questions_and_those_about_the_past_are_left_as_they_are(memory, question):
    march, april = remember(memory, MARCH, APRIL)
    assert [hit.id for hit in ask(memory, question)] == [march, april]


@pytest.mark.parametrize(
    "fields",
    [
        ({"context": "Ada"}, {"context": "Bob"}),
        ({"scope": "/a"}, {"scope": "/b"}),
        ({"metadata": {"user_id": "a"}}, {"metadata": {"user_id": "b"}}),
        ({"metadata": {"user_id": "a"}}, {}),
        ({"kind": "fact"}, {"kind": "note"}),
    ],
)
def test_what_someone_else_says_or_of_something_else_is_not_compared(memory, fields):
    ids = [
        memory.remember(
            NewRecord(
                text, created_at=f"2024-0{3 + place}-01T00:00:00Z", vector=unit(0) + 0.1 * place * unit(place), **own
            )
        ).id
        for place, (text, own) in enumerate(zip((MARCH, APRIL), fields, strict=True))
    ]
    assert [hit.id for hit in ask(memory, ASKED)] == ids


def test_texts_of_one_moment_stay_in_their_order(memory):
    ids = [
        memory.remember(NewRecord(text, created_at="2024-03-01T00:00:00Z", vector=unit(0) + 0.1 * place * unit(1))).id
        for place, text in enumerate((MARCH, APRIL))
    ]
    assert [hit.id for hit in ask(memory, ASKED)] == ids


def test_what_is_to_come_was_told_before(memory):
    ids = [
        memory.remember(
            NewRecord(
                text,
                created_at=f"2024-0{month}-01T00:00:00Z",
                valid_from=at,
                vector=unit(0) + 0.1 * month * unit(month),
            )
        ).id
        for text, month, at in ((MARCH, 1, "2024-09-01T00:00:00Z"), (APRIL, 2, None))
    ]
    assert [hit.id for hit in ask(memory, ASKED)] == ids[::-1]


def test_a_text_about_something_else_stays_behind(memory):
    other = APRIL.replace("test coverage of my API integration module", "number of my weekly runs")
    march, april = remember(memory, MARCH, other)
    assert [hit.id for hit in ask(memory, ASKED)] == [march, april]


@pytest.mark.parametrize(
    ("question", "number"),
    [("How many commits are merged?", True), ("Where do I currently keep my sneakers?", False)],
)
def test_questions_for_a_value(question, number):
    asked = recognise(question).value
    assert asked is not None
    assert asked.number is number


@pytest.mark.parametrize(
    "question",
    [
        "",
        "?",
        "How much was the rent when I moved in?",
        "When did I visit Paris?",
        "Who is Dana?",
        "now",
        "How many?",
        "Where did I live before now?",
    ],
)
def test_questions_for_none(question):
    assert recognise(question).value is None


@pytest.mark.parametrize("text", ["", "\n\n", "5", "a" * 100_000, "\ud800 5", "5. " * 5_000])
def test_any_text_is_looked_at(text):
    asked = recognise("How many commits are merged now?").value
    assert asked is not None
    assert 0.0 <= asked.answered_by(text) <= 1.0
