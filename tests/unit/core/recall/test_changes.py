"""Of hits that state one thing with different values, the one that holds at the time asked about leads."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import unit

OSLO, BERGEN, TRONDHEIM = (f"Dana lives in {place}" for place in ("Oslo", "Bergen", "Trondheim"))
# Detection would mark them when they are written.
UNDETECTED = WritePolicy(supersede_confidence=None, contradict_confidence=None)
NURSE = "Dana is a nurse at the hospital"


def remember(memory, *texts, first=2020, **fields):
    """One a year, with vectors that make the first the nearest to `unit(0)`."""
    return [
        memory.remember(
            NewRecord(
                text,
                created_at=f"{first + place}-01-01T00:00:00Z",
                vector=unit(0) + 0.1 * place * unit(place),
                **fields,
            ),
            policy=UNDETECTED,
        )
        for place, text in enumerate(texts)
    ]


def texts(hits):
    return [hit.text for hit in hits]


def ask(memory, question, **options):
    return memory.recall(question, vector=unit(0), **recall_arguments({"half_life_days": 0, **options}))


@pytest.fixture
def moved(memory):
    """Three addresses of Dana's, nearest to the question in the order in which she lived there."""
    remember(memory, OSLO, BERGEN, TRONDHEIM, NURSE)
    return memory


def test_what_holds_now_leads_and_the_older_ones_follow(moved):
    assert texts(ask(moved, "Where does Dana live?", superseded="as_ranked"))[:3] == [OSLO, BERGEN, TRONDHEIM]
    hits = ask(moved, "Where does Dana live?")
    assert texts(hits)[:3] == [TRONDHEIM, BERGEN, OSLO]
    assert [hit.superseded_by for hit in hits[:3]] == [(), (hits[0].id,), (hits[0].id,)]
    assert ["change" in hit.match_reasons for hit in hits[:3]] == [True, False, False]


def test_scores_stay_where_they_were(moved):
    for mode in ("after_current", "as_ranked"):
        scores = [hit.score for hit in ask(moved, "Where does Dana live?", superseded=mode)]
        assert scores == sorted(scores, reverse=True)
    assert scores == [hit.score for hit in ask(moved, "Where does Dana live?")]


def test_what_was_replaced_can_be_left_out(moved):
    assert texts(ask(moved, "Where does Dana live?", superseded="omit")) == [TRONDHEIM, NURSE]
    assert len(ask(moved, "Where did Dana live before?", superseded="omit")) == 4


def test_omitted_hits_leave_their_places_to_others(memory):
    towns, boats = (f"Dana lives in Town{n}" for n in range(12)), (f"Dana owns boat{n}" for n in range(9))
    remember(memory, *towns, *boats, first=2000)
    assert len(ask(memory, "Where does Dana live?", superseded="omit", limit=10)) == 10


@pytest.mark.parametrize(
    ("question", "order"),
    [
        ("Where did Dana live before?", [BERGEN, OSLO, TRONDHEIM]),
        ("Where did Dana use to live?", [BERGEN, OSLO, TRONDHEIM]),
        ("Where did Dana originally live?", [OSLO, BERGEN, TRONDHEIM]),
        ("Where did Dana live before Bergen?", [OSLO, BERGEN, TRONDHEIM]),
        ("Where did Dana live before she moved to Trondheim?", [BERGEN, OSLO, TRONDHEIM]),
        ("Where did Dana live in June 2021?", [BERGEN, OSLO, TRONDHEIM]),
        ("Where did Dana live in 2020?", [OSLO, BERGEN, TRONDHEIM]),
        ("Where was Dana living until she left for Paris?", [BERGEN, OSLO, TRONDHEIM]),
        ("Where did Dana live today?", [TRONDHEIM, BERGEN, OSLO]),
        ("Which city was Dana's home?", [TRONDHEIM, BERGEN, OSLO]),
    ],
)
def test_a_question_about_the_past_turns_it_around(moved, question, order):
    assert [text for text in texts(ask(moved, question)) if text != NURSE] == order


PAST = "Dana used to live in Rome"


def over_then_holding(memory, over, holding):
    """Remember what is over, as what is nearest to the question, and what holds."""
    for at, text, vector, fields in ((2021, PAST, unit(0), over), (2020, OSLO, unit(0) + 2 * unit(1), holding)):
        memory.remember(NewRecord(text, created_at=f"{at}-01-01", vector=vector, **fields), policy=UNDETECTED)


