"""A bounded heap of the best k, shared by the kernels that select: its root is the worst kept.

Worse is a lower score or, at equal scores, a higher row, so the order of insertion does not matter. The cache key
covers every file of this package, so a change here is seen by the kernels that use it.
"""

from __future__ import annotations

from typing import Any

from recallite_kernels.numba_backend._jit import helper


@helper
def worse(score_a: Any, row_a: Any, score_b: Any, row_b: Any) -> Any:
    return score_a < score_b or (score_a == score_b and row_a > row_b)


@helper
def sift_down(scores: Any, rows: Any, size: Any, score: Any, row: Any) -> None:
    """Put (score, row) at the root and let it sink."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        right = child + 1
        if right < size and worse(scores[right], rows[right], scores[child], rows[child]):
            child = right
        if not worse(scores[child], rows[child], score, row):
            break
        scores[at] = scores[child]
        rows[at] = rows[child]
        at = child
    scores[at] = score
    rows[at] = row


@helper
def push(scores: Any, rows: Any, size: Any, k: Any, score: Any, row: Any) -> Any:
    """Offer (score, row); returns the new size."""
    if size < k:
        at = size
        while at > 0:
            parent = (at - 1) >> 1
            if not worse(score, row, scores[parent], rows[parent]):
                break
            scores[at] = scores[parent]
            rows[at] = rows[parent]
            at = parent
        scores[at] = score
        rows[at] = row
        return size + 1
    if worse(scores[0], rows[0], score, row):
        sift_down(scores, rows, size, score, row)
    return size


@helper
def sort_best_first(scores: Any, rows: Any, size: Any) -> None:
    """Sort the heap in place, best first."""
    for last in range(size - 1, 0, -1):
        score, row = scores[last], rows[last]
        scores[last], rows[last] = scores[0], rows[0]
        sift_down(scores, rows, last, score, row)
