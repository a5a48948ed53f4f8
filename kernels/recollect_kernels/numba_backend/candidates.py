"""The candidates of one query, JIT: the two lists joined, and the neighbours of the best added."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.numba_backend._heap import push
from recollect_kernels.numba_backend._jit import exact

ORIGIN_BITS = 24  # of a sort key; the rest, 39 bits, is the row


@exact
def join(lists: Any, query: Any, n: Any) -> Any:
    """The union of the two lists of one query: rows ascending, cosines and BM25, NaN where a list lacks the row.

    The first result is False where a row is not in 0..n-1. Row and origin are sorted as one number.
    """
    some, others = lists.vector_counts[query], lists.keyword_counts[query]
    vector_rows, keyword_rows = lists.vector_rows[query], lists.keyword_rows[query]
    cosines, scores = lists.cosines[query], lists.bm25[query]
    keys = np.empty(some + others, np.int64)
    in_range = True
    for at in range(some):
        in_range &= 0 <= vector_rows[at] < n
        keys[at] = (vector_rows[at] << ORIGIN_BITS) | at
    for at in range(others):
        in_range &= 0 <= keyword_rows[at] < n
        keys[some + at] = (keyword_rows[at] << ORIGIN_BITS) | (some + at)
    keys = np.sort(keys)
    rows = np.empty(some + others, np.int64)
    cosine, bm25 = np.full(some + others, np.nan, np.float32), np.full(some + others, np.nan, np.float32)
    m = 0
    for key in keys:
        row, origin = key >> ORIGIN_BITS, key & ((1 << ORIGIN_BITS) - 1)
        if m == 0 or rows[m - 1] != row:
            rows[m] = row
            m += 1
        if origin < some:
            cosine[m - 1] = cosines[origin]
        else:
            bm25[m - 1] = scores[origin - some]
    return in_range, rows[:m], cosine[:m], bm25[:m]


@exact
def neighbours_of_best(rows: Any, scores: Any, best: Any, graph: Any, found: Any) -> Any:
    """Write the neighbours of the best to `found`; returns their number, -1 where one is out of range.

    Neighbours are the allowed rows up to two places away in the chain, and the linked ones. Those that do not
    fit are only counted.
    """
    previous, following, heads = graph.previous, graph.following, graph.heads
    nexts, targets, mask = graph.nexts, graph.targets, graph.mask
    n, masked, count, size = previous.shape[0], mask.shape[0] > 0, 0, 0
    heap_scores, heap_rows = np.empty(best, np.float64), np.empty(best, np.int64)
    for i in range(rows.shape[0]):
        size = push(heap_scores, heap_rows, size, best, scores[i], rows[i])
    for place in range(size):
        for side in range(2):
            at = heap_rows[place]
            for _ in range(2):
                at = np.int64(previous[at]) if side == 0 else np.int64(following[at])
                if at < 0:
                    break
                if at >= n:
                    return -1
                if not masked or mask[at] != 0:
                    if count < found.shape[0]:
                        found[count] = at
                    count += 1
        edge, steps = np.int64(heads[heap_rows[place]]), 0
        while edge >= 0:
            steps += 1
            if edge >= targets.shape[0] or steps > targets.shape[0]:
                return -1
            at = np.int64(targets[edge])
            if at >= n:
                return -1
            if at >= 0 and (not masked or mask[at] != 0):
                if count < found.shape[0]:
                    found[count] = at
                count += 1
            edge = np.int64(nexts[edge])
    return count


@exact
def merge(rows: Any, cosine: Any, bm25: Any, beside: Any) -> Any:
    """Candidates and further rows, both ascending, as one list; the signals of new rows are NaN."""
    most = rows.shape[0] + beside.shape[0]
    out_rows = np.empty(most, np.int64)
    out_cosine, out_bm25 = np.full(most, np.nan, np.float32), np.full(most, np.nan, np.float32)
    i, j, m = 0, 0, 0
    while i < rows.shape[0] or j < beside.shape[0]:
        if j == beside.shape[0] or (i < rows.shape[0] and rows[i] <= beside[j]):
            out_rows[m], out_cosine[m], out_bm25[m] = rows[i], cosine[i], bm25[i]
            i += 1
        else:
            out_rows[m] = beside[j]
        while j < beside.shape[0] and beside[j] == out_rows[m]:
            j += 1
        m += 1
    return out_rows[:m], out_cosine[:m], out_bm25[:m]