def test_what_says_itself_that_it_is_over_follows_what_holds(memory):
    over_then_holding(memory, {}, {})
    assert texts(ask(memory, "Where does Dana live?", superseded="as_ranked")) == [PAST, OSLO]
    hits = ask(memory, "Where does Dana live?")
    assert texts(hits) == [OSLO, PAST]
    assert hits[1].superseded_by == (hits[0].id,)
    assert "says itself that it is over" in memory.review.explain("Where does Dana live?", hits[1].id).reason
    assert texts(ask(memory, "Where did Dana live before?")) == [PAST, OSLO]


@pytest.mark.parametrize(
    ("over", "holding"), [({}, {"source": "https://example.com"}), ({"source": "chat", "position": 1}, {})]
)
def test_what_a_lower_authority_says_and_turns_change_no_order(memory, over, holding):
    over_then_holding(memory, over, holding)
    assert texts(ask(memory, "Where does Dana live?")) == [PAST, OSLO]


@pytest.mark.parametrize("first", [2020, 2010])
def test_it_need_not_be_the_same_sentence(memory, first):
    remember(memory, "Previously used TSLint.")
    remember(memory, "Uses ESLint for linting", first=first)
    hits = ask(memory, "Which linter is used?")
    assert texts(hits) == ["Uses ESLint for linting", "Previously used TSLint."]
    assert [hit.score for hit in hits] == sorted([hit.score for hit in hits], reverse=True)
    assert texts(ask(memory, "What was used previously for linting?"))[0] == "Previously used TSLint."


FILLERS = ("The printer is out of toner", "Nina paints landscapes", "Lunch is at noon", "The bike has a flat tyre")


