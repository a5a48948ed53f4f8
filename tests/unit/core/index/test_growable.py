"""Arrays that grow at the end."""

from __future__ import annotations

import numpy as np
import pytest

from recallite.index.growable import Growable


@pytest.mark.parametrize("rows", [10, 400_000])
def test_rows_of_one_value_are_what_they_say_wherever_something_was_written_before(rows):
    array, wanted = Growable(np.int32), np.empty(0, dtype=np.int32)
    for value in (0, 7, 0, -1):
        array.extend_with(value, rows)
        wanted = np.append(wanted, np.full(rows, value))
        assert np.array_equal(array.array, wanted)
        array.extend(np.arange(3))
        array.truncate(len(wanted) - rows // 2)
        wanted = wanted[: len(array)]
        array.extend_with(0, rows)
        wanted = np.append(wanted, np.zeros(rows, dtype=np.int32))
        assert np.array_equal(array.array, wanted)


def test_the_room_of_an_array_that_was_given_counts_as_written():
    array = Growable.over(np.full(8, 9, dtype=np.int64), 2)
    array.extend_with(0, 3)
    assert array.array.tolist() == [9, 9, 0, 0, 0]


def test_claimed_rows_are_the_callers_to_fill():
    array = Growable(np.int64)
    array.extend(np.array([4]))
    claimed = array.claim(2)
    claimed[:] = 5, 6
    assert array.array.tolist() == [4, 5, 6]
    array.truncate(1)
    array.extend_with(0, 2)
    assert array.array.tolist() == [4, 0, 0]
