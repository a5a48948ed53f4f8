"""The words of records as bytes."""

from __future__ import annotations

import numpy as np
import pytest

from recallite import Memory
from recallite.errors import StoreCorrupt
from recallite.store.sql.derived import numbers_in, packed_lists, unpacked


def test_a_list_is_sorted_by_number_and_a_count_stays_with_its_word():
    numbers, counts = np.array([300, 7, 5, 4], np.int32), np.array([1, 2, 3, 129], np.uint8)
    lists = packed_lists(numbers, counts, np.array([0, 2, 2, 4]))
    assert lists == [(b"\x07\0\x25\x01", b"\x02\x01"), (b"", b""), (b"\x04\0\x01\0", b"\x81\x03")]
    packed = b"".join(terms for terms, _ in lists)
    assert unpacked(packed, np.array([0, 2, 2, 4])).tolist() == [7, 300, 4, 5]


def test_the_numbers_in_some_lists_are_each_there_once():
    lists = packed_lists(np.array([9, 100_000, 9], np.int32), np.ones(3, np.uint8), np.array([0, 2, 2, 3]))
    assert numbers_in([terms for terms, _ in lists]).tolist() == [9, 100_000]
    assert numbers_in([]).tolist() == []


@pytest.mark.parametrize("terms", [b"", b"\x01\0\x02\0\x03\0", b"\x01\0\x02\0\x03", b"\x01\0\0\0"])
def test_bytes_of_other_lists_are_named_as_damage(terms):
    with pytest.raises(StoreCorrupt, match="recallite rebuild"):
        unpacked(terms, np.array([0, 2]))


def test_words_that_were_cut_are_named_when_they_are_read_and_a_rebuild_mends_them(path):
    with Memory(path, embedder=None) as memory:
        memory.remember("the ship left the harbour")
        with memory._engine.atomic() as writer:
            writer.connection.execute("UPDATE record_terms SET terms = substr(terms, 3)")
        assert "record whose words are not those of its text" in {each.name for each in memory.store.verify().problems}
        with memory._engine.atomic() as writer, pytest.raises(StoreCorrupt, match="the words of a record are not"):
            writer.blocks.term_range((0, 10))
        assert memory.store.rebuild().ok
