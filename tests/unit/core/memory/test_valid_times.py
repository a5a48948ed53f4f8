"""Valid times that are found in the text: stored as an interval, and never in the place of one that is given."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy

THURSDAY = "2023-08-17T15:30:00Z"


def day(number, month=8, year=2023):
    return datetime(year, month, number, tzinfo=UTC)


def test_a_date_in_the_text_becomes_the_event_time(memory):
    stored = memory.remember("I went to the dentist last Tuesday", created_at=THURSDAY)
    assert (stored.valid_from, stored.valid_until, stored.valid_resolved) == (day(15), day(16), True)
    assert memory.get(stored.id).valid_until == day(16)
    assert stored.text == "I went to the dentist last Tuesday"


def test_what_holds_since_a_time_is_open(memory):
    stored = memory.remember("I have worked at Acme since 2019", created_at=THURSDAY)
    assert (stored.valid_from, stored.valid_until, stored.valid_resolved) == (day(1, 1, 2019), None, True)


@pytest.mark.parametrize(
    ("given", "day"), [({"valid_from": "2020-01-01"}, "2020-01-01"), ({"valid_until": "2030-01-01"}, "2030-01-02")]
)
def test_a_time_that_is_given_stays(memory, given, day):
    stored = memory.remember(NewRecord("I went to the dentist last Tuesday", created_at=THURSDAY, **given))
    (name,) = given
    assert getattr(stored, name).date().isoformat() == day
    assert not stored.valid_resolved
    assert None in (stored.valid_from, stored.valid_until)


@pytest.mark.parametrize("kind", ["chunk", "procedure"])
def test_documents_and_procedures_are_not_dated(memory, kind):
    assert memory.remember("Tested last Tuesday", kind=kind, created_at=THURSDAY).valid_from is None


def test_it_can_be_switched_off(memory):
    policy = WritePolicy(resolve_dates=False)
    assert memory.remember("I left last Tuesday", created_at=THURSDAY, policy=policy).valid_from is None


def test_many_are_dated_as_one_is(memory):
    items = [{"text": text, "created_at": THURSDAY} for text in ("I left last week", "I like tea")]
    first, second = map(memory.get, memory.remember_many(items))
    assert (first.valid_from, first.valid_until) == (day(7), day(14))
    assert (second.valid_from, second.valid_resolved) == (None, False)


def test_a_new_text_is_dated_anew(memory):
    stored = memory.remember("I went to the dentist last Tuesday", created_at=THURSDAY)
    changed = memory.update(stored.id, text="I went to the dentist last Monday")
    assert (changed.valid_from, changed.valid_resolved) == (day(14), True)
    assert memory.update(stored.id, importance=0.9).valid_from == day(14)
    undated = memory.update(stored.id, text="I went to the dentist")
    assert (undated.valid_from, undated.valid_until, undated.valid_resolved) == (None, None, False)
    assert memory.update(stored.id, text="I went to the dentist in 2019").valid_from == day(1, 1, 2019)
    given = memory.update(stored.id, text="I went last Friday", valid_from="2020-01-01")
    assert (given.valid_from, given.valid_until, given.valid_resolved) == (day(1, 1, 2020), None, False)
    assert memory.update(stored.id, text="I went last Saturday").valid_from == day(1, 1, 2020)


def test_filters_use_the_interval(memory):
    memory.remember("We were in Norway last week", created_at=THURSDAY)
    assert memory.list(since="2023-08-13", until="2023-08-13")
    assert not memory.list(since="2023-08-14")
    assert not memory.list(until="2023-08-06T23:59:59Z")


def test_an_export_restores_what_was_found(memory, tmp_path):
    stored = memory.remember("I left last Tuesday", created_at=THURSDAY)
    plain = memory.remember("Left alone last Tuesday", created_at=THURSDAY, policy=WritePolicy(resolve_dates=False))
    memory.transfer.export(tmp_path / "all.jsonl")
    memory.forget([stored.id, plain.id])
    memory.transfer.import_(tmp_path / "all.jsonl")
    assert memory.get(stored.id).valid_until == day(16)
    assert memory.get(stored.id).valid_resolved
    assert memory.get(plain.id).valid_from is None


def test_a_past_that_was_told_later_supersedes_what_was_told_before(memory):
    old = memory.remember("Dana lives in Oslo", created_at="2023-08-10")
    new = memory.remember(NewRecord("Dana moved to Bergen last month", created_at=THURSDAY, supersedes=old.id))
    assert new.valid_from == day(1, 7)
    assert memory.get(old.id).superseded_by == (new.id,)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("Ada works at Acme and flies to Oslo on 3 March 2090", True),
        ("The office is in Turin; it moves to Milan on 3 March 2090", True),
        ("I'm vegetarian. The party is on 3 March 2090.", True),
        ("The exam is on 3 March 2090", False),
        ("The office moves to Milan on 3 March 2090", False),
    ],
)
def test_a_time_to_come_bounds_its_own_clause(memory, text, holds):
    record = memory.remember(text)
    assert record.valid_resolved
    assert record.valid_until == datetime(2090, 3, 4, tzinfo=UTC)
    assert [each.text for each in memory.list(valid_at="now")] == [text] * holds
    assert [each.text for each in memory.list(valid_at="2090-03-03")] == [text]
    assert [each.text for each in memory.list(since="2090-03-01", until="2090-03-31")] == [text]
