"""The times that a question names, and what they do to the ranking."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recallite.model.records import NewRecord
from recallite.text.questions import spans_of
from recallite.text.words import query_terms

# A Thursday.
ASKED = datetime(2023, 8, 17, 15, 30, tzinfo=UTC)
DAY_US = 86_400_000_000
SECOND_US = 1_000_000


def spans(text, asked=ASKED):
    """The spans as pairs of days, the second excluded."""
    found = spans_of(text, query_terms(text), int(asked.timestamp()) * SECOND_US)
    return [(_day(begin), _day(end)) for begin, end, _ in found]


def _day(microseconds):
    return (datetime(1970, 1, 1) + timedelta(microseconds=microseconds)).date().isoformat()


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("What did I do on 7 May 2023?", "2023-05-07", "2023-05-08"),
        ("What did I do on May 7th, 2023?", "2023-05-07", "2023-05-08"),
        ("What did I do on the 7th of May 2023?", "2023-05-07", "2023-05-08"),
        ("What did I do on 2023-05-07?", "2023-05-07", "2023-05-08"),
        ("What did I do on 5/7/2023?", "2023-05-07", "2023-05-08"),
        ("What did I do on 17/5/2023?", "2023-05-17", "2023-05-18"),
        ("What happened in June 2022?", "2022-06-01", "2022-07-01"),
        ("What happened in 2022-06?", "2022-06-01", "2022-07-01"),
        ("What happened in December 2022?", "2022-12-01", "2023-01-01"),
        ("What happened in 2022?", "2022-01-01", "2023-01-01"),
        ("Who led in Q3 2022?", "2022-07-01", "2022-10-01"),
        ("Where were we in the summer of 2022?", "2022-06-01", "2022-09-01"),
        ("Where were we in winter 2022?", "2022-12-01", "2023-03-01"),
        ("What did I eat today?", "2023-08-17", "2023-08-18"),
        ("What did I eat yesterday?", "2023-08-16", "2023-08-17"),
        ("What did I eat the day before yesterday?", "2023-08-15", "2023-08-16"),
        ("What is planned for tomorrow?", "2023-08-18", "2023-08-19"),
        ("What did we watch last night?", "2023-08-16", "2023-08-17"),
        ("What did I say this morning?", "2023-08-17", "2023-08-18"),
        ("What did I do last week?", "2023-08-07", "2023-08-14"),
        ("What will I do next weekend?", "2023-08-26", "2023-08-28"),
        ("What did I do last month?", "2023-07-01", "2023-08-01"),
        ("What did I do last year?", "2022-01-01", "2023-01-01"),
        ("What did Anna say on Monday?", "2023-08-14", "2023-08-15"),
        ("What did Anna say on Thursday?", "2023-08-17", "2023-08-18"),
        ("What did Anna say last Thursday?", "2023-08-10", "2023-08-11"),
        ("What is on next Friday?", "2023-08-18", "2023-08-19"),
        ("What happened last May?", "2023-05-01", "2023-06-01"),
        ("What happened last December?", "2022-12-01", "2023-01-01"),
        ("What happens next December?", "2023-12-01", "2024-01-01"),
        ("Where did we go last summer?", "2022-06-01", "2022-09-01"),
        ("What did I buy three days ago?", "2023-08-14", "2023-08-15"),
        ("What did I buy two weeks ago?", "2023-07-31", "2023-08-07"),
        ("What did I buy a couple of weeks ago?", "2023-07-27", "2023-08-10"),
        ("What did I buy in the last 10 days?", "2023-08-07", "2023-08-18"),
        ("What did I do from 3 May 2023 to 9 May 2023?", "2023-05-03", "2023-05-10"),
        ("What did I do between June and August 2022?", "2022-06-01", "2022-09-01"),
        ("What has happened since 2021?", "2021-01-01", "9999-12-31"),
        ("What happened before May 2023?", "0001-01-01", "2023-05-01"),
    ],
)
def test_one_time(text, begin, end):
    assert spans(text) == [(begin, end)]


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("What happened in May?", "-05-01", "-06-01"),
        ("What happened on the 3rd of June?", "-06-03", "-06-04"),
        ("What happened between June and August?", "-06-01", "-09-01"),
    ],
)
def test_without_a_year_it_is_any_year(text, begin, end):
    assert spans(text)[:3] == [(f"{year}{begin}", f"{year}{end}") for year in (2024, 2023, 2022)]
    assert len(spans(text)) == 12


def test_a_time_that_is_not_over_when_asked_may_begin_last_year():
    asked = datetime(2023, 3, 1, tzinfo=UTC)
    assert ("2022-05-01", "2022-06-01") in spans("What happened in May?", asked)
    assert ("2022-11-01", "2023-03-01") in spans("What happened between November and February?", asked)


def test_several_times():
    assert spans("Compare May 2022 and June 2023") == [("2022-05-01", "2022-06-01"), ("2023-06-01", "2023-07-01")]


@pytest.mark.parametrize(
    "text",
    [
        "What database are we using?", "May I ask this?", "Who is June?", "How do I march on?", "The fall of Rome",
        "It costs 2000 dollars", "What happened on 2022-02-30?", "the 1990s", "this and next", "", "last",
        "9999-99-99", "the last time we met", "a sunny day",
    ],
)  # fmt: skip
def test_no_time(text):
    assert spans(text) == []


@pytest.mark.parametrize("moment", [-(2**62), 2**62, -62135596800 * SECOND_US, 253402300799 * SECOND_US])
def test_moments_far_from_our_years_are_no_error(moment):
    for text in (
        "What happened in May?",
        "yesterday",
        "two weeks ago",
        "last year",
        "since 2021",
        "tomorrow",
        "Monday",
    ):
        spans_of(text, query_terms(text), moment)


LEAP_YEAR, NO_LEAP_YEAR = datetime(2024, 6, 1, tzinfo=UTC), datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize("today", [LEAP_YEAR, NO_LEAP_YEAR])
def test_29_february_is_that_of_leap_years(today):
    leap_days = [("2024-02-29", "2024-03-01"), ("2020-02-29", "2020-03-01"), ("2016-02-29", "2016-03-01")]
    assert spans("What happened on 29 February?", today) == leap_days
    assert ("2023-03-01", "2023-03-04") in spans("from 29 February to 3 March 2023", today)
    assert spans("between 29 February and 5 January", today)
    assert spans("What happened on 31 April?", today) == []


@pytest.mark.parametrize("today", [LEAP_YEAR, NO_LEAP_YEAR])
def test_february_of_any_year_ends_with_its_last_day(today):
    found = spans("What happened in February?", today)
    assert {("2024-02-01", "2024-03-01"), ("2023-02-01", "2023-03-01")} <= set(found)
    assert {end[5:] for _, end in found} == {"03-01"}


@pytest.mark.parametrize("text", ["in \u017fummer", "\u017fix weeks ago", "last \u017fpring", "on \u017funday"])
def test_letters_that_match_but_are_others_are_no_error(text):
    spans_of(text, query_terms(text), 0)


DIARY = [("2022-05-20", "We cooked ratatouille"), ("2023-05-12", "We cooked risotto"), ("2023-07-01", "We cooked soup")]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What did we cook in July?", "We cooked soup"),
        ("What did we cook in May 2023?", "We cooked risotto"),
        ("What did we cook in 2022?", "We cooked ratatouille"),
    ],
)
def test_a_record_of_the_time_comes_first(memory, question, first):
    for day, text in DIARY:
        memory.remember(text, valid_from=day, created_at=ASKED - timedelta(minutes=1))
    hits = memory.recall(question, as_of=ASKED)
    assert hits[0].text == first
    assert "date" in hits[0].match_reasons
    assert hits[0].signals["date"] == 1.0
    assert {hit.signals["date"] for hit in memory.recall(question, as_of=ASKED, profile={"date_weight": 0})} == {0.0}
    plain = {hit.text: hit.signals["spread"] for hit in hits}
    assert hits[0].score == pytest.approx(min(1.25 * plain[first], 1.0), rel=1e-3)


def test_what_is_told_soon_after_counts_in_part_and_creation_stands_in_for_the_event(memory):
    memory.remember("We cooked soup", created_at="2023-06-03")
    (hit,) = memory.recall("What did we cook in May 2023?", as_of=ASKED)
    assert hit.signals["date"] == pytest.approx(1 - 2 / 7)
    (told,) = (memory.review.explain("What did we cook in May 2023?", hit.id, as_of=ASKED),)
    assert told.signals["date"] == hit.signals["date"]


def test_last_week_is_seen_from_as_of(memory):
    memory.remember("We cooked soup", created_at="2023-08-08")
    assert memory.recall("What did we cook last week?", as_of=ASKED)[0].signals["date"] == 1.0
    assert memory.recall("What did we cook last week?")[0].signals["date"] == 0.0


def test_an_interval_counts_by_the_share_that_the_question_names(memory):
    memory.remember(NewRecord("We cooked soup", valid_from="2023-08-07", valid_until="2023-08-13"))
    shares = {"on 2023-08-10": 1 / 7, "in August 2023": 1.0, "from 2023-08-12 to 2023-08-20": 2 / 7, "in 2022": 0.0}
    for time, share in shares.items():
        (hit,) = memory.recall(f"What did we cook {time}?")
        assert hit.signals["date"] == pytest.approx(share)


def test_a_time_found_in_the_text_is_met_beside_the_one_at_which_it_was_told(memory):
    memory.remember("We cooked soup two months ago", created_at="2023-08-10")
    for text in ("What did we cook in June 2023?", "What did we cook last week?"):
        assert memory.recall(text, as_of=ASKED)[0].signals["date"] > 0.6
    assert memory.recall("What did we cook in April 2023?", as_of=ASKED)[0].signals["date"] == 0.0


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("Was haben wir im Mai 2023 gekocht?", "2023-05-01", "2023-06-01"),
        ("Was haben wir letzte Woche gekocht?", "2023-08-07", "2023-08-14"),
        ("Qu'avons-nous cuisiné en mai 2023 ?", "2023-05-01", "2023-06-01"),
        ("¿Qué cocinamos la semana pasada?", "2023-08-07", "2023-08-14"),
        ("O que cozinhámos na semana passada?", "2023-08-07", "2023-08-14"),
        ("Che cosa abbiamo cucinato la settimana scorsa?", "2023-08-07", "2023-08-14"),
        ("Wat hebben we vorige week gekookt?", "2023-08-07", "2023-08-14"),
    ],
)
def test_questions_in_other_languages(text, begin, end):
    assert spans(text) == [(begin, end)]
