"""A sparse column says the same as an array with a value for every row."""

from __future__ import annotations

import numpy as np
import pytest

from recallite.index.growable import SparseColumn
from recallite.store.sql.repository import NEVER


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_it_says_the_same_as_an_array(share):
    generator = np.random.default_rng(3)
    column, dense = SparseColumn(), np.empty(0, dtype=np.int64)
    for count in (1, 40, 7):
        values = np.where(generator.random(count) < share, generator.integers(0, 90, count), NEVER)
        column.append(len(dense), values)
        dense = np.append(dense, values)
        rows = generator.permutation(len(dense))[:5]
        changed = np.where(generator.random(len(rows)) < 0.5, generator.integers(0, 90, len(rows)), NEVER)
        column.put(rows, changed)
        dense[rows] = changed
        every = np.arange(len(dense))
        assert column.get(every[::-1]).tolist() == dense[::-1].tolist()
        assert column.rows.tolist() == np.flatnonzero(dense != NEVER).tolist()
        assert column.up_to(50).tolist() == np.flatnonzero(dense <= 50).tolist()
        assert column.above(50).tolist() == np.flatnonzero((dense > 50) & (dense != NEVER)).tolist()
        column.check(len(dense))


def test_what_equals_the_usual_value_is_not_kept():
    column, usual = SparseColumn(), np.array([5, 6, 7], dtype=np.int64)
    column.append(10, np.array([5, 9, 7], dtype=np.int64), usual)
    assert (column.rows.tolist(), column.values.tolist()) == ([11], [9])
    column.put(np.array([12, 11, 10]), np.array([8, 6, 5], dtype=np.int64), usual[::-1])
    assert (column.rows.tolist(), column.values.tolist()) == ([12], [8])


@pytest.mark.parametrize("rows", [3, 12])
def test_rows_that_are_not_there_are_seen(rows):
    column = SparseColumn()
    column.append(rows, np.array([1], dtype=np.int64))
    with pytest.raises(ValueError, match="wanted 0 to"):
        column.check(3)


def test_rows_that_do_not_ascend_are_seen():
    column = SparseColumn()
    column.append(1, np.array([1], dtype=np.int64))
    column.append(1, np.array([1], dtype=np.int64))
    with pytest.raises(ValueError, match="ascend"):
        column.check(3)
