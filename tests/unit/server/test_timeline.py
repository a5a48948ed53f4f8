"""How many memories tell of each day, week and month."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite_server.timeline import timeline
from tests.unit.core.memory.support import STORING


def counted(memory, bucket, **fields):
    return [(each.start.isoformat()[:10], each.memories) for each in timeline(memory, bucket, **fields)]


@pytest.fixture
def told():
    with Memory(":memory:", settings=STORING) as memory:
        memory.remember("one", created_at="2024-02-29T23:59:59Z")
        memory.remember("two", created_at="2024-03-01T00:00:00Z", scope="/a")
        memory.remember("three", created_at="2024-05-01", valid_from="2024-03-03T12:00:00Z", scope="/a/b", tags=["t"])
        memory.remember("four", created_at="2024-03-04T01:00:00+02:00")
        memory.remember("long ago", created_at="2024-03-04", valid_from="1969-12-31T23:00:00Z")
        yield memory


def test_days(told):
    assert counted(told, "day") == [
        ("1969-12-31", 1), ("2024-02-29", 1), ("2024-03-01", 1), ("2024-03-03", 2),
    ]  # fmt: skip


def test_weeks_begin_on_monday(told):
    assert counted(told, "week") == [("1969-12-29", 1), ("2024-02-26", 4)]


def test_months(told):
    assert counted(told, "month") == [("1969-12-01", 1), ("2024-02-01", 1), ("2024-03-01", 3)]


def test_a_filter_and_a_scope_choose(told):
    assert counted(told, "month", since="2024-03-01") == [("2024-03-01", 3)]
    assert counted(told, "day", tags=["t"]) == [("2024-03-03", 1)]
    assert counted(told, "day", scope="/a") == [("2024-03-01", 1), ("2024-03-03", 1)]
    assert counted(told.scoped("/a"), "day") == [("2024-03-01", 1), ("2024-03-03", 1)]
    assert counted(told.scoped("/a"), "day", scope="/b") == [("2024-03-03", 1)]
    assert counted(told.scoped("/nowhere"), "day") == []


def test_what_is_gone_or_superseded_is_not_counted(told):
    old = told.remember("the old one", created_at="2024-06-01").id
    told.remember(NewRecord("the new one", created_at="2024-07-01", supersedes=old))
    expired = told.remember("expired", created_at="2024-08-01", expires_at="2024-08-02").id
    assert counted(told, "month", since="2024-06-01") == [("2024-07-01", 1)]
    assert counted(told, "month", since="2024-06-01", include_superseded=True) == [("2024-06-01", 1), ("2024-07-01", 1)]
    told.forget(expired)


def test_an_unknown_bucket_is_refused(told):
    with pytest.raises(InvalidInput, match="bucket"):
        timeline(told, "year")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENTS = st.integers(min_value=-62_135_596_800_000_000, max_value=253_402_300_799_999_999)


@given(st.lists(_MOMENTS, min_size=1, max_size=20))
def test_every_moment_is_in_its_day_week_and_month(moments):
    times = [_EPOCH + timedelta(microseconds=moment) for moment in moments]
    with Memory(":memory:", settings=STORING) as memory:
        memory.remember_many({"text": f"text {number}", "valid_from": time} for number, time in enumerate(times))
        days = timeline(memory, "day")
        assert Counter({each.start.date(): each.memories for each in days}) == Counter(time.date() for time in times)
        months = {each.start.date(): each.memories for each in timeline(memory, "month")}
        assert months == Counter(time.date().replace(day=1) for time in times)
        weeks = timeline(memory, "week")
        assert sum(each.memories for each in weeks) == len(times)
        assert all(each.start.weekday() == 0 or each.start.date() == datetime.min.date() for each in weeks)
        assert [each.start for each in days] == sorted(each.start for each in days)
