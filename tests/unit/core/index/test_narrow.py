"""A narrow column says the same as an array of int64."""

from __future__ import annotations

import numpy as np
import pytest

from recallite.index.growable import Growable, NarrowColumn
from recallite.store.sql.repository import NEVER


@pytest.mark.parametrize(
    ("number", "width"),
    [(3, 1), (-127, 1), (127, 2), (-128, 2), (2**15 - 2, 2), (2**15 - 1, 4), (-(2**31), 8), (NEVER - 1, 8)],
)
def test_it_says_the_same_as_an_array(number, width):
    column, wanted = NarrowColumn(), np.empty(0, dtype=np.int64)
    for values in ([0, NEVER, 5], [], [126], [number, NEVER], [-1]):
        added = np.array(values, dtype=np.int64)
        column.extend(added)
        wanted = np.append(wanted, added)
        assert column.get(np.arange(len(wanted))).tolist() == wanted.tolist()
        # They sort alike: rows without a number come last.
        assert np.argsort(column.array, kind="stable").tolist() == np.argsort(wanted, kind="stable").tolist()
    assert int(column.get(1)) == NEVER
    assert column.array.itemsize == width


def test_a_number_that_is_replaced_may_need_a_wider_type():
    column = NarrowColumn()
    column.extend(np.array([1, NEVER, 3]))
    column.put(np.array([2, 0]), np.array([NEVER, 70_000]))
    assert column.get(np.arange(3)).tolist() == [70_000, NEVER, NEVER]


def test_it_takes_over_saved_numbers_of_any_width_and_nothing_else():
    column = NarrowColumn()
    column.adopt(Growable.over(np.array([4, 2**15 - 1, 0], dtype=np.int16), 2))
    assert column.get(np.arange(2)).tolist() == [4, NEVER]
    for other in (np.array([1.0]), np.array([1], dtype=np.uint8), np.array([[1]])):
        with pytest.raises(ValueError, match=str(other.dtype)):
            column.adopt(Growable.over(other, 1))
