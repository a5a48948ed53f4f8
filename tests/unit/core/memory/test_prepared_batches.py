"""Batches are prepared as columns: what is in them is what each item gives alone."""

from __future__ import annotations

import inspect
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from recallite import Memory
from recallite.errors import InvalidInput, InvalidItem
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite.remember.prepare import Arguments, prepare, prepare_all, uuid7s
from recallite.store.columns import Row, RowColumns
from tests.unit.core.memory.support import WordEmbedder

_POLICY = WritePolicy()
_AT = datetime(2026, 3, 1, tzinfo=UTC)
_ITEMS = [
    {"text": "We moved to Rome last Tuesday", "created_at": _AT},
    {"text": "Café \u00e9t\u00e9", "tags": ["a", "b", "a"], "importance": 0.9, "pinned": True},
    {"text": "Always answer in German", "scope": "/x", "kind": "fact", "topic": "manner", "metadata": {"a": [1]}},
    {"text": "lease", "expires_at": timedelta(days=3), "valid_from": _AT, "valid_until": _AT + timedelta(days=1)},
    {"text": "turn", "source": "s", "position": 4, "context": "Ada", "indexed": False, "id": "mine"},
]
_BY_THE_CLOCK = ("public_id", "created_at", "updated_at", "recorded_from", "expires_at")


def _columns(items):
    return prepare_all(Arguments(items), base="/", max_text_chars=1000, policy=_POLICY)


@pytest.mark.parametrize("given", [dict, lambda item: NewRecord(**item)], ids=["dicts", "records"])
def test_a_batch_gives_each_item_what_it_gets_alone(given):
    for item, row in zip(_ITEMS, _columns([given(item) for item in _ITEMS]), strict=True):
        alone = prepare(NewRecord(**item), base="/", max_text_chars=1000, policy=_POLICY)
        same = dict.fromkeys(_BY_THE_CLOCK)
        assert structs.replace(row, **same) == structs.replace(alone, **same)
        assert row.named == ("id" in item)
        assert (row.expires_at is None) == ("expires_at" not in item)


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


def test_what_is_not_given_to_remember_is_not_checked():
    remembered = inspect.signature(Memory.remember).parameters
    defaults = dict(zip(NewRecord.__struct_fields__[1:], NewRecord.__struct_defaults__, strict=True))
    given = NewRecord("a note", **{name: remembered[name].default for name in defaults.keys() & remembered.keys()})
    assert [*Arguments([given]).given] == ["text"]


@pytest.mark.parametrize("item", [{"importance": 0.5}, {"text": "a", "words": 1}, 7, None])
def test_an_item_that_is_none_is_refused(item):
    with pytest.raises(InvalidInput):
        Arguments([{"text": "fine"}, item])


def test_columns_have_the_fields_of_rows_and_keep_what_was_decided():
    rows = _columns(_ITEMS)
    assert RowColumns.of(rows) is rows
    assert [*RowColumns.__dataclass_fields__][:-4] == [*Row.__struct_fields__]
    rows.topic[1] = "decided"
    assert rows.select([1, 3]).topic == ["decided", None]
    assert rows.select(range(5)).topic[1] == "decided"
    assert RowColumns.of([*rows])[4].public_id == "mine"
    with pytest.raises(IndexError):
        rows[5]


def test_the_refused_item_is_named_after_others_that_were_repeated_or_stored():
    with Memory(":memory:", embedder=None) as memory:
        memory.remember("Ann lives in Rome.", id="n1")
        for before in ("Ann lives in Rome.", {"text": "fresh", "id": "n2", "supersedes": ["n1"]}):
            with pytest.raises(InvalidItem, match="nope") as refused:
                memory.remember_many([before, {"text": "other", "supersedes": ["nope"]}])
            assert refused.value.position == 1
        assert memory.count() == 1


def test_an_id_that_a_batch_has_twice_is_replaced_though_the_first_is_not_indexed():
    items = [{"text": "one note", "id": "n1", "indexed": False}, {"text": "another note", "id": "n1"}]
    with Memory(":memory:", embedder=None) as memory:
        assert memory.remember_many(items, on_existing="replace") == ["n1", "n1"]
        assert memory.get("n1").text == "another note"
        assert memory.store.verify().ok


def test_a_record_that_is_changed_while_it_waits_is_whole():
    with Memory(":memory:", embedder=None) as memory:
        ids = memory.remember_many([f"I work on project {number} with Ann" for number in range(80)])
        memory.update(ids[70], text="I work on nothing now")
        memory.store.catch_up()
        assert memory.store.verify().problems == ()


def test_ids_of_one_call_ascend_while_other_threads_ask_for_theirs():
    calls: list[list[str]] = []

    def ask() -> None:
        calls.extend(uuid7s(9) for _ in range(300))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert all(ids == sorted(ids) for ids in calls)
    every = [each for ids in calls for each in ids]
    assert len({each[:18] for each in every}) == len(every) == 4 * 300 * 9


def test_a_record_that_was_replaced_while_the_embedder_failed_is_embedded_later():
    embedder = WordEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:
        memory.remember("red harbour", id="n1")
        embedder.fail = "raises"
        memory.remember_many([{"text": "blue harbour", "id": "n1"}], on_existing="replace")
        assert memory.store.stats().pending == 1
        embedder.fail = None
        memory.remember("green harbour")
        assert memory.store.stats().pending == 0