@pytest.mark.parametrize(
    ("holds", "ended", "now", "before", "then"),
    [
        (
            "Omar works at Shell", "Omar worked at BP until 2019", "Where does Omar work?",
            "Where did Omar work before?", "Where did Omar work in 2018?",
        ),
        (
            "Our vet is Dr. Weber", "Our vet was Dr. Hahn from 2014 to 2018", "Who is our vet?",
            "Who was our vet before?", "Who was our vet in 2016?",
        ),
        (
            "The office is in Porto", "The office was in Lisbon until March 2021", "Where is the office?",
            "Where was the office previously?", "Where was the office in 2020?",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ended_is_told_last", [True, False])
def test_what_names_an_end_that_has_passed_leads_only_where_the_past_is_asked_for(
    holds, ended, now, before, then, ended_is_told_last
):
    told = (holds, ended) if ended_is_told_last else (ended, holds)
    with Memory(":memory:") as memory:
        for place, text in enumerate((*told, *FILLERS)):
            memory.remember(text, created_at=f"2026-03-{1 + place:02}")
        assert texts(memory.recall(now))[:2] == [holds, ended]
        assert texts(memory.recall(now, relevant=True))[:1] == [holds]
        assert texts(memory.recall(then, relevant=True))[:1] == [ended]
        assert texts(memory.recall(before))[:2] == [ended, holds]
        assert texts(memory.recall(then))[:2] == [ended, holds]


@pytest.mark.parametrize("when", ["last month", "on 3 May"])
def test_a_change_that_was_told_late_is_what_holds(when):
    changed = f"Dana moved to Bergen {when}"
    with Memory(":memory:") as memory:
        for place, text in enumerate((OSLO, changed, *FILLERS)):
            memory.remember(text, created_at=f"2026-05-{12 + place}", policy=UNDETECTED)
        assert texts(memory.recall("Where does Dana live?"))[:2] == [changed, OSLO]


def test_a_question_about_the_past_sees_what_was_superseded(moved):
    ids = {hit.text: hit.id for hit in ask(moved, "Dana")}
    moved.supersede(ids[OSLO], ids[BERGEN])
    moved.supersede(ids[BERGEN], ids[TRONDHEIM])
    assert texts(ask(moved, "Where does Dana live?")) == [TRONDHEIM, BERGEN, OSLO, NURSE]
    assert texts(ask(moved, "Where does Dana live?", limit=2)) == [TRONDHEIM, NURSE]
    before = ask(moved, "Where did Dana live before?")
    assert texts(before)[:2] == [BERGEN, OSLO]
    assert before[0].superseded_by == (ids[TRONDHEIM],)
    assert texts(ask(moved, "Where did Dana live before Bergen?"))[0] == OSLO
    assert texts(ask(moved, "Where did Dana live before?", adaptive=False)) == [TRONDHEIM, BERGEN, OSLO, NURSE]
    assert texts(moved.recall("How has Dana's home changed over time?"))[:3] == [OSLO, BERGEN, TRONDHEIM]


def test_a_supersession_counts_where_the_texts_do_not_say_it(memory):
    lift, stairs = remember(memory, "The lift is broken", "Everyone takes the stairs this week")
    memory.supersede(lift.id, stairs.id)
    assert texts(ask(memory, "the lift", include_superseded=True)) == [stairs.text, lift.text]
    assert texts(ask(memory, "Was the lift fine before?")) == [lift.text, stairs.text]


def test_the_event_time_counts_not_the_order_of_writing(memory):
    memory.remember(NewRecord(BERGEN, valid_from="2022-01-01", vector=unit(0) + unit(1)), policy=UNDETECTED)
    memory.remember(NewRecord(OSLO, valid_from="2019-01-01", vector=unit(0)), policy=UNDETECTED)
    assert texts(ask(memory, "Where does Dana live?")) == [BERGEN, OSLO]


def test_what_is_announced_holds_from_when_it_was_said(memory):
    memory.remember(
        NewRecord("The review is on Friday", created_at="2026-01-05", valid_from="2026-01-09", vector=unit(0)),
        policy=UNDETECTED,
    )
    memory.remember(
        NewRecord(
            "The review is on Thursday", created_at="2026-01-06", valid_from="2026-01-08", vector=unit(0) + unit(1)
        ),
        policy=UNDETECTED,
    )
    assert texts(ask(memory, "When is the review?")) == ["The review is on Thursday", "The review is on Friday"]


def test_of_one_moment_what_was_written_later_holds(memory):
    for place, text in enumerate((OSLO, BERGEN)):
        memory.remember(NewRecord(text, created_at="2026-01-05", vector=unit(0) + 0.1 * place * unit(1)))
    assert texts(ask(memory, "Where does Dana live?")) == [BERGEN, OSLO]


def test_other_scopes_state_other_things(memory):
    remember(memory, "I live in Oslo", scope="/ann")
    remember(memory, "I live in Bergen", scope="/bob", first=2024)
    hits = ask(memory, "Where do I live?")
    assert [hit.superseded_by for hit in hits] == [(), ()]
    assert not any("change" in hit.match_reasons for hit in hits)


@pytest.mark.parametrize("kind", ["episode", "procedure"])
def test_episodes_and_procedures_are_not_replaced(memory, kind):
    remember(memory, OSLO, BERGEN, kind=kind)
    assert texts(ask(memory, "Where does Dana live?")) == [OSLO, BERGEN]


@pytest.mark.parametrize(
    ("said", "changes"), [("", True), (", and the ferry there was late again, as it is so often", False)]
)
def test_of_a_transcript_only_short_turns_state_something(memory, said, changes):
    for place, city in enumerate(("Oslo", "Bergen")):
        remember(memory, f"Dana lives in {city}{said}", source="talk", position=place, first=2020 + place)
    assert [bool(hit.superseded_by) for hit in ask(memory, "Where does Dana live?")] == [False, changes]


def test_as_of_shows_what_held_then(moved):
    hits = ask(moved, "Where does Dana live?", as_of="2021-06-01T00:00:00Z")
    assert texts(hits) == [BERGEN, OSLO]
    assert hits[1].superseded_by == (hits[0].id,)


def test_many_questions_get_the_answers_of_each(moved):
    questions = ["Where does Dana live?", "Where did Dana live before?", "Where did Dana originally live?", "nurse"]
    every = moved.recall_many(questions, vectors=[unit(0)] * 4, profile={"half_life_days": 0})
    assert [texts(hits) for hits in every] == [texts(ask(moved, question)) for question in questions]


def test_one_signal_alone_and_the_profiles_of_other_systems_are_left_alone(moved):
    for options in ({"mode": "vector"}, {"profile": "hermes"}, {"profile": "memweave"}):
        hits = moved.recall("Where does Dana live?", vector=unit(0), **recall_arguments(options))
        assert not any(hit.superseded_by for hit in hits)


def test_explain_says_what_replaced_a_record(moved):
    hits = ask(moved, "Where does Dana live?")
    options = {"vector": unit(0), "half_life_days": 0}
    first, last = (
        moved.review.explain("Where does Dana live?", hit.id, **recall_arguments(options)) for hit in (hits[0], hits[2])
    )
    assert first.reason == "it is hit 1; it was put before what states the same thing with another value"
    assert last.reason == f"it is hit 3; {hits[0].id} states the same thing with a later value"
    omitted = moved.review.explain(
        "Where does Dana live?", hits[2].id, **recall_arguments({"superseded": "omit", **options})
    )
    assert (omitted.returned, omitted.stage) == (False, "superseded")
    assert omitted.reason == f"it no longer holds; {hits[0].id} states the same thing with a later value"


def test_a_reopened_store_answers_alike(path):
    with Memory(path, embedder="none") as memory:
        remember(memory, OSLO, BERGEN)
        wanted = texts(ask(memory, "Where does Dana live?"))
    with Memory(path, embedder="none") as memory:
        assert texts(ask(memory, "Where does Dana live?")) == wanted == [BERGEN, OSLO]
