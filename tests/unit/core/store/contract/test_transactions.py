"""Transactions of any store: all or nothing, savepoints, and readers of one commit."""

from __future__ import annotations

import threading

import pytest

from recallite.errors import StoreClosed
from recallite.model.filters import Filter
from tests.unit.core.store.contract.support import NOW, row


def texts(store):
    with store.read() as reader:
        return [record.text for record in reader.records.find(Filter(), NOW)]


def fail(store, write):
    """A transaction that writes, and then fails."""
    with store.atomic() as writer:
        write(writer)
        raise RuntimeError("stop")


def test_a_transaction_that_fails_leaves_nothing(store):
    def write(writer):
        writer.records.insert([row("a")], None)
        writer.tiers.save_working("/s", "{}", NOW)

    with pytest.raises(RuntimeError, match="stop"):
        fail(store, write)
    assert texts(store) == []
    with store.read() as reader:
        assert reader.tiers.working("/s") is None


def test_a_writer_reads_what_it_wrote_before_it_is_committed(store):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("a")], None)
        assert writer.records.get(row_id).id == "a"
        assert writer.records.find_ids(["a"], "/") == {"a": row_id}


def test_within_another_a_transaction_is_a_savepoint(store):
    with store.atomic() as outer:
        assert not store.nested
        outer.records.insert([row("a")], None)
        with pytest.raises(RuntimeError, match="stop"):
            fail(store, lambda inner: inner.records.insert([row("b")], None))
        with store.atomic() as inner:
            assert store.nested
            inner.records.insert([row("c")], None)
        assert not store.nested
    assert texts(store) == ["text of a", "text of c"]


def test_the_outer_transaction_takes_its_savepoints_along(store):
    def write(_):
        with store.atomic() as inner:
            inner.records.insert([row("a")], None)

    with pytest.raises(RuntimeError, match="stop"):
        fail(store, write)
    assert texts(store) == []


def test_words_of_a_transaction_that_failed_are_numbered_again(store):
    with pytest.raises(RuntimeError, match="stop"):
        fail(store, lambda writer: writer.records.insert([row("a", "zebra")], None))
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("b", "zebra giraffe")], None)
        numbers = writer.lexicon.lookup(["zebra", "giraff"])
        assert sorted(numbers.values()) == writer.blocks.terms([row_id]).terms.tolist()


def test_a_reader_sees_one_commit_until_it_asks_for_the_next(store):
    if store.in_memory:
        pytest.skip("readers of a store in memory wait for its writer")
    with store.atomic() as writer:
        writer.records.insert([row("a")], None)
    with store.read() as reader:
        seen = reader.changes.commit()
        with store.atomic() as writer:
            writer.records.insert([row("b")], None)
        assert reader.records.count(Filter(), NOW) == 1
        assert reader.changes.commit() == seen
        reader.changes.refresh()
        assert reader.records.count(Filter(), NOW) == 2
        assert reader.changes.commit() != seen


def test_one_thread_writes_at_a_time(store):
    order = []

    def write():
        with store.atomic() as writer:
            order.append("second")
            writer.records.insert([row("b")], None)

    with store.atomic() as writer:
        other = threading.Thread(target=write)
        other.start()
        writer.records.insert([row("a")], None)
        order.append("first")
    other.join()
    assert order == ["first", "second"]
    assert texts(store) == ["text of a", "text of b"]


def test_a_closed_store_refuses_everything_and_closes_again(store):
    store.close()
    store.close()
    assert store.closed
    for opened in (store.read, store.atomic):
        with pytest.raises(StoreClosed), opened():
            pass
    with pytest.raises(StoreClosed):
        store.check_usable()
