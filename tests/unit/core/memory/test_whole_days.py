"""A day, month or year alone is meant whole: one rule for every time that a caller gives."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from recallite import Filter, Memory, NewRecord, Settings
from recallite.errors import InvalidInput, InvalidItem
from recallite.model.checks import check_time, to_datetime

DAY = timedelta(days=1)


@pytest.fixture
def memory():
    with Memory(":memory:", settings=Settings(embedder="none")) as opened:
        yield opened


def texts(records):
    return sorted(record.text for record in records)


@pytest.mark.parametrize(
    ("time", "begin", "end"),
    [("2024-02-29", (2024, 2, 29), (2024, 3, 1)), (date(2024, 12, 31), (2024, 12, 31), (2025, 1, 1)),
     ("2024-02", (2024, 2, 1), (2024, 3, 1)), ("2024", (2024, 1, 1), (2025, 1, 1))],
)  # fmt: skip
def test_the_field_decides_which_moment_of_a_day_is_meant(time, begin, end):
    first, after = datetime(*begin, tzinfo=UTC), datetime(*end, tzinfo=UTC)
    for name in ("since", "valid_from", "created_at"):
        assert to_datetime(check_time(time, name)) == first
    for name in ("until", "as_of", "valid_at"):
        assert to_datetime(check_time(time, name)) == after - timedelta(microseconds=1)
    for name in ("valid_until", "expires_at"):
        assert to_datetime(check_time(time, name)) == after
    for name in ("since", "until", "valid_until"):
        assert to_datetime(check_time(first, name)) == first


def test_the_last_day_of_the_calendar_has_an_end():
    assert to_datetime(check_time("9999-12-31", "expires_at")).year == 9999
    assert to_datetime(check_time("9999", "until")).year == 9999


def test_until_a_day_holds_what_was_said_on_it(memory):
    for day in (4, 5, 6):
        memory.remember(f"Harvest of day {day}", created_at=f"2024-03-0{day}T17:30:00+00:00")
    for until, found in {"2024-03-05": 2, "2024-03-04": 1, "2024-03": 3, "2024": 3, "2024-02": 0}.items():
        assert len(memory.recall("harvest", filter=Filter(until=until))) == found
    assert texts(memory.list(since="2024-03-05", until="2024-03-05")) == ["Harvest of day 5"]
    assert texts(memory.list(since=date(2024, 3, 6), until=date(2024, 3, 6))) == ["Harvest of day 6"]
    assert texts(memory.list(until="2024-03-05T17:29:59+00:00")) == ["Harvest of day 4"]


def test_as_of_a_day_shows_the_state_at_its_end(memory):
    record = memory.remember("The toll is 3 euros", created_at="2024-03-05T09:00:00+00:00")
    assert memory.list(as_of="2024-03-04") == []
    assert [each.id for each in memory.list(as_of="2024-03-05")] == [record.id]
    assert [each.id for each in memory.list(valid_at="2024-03-05")] == [record.id]


def test_a_statement_that_is_valid_until_a_day_holds_on_it(memory):
    memory.remember(NewRecord("The road is closed", valid_from="2024-03-04", valid_until="2024-03-05"))
    memory.remember(NewRecord("The market is open", valid_from="2024-03-05", valid_until="2024-03-05"))
    assert texts(memory.list(valid_at="2024-03-04")) == ["The road is closed"]
    assert texts(memory.list(valid_at="2024-03-05")) == ["The market is open", "The road is closed"]
    assert memory.list(valid_at="2024-03-06") == []
    with pytest.raises(InvalidInput, match="valid_until"):
        memory.remember(NewRecord("Never", valid_from="2024-03-05", valid_until="2024-03-04"))


def test_where_compares_with_all_of_a_day(memory):
    for hour in ("04T23:59:59", "05T00:00:00", "05T18:00:00", "06T00:00:00"):
        memory.remember(hour, created_at=f"2024-03-{hour}+00:00")
    counts = {"eq": 2, "ne": 2, "gt": 1, "gte": 3, "lt": 1, "lte": 3}
    for operator, count in counts.items():
        assert memory.count(where={"created_at": {operator: "2024-03-05"}}) == count, operator
    assert memory.count(where={"created_at": {"in": ["2024-03-04", "2024-03-06"]}}) == 2
    assert memory.count(where={"created_at": {"nin": ["2024-03"]}}) == 0
    with pytest.raises(InvalidInput):
        memory.count(where={"created_at": {"contains": "2024"}})


def test_where_knows_that_an_end_is_the_end_of_its_day(memory):
    memory.remember(NewRecord("one", expires_at="2999-03-05", valid_until="2999-03-05"))
    for field in ("expires_at", "valid_until"):
        for day, equal in {"2999-03-04": 0, "2999-03-05": 1, "2999-03-06": 0}.items():
            assert memory.count(where={field: day}) == equal
        assert memory.count(where={field: {"lte": "2999-03-05"}}) == 1
        assert memory.count(where={field: {"gt": "2999-03-05"}}) == 0
        assert memory.count(where={field: {"lt": "2999-03-05"}}) == 0


def test_a_memory_that_expires_today_is_shown_today(memory):
    for expiry in (str(datetime.now(UTC).date()), "today"):
        before = datetime.now(UTC).date()
        record = memory.remember(f"The gate code until {expiry}", expires_at=expiry)
        assert record.expires_at - datetime(before.year, before.month, before.day, tzinfo=UTC) in (DAY, 2 * DAY)
        assert record.id in {each.id for each in memory.list()}


@pytest.mark.parametrize("expiry", ["yesterday", "2020-01-01", "2020", datetime(2020, 1, 1, tzinfo=UTC), "now"])
def test_an_expiry_that_is_over_is_refused(memory, expiry):
    with pytest.raises(InvalidInput, match="no read would ever show it"):
        memory.remember("The gate code is 81", expires_at=expiry)
    with pytest.raises(InvalidItem, match="no read would ever show it"):
        memory.remember_many(["fine", {"text": "The gate code is 82", "expires_at": expiry}])
    assert memory.count() == 0


def test_what_was_said_in_the_past_may_have_expired_since(memory):
    memory.remember("The gate code was 80", created_at="2019-05-01", expires_at="2019-06-30")
    assert memory.list() == []
    assert texts(memory.list(as_of="2019-06-29")) == ["The gate code was 80"]
    with pytest.raises(InvalidInput, match="no read would ever show it"):
        memory.remember("The gate code was 79", created_at="2019-05-01", expires_at="2019-04-30")


@pytest.mark.parametrize(
    "written", ["2026-03-05T23:30:00-08:00", datetime(2026, 3, 5, 23, 30, tzinfo=timezone(timedelta(hours=-8)))]
)
def test_a_day_in_a_text_is_one_of_where_it_was_written(memory, written):
    begins = {"I repaired the pump yesterday": (2026, 3, 4), "The inspection is on 2026-03-20": (2026, 3, 20)}
    for text, day in begins.items():
        record = memory.remember(text, created_at=written)
        assert record.valid_from == datetime(*day, 8, tzinfo=UTC)
        assert record.valid_until == record.valid_from + DAY


def test_a_time_of_day_in_a_text_is_one_of_where_it_was_written(memory):
    record = memory.remember("The inspection is tomorrow at 3 pm", created_at="2026-03-05T23:30:00+09:00")
    assert record.valid_from == datetime(2026, 3, 6, 6, tzinfo=UTC)


def test_a_life_of_any_length_is_taken(memory):
    assert memory.remember("A note for a moment", expires_at=timedelta(microseconds=1)).outcome == "created"
