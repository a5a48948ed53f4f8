"""The index follows a write at once where a recall was before it: with what the change feed tells, and no more."""

from __future__ import annotations

import threading
from contextlib import suppress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recallite import Memory
from recallite.model.records import NewRecord
from tests.limits import LAST_RESORT_SECONDS, examples
from tests.unit.core.index.test_same_as_reopened import answers, apply, changes
from tests.unit.core.memory.support import PLAIN, unit

FAST = type(PLAIN)(embedder="none", durability="normal")


def index_of(memory):
    return memory._engine.index


def is_current(memory):
    """Whether the index has all that was written, without a recall."""
    with memory._engine.store.read() as reader:
        return index_of(memory).matches(reader)


def arrays_of(memory):
    return {name: array.tolist() for name, array in index_of(memory).arrays().items()}


def recalled(memory):
    memory.recall("apple", vector=unit(1, 8))
    return memory


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(sequence=st.lists(st.one_of(changes, st.just(("recall",))), min_size=4, max_size=25))
def test_an_index_that_followed_writes_is_the_one_that_reads_the_feed(tmp_path_factory, sequence):
    path = str(tmp_path_factory.mktemp("store") / "agent.db")
    ids = []
    with Memory(path, settings=FAST) as writing, Memory(path, settings=FAST) as reading:
        writing.remember(NewRecord("apple", vector=unit(0, 8)))
        recalled(writing), recalled(reading)
        for seed, change in enumerate(sequence, 1):
            apply(writing, ids, seed, change)
            recalled(writing), recalled(reading)
            with reading._engine.store.read() as reader:
                assert reader.changes.matches(index_of(writing).commit)
                assert reader.changes.matches(index_of(reading).commit)
            assert arrays_of(writing) == arrays_of(reading)
            followed = answers(writing)
    with Memory(path, settings=FAST) as reopened:
        assert answers(reopened) == followed


def test_the_write_after_a_recall_updates_the_index_and_those_after_it_do_not(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember(NewRecord("apple one", vector=unit(0)))
        assert index_of(memory).commit is None
        recalled_with = memory.recall("apple", vector=unit(0))
        memory.remember(NewRecord("apple two", vector=unit(1)))
        assert is_current(memory)
        assert len(index_of(memory).table) == len(recalled_with) + 1 == 2
        memory.remember(NewRecord("apple three", vector=unit(2)))
        assert not is_current(memory)
        assert len(memory.recall("apple")) == 3


def test_many_records_are_left_to_the_recall(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("apple")
        memory.recall("apple")
        memory.remember_many([f"apple number {number}" for number in range(100)])
        assert len(index_of(memory).table) == 1
        assert len(memory.recall("apple", limit=200)) == 101


def test_a_write_does_not_wait_for_a_recall(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("apple one")
        memory.recall("apple")
        with index_of(memory).lock.reading():
            writing = threading.Thread(target=memory.remember, args=("apple two",))
            writing.start()
            writing.join(LAST_RESORT_SECONDS)
            assert not writing.is_alive()
            assert not is_current(memory)
        assert len(memory.recall("apple")) == 2


def test_what_is_rolled_back_is_in_no_index(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("apple one")
        memory.recall("apple")
        before = arrays_of(memory)
        with suppress(ZeroDivisionError), memory.transaction():
            memory.remember("apple two")
            assert arrays_of(memory) == before
            raise ZeroDivisionError
        assert arrays_of(memory) == before
        with memory.transaction():
            memory.remember("apple three")
        assert [hit.text for hit in memory.recall("apple three", limit=1)] == ["apple three"]
        assert len(memory.recall("apple")) == 2


def test_what_another_store_wrote_between_is_followed_too(path):
    with Memory(path, settings=PLAIN) as one, Memory(path, settings=PLAIN) as other:
        one.remember(NewRecord("apple one", vector=unit(0, 8)))
        recalled(one)
        other.remember(NewRecord("apple two", vector=unit(1, 8), source="s", position=1))
        other.remember(NewRecord("apple three", vector=unit(2, 8), kind="note", scope="/a"))
        one.remember(NewRecord("apple four", vector=unit(3, 8), source="s", position=0))
        assert is_current(one)
        recalled(other)
        assert arrays_of(one) == arrays_of(other)
        assert len(one.recall("apple")) == 4


def test_a_fault_while_the_index_follows_is_no_fault_of_the_write(path, monkeypatch):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("apple one")
        memory.recall("apple")
        monkeypatch.setattr(index_of(memory), "_append", lambda *_: 1 / 0)
        written = memory.remember("apple two")
        monkeypatch.undo()
        assert {hit.id for hit in memory.recall("apple two", limit=1)} == {written.id}
        assert len(memory.recall("apple")) == 2


def test_what_supersedes_what_is_read_again_where_a_write_changed_it(path):
    """Values that outlive an added record do not outlive a supersession."""
    with Memory(path, settings=PLAIN) as memory:
        memory.remember("I live in Berlin.", created_at="2026-01-01T00:00:00Z")
        memory.recall("where do I live")
        memory.remember("The apple is red.", created_at="2026-01-02T00:00:00Z")
        assert [hit.text for hit in memory.recall("where do I live", limit=1)] == ["I live in Berlin."]
        memory.remember("I live in Oslo now.", created_at="2026-01-03T00:00:00Z")
        moved = ["I live in Oslo now.", "I live in Berlin."]
        assert [hit.text for hit in memory.recall("where do I live")][:2] == moved
        memory.remember("The pear is green.", created_at="2026-01-04T00:00:00Z")
        assert [hit.text for hit in memory.recall("where do I live")][:2] == moved
        assert np.count_nonzero(index_of(memory).table.open) == 4
