"""Batches are prepared as columns: what is in them is what each item gives alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from recallite import Memory
from recallite.errors import InvalidInput, InvalidItem
from recallite.model.policies import WritePolicy
from recallite.model.records import NewRecord
from recallite.remember.prepare import Arguments, prepare, prepare_all
from recallite.remember.uuid7 import uuid7s
from recallite.store.columns import RowColumns
from recallite.store.values import Row

_POLICY = WritePolicy()
_AT = datetime(2026, 3, 1, tzinfo=UTC)
_ITEMS = [
    {"text": "We moved to Rome last Tuesday", "created_at": _AT},
    {"text": "Café \u00e9t\u00e9", "tags": ["a", "b", "a"], "importance": 0.9, "pinned": True},
    {"text": "Always answer in German", "scope": "/x", "kind": "fact", "topic": "manner", "metadata": {"a": [1]}},
    {"text": "lease", "expires_after": timedelta(days=3), "event_at": _AT, "event_until": _AT + timedelta(days=1)},
    {"text": "turn", "source": "s", "position": 4, "context": "Ada", "indexed": False, "id": "mine"},
]
_BY_THE_CLOCK = ("public_id", "created_at", "updated_at", "valid_from", "expires_at")


def _columns(items):
    return prepare_all(Arguments(items), base="/", max_text_chars=1000, policy=_POLICY)


@pytest.mark.parametrize("given", [dict, lambda item: NewRecord(**item)], ids=["dicts", "records"])
def test_a_batch_gives_each_item_what_it_gets_alone(given):
    for item, row in zip(_ITEMS, _columns([given(item) for item in _ITEMS]), strict=True):
        alone = prepare(NewRecord(**item), base="/", max_text_chars=1000, policy=_POLICY)
        same = dict.fromkeys(_BY_THE_CLOCK)
        assert structs.replace(row, **same) == structs.replace(alone, **same)
        assert row.named == ("id" in item)
        assert (row.expires_at is None) == ("expires_after" not in item)


def test_rows_of_a_batch_are_in_order_and_not_ahead_of_the_clock():
    rows = _columns([f"line {number}" for number in range(5000)])
    assert rows.created_at == sorted(set(rows.created_at))
    assert rows.public_id == sorted(set(rows.public_id))
    assert rows.created_at[-1] <= datetime.now(UTC).timestamp() * 1e6


def test_ids_are_version_7_and_ascend():
    ids = [*uuid7s(10_000), *uuid7s(1), *uuid7s(3)]
    assert ids == sorted(set(ids))
    assert all(len(each) == 36 and each[14] == "7" and each[19] in "89ab" for each in ids)
    assert len({each[24:] for each in ids}) == len(ids)


def test_the_first_bad_item_of_a_batch_is_named():
    items = [{"text": "fine"}, {"text": "bad", "importance": 2}, {"text": ""}]
    with Memory(":memory:", embedder=None) as memory, pytest.raises(InvalidItem) as refused:
        memory.remember_many(items)
    assert refused.value.position == 1
    assert "importance is 2" in str(refused.value)


@pytest.mark.parametrize("item", [{"importance": 0.5}, {"text": "a", "words": 1}, 7, None])
def test_an_item_that_is_none_is_refused(item):
    with pytest.raises(InvalidInput):
        Arguments([{"text": "fine"}, item])


def test_columns_have_the_fields_of_rows_and_keep_what_was_decided():
    rows = _columns(_ITEMS)
    assert RowColumns.of(rows) is rows
    assert [*RowColumns.__dataclass_fields__][:-3] == [*Row.__struct_fields__]
    rows[1].topic = "decided"
    assert rows.select([1, 3]).topic == ["decided", None]
    assert rows.select(range(5)).topic[1] == "decided"
    assert RowColumns.of([*rows])[4].public_id == "mine"
    with pytest.raises(IndexError):
        rows[5]
