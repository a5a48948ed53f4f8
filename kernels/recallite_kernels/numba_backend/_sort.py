"""Sorts into memory that the caller gives: `numpy.sort` would allocate, which kernels do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.numba_backend._jit import exact

RUN = 16  # elements sorted by insertion before runs are merged


@exact
def sort_whole(values: Any, spare: Any, counts: Any, shift: Any, greatest: Any) -> None:
    """Sort int64 values of 0 or more in place by what is above their lowest `shift` bits, at most `greatest`.

    A byte at a time, so without a comparison to predict: 400 rows of a million take a fifth of a merge sort. `spare`
    has room for as many; `counts` is int64 (256,).
    """
    n = np.uintp(values.shape[0])
    while greatest > 0:
        counts[:] = 0
        for i in range(n):
            counts[np.uintp(values[i] >> shift & 255)] += 1
        below = 0
        for byte_ in range(256):
            counts[byte_], below = below, below + counts[byte_]
        for i in range(n):
            byte = np.uintp(values[i] >> shift & 255)
            spare[np.uintp(counts[byte])] = values[i]
            counts[byte] += 1
        for i in range(n):
            values[i] = spare[i]
        shift += 8
        greatest >>= 8


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
