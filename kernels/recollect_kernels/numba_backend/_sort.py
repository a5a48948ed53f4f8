"""Merge sorts into memory that the caller gives: `numpy.sort` would allocate, which kernels do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.numba_backend._jit import exact

RUN = 16  # elements sorted by insertion before runs are merged


@exact
def sort_whole(values: Any, spare: Any) -> None:
    """Sort int64 values in place; `spare` has room for as many."""
    count = values.shape[0]
    for first in range(0, count, RUN):
        for i in range(first + 1, min(first + RUN, count)):
            value, at = values[i], i
            while at > first and values[at - 1] > value:
                values[at] = values[at - 1]
                at -= 1
            values[at] = value
    width = RUN
    while width < count:
        for first in range(0, count, 2 * width):
            middle, stop = min(first + width, count), min(first + 2 * width, count)
            i, j = first, middle
            for at in range(first, stop):
                if i < middle and (j >= stop or values[i] <= values[j]):
                    spare[at] = values[i]
                    i += 1
                else:
                    spare[at] = values[j]
                    j += 1
        for at in range(count):
            values[at] = spare[at]
        width *= 2


@exact
def before(scores: Any, keys: Any, rows: Any, one: Any, other: Any) -> Any:
    """Whether one place goes before another: by descending score, ties by ascending key of the row."""
    if scores[one] != scores[other]:
        return scores[one] > scores[other]
    return keys[np.uintp(rows[one])] < keys[np.uintp(rows[other])]


@exact
def order_by_score(scores: Any, keys: Any, rows: Any, order: Any, spare: Any) -> None:
    """Write the places of `scores`, best first, to `order`, int64; `spare` has room for as many."""
    count = order.shape[0]
    for first in range(0, count, RUN):
        for i in range(first, min(first + RUN, count)):
            at = i
            while at > first and before(scores, keys, rows, i, order[at - 1]):
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    width = RUN
    while width < count:
        for first in range(0, count, 2 * width):
            middle, stop = min(first + width, count), min(first + 2 * width, count)
            i, j = first, middle
            for at in range(first, stop):
                if i < middle and (j >= stop or not before(scores, keys, rows, order[j], order[i])):
                    spare[at] = order[i]
                    i += 1
                else:
                    spare[at] = order[j]
                    j += 1
        for at in range(count):
            order[at] = spare[at]
        width *= 2
