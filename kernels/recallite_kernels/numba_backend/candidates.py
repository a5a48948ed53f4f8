"""The candidates of a question, JIT: the two lists joined, and the neighbours of the best added."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.numba_backend._heap import push
from recallite_kernels.numba_backend._jit import exact
from recallite_kernels.numba_backend._sort import sort_whole

ORIGIN_BITS = 24  # of a sort key; the rest, 39 bits, is the row


@exact
def join(
    lists: Any, n: Any, sorted_keys: Any, spare: Any, counts: Any, rows: Any, cosine: Any, bm25: Any
) -> Any:  # fmt: skip
    """Write the union of the two lists: rows ascending, cosines and BM25, NaN where a list lacks the row.

    Returns how many; -1 where a row is not in 0..n-1. Row and origin are sorted as one number.
    """
    vector_rows, keyword_rows, cosines, scores = lists.vector_rows, lists.keyword_rows, lists.cosines, lists.bm25
    some, others = vector_rows.shape[0], keyword_rows.shape[0]
    keys, in_range = sorted_keys[: some + others], True
    for at in range(some):
        in_range &= 0 <= vector_rows[at] < n
        keys[at] = (vector_rows[at] << ORIGIN_BITS) | at
    for at in range(others):
        in_range &= 0 <= keyword_rows[at] < n
        keys[some + at] = (keyword_rows[at] << ORIGIN_BITS) | (some + at)
    if not in_range:
        return -1
    sort_whole(keys, spare, counts, ORIGIN_BITS, n)
    m = 0
    for at in range(keys.shape[0]):
        row, origin = keys[at] >> ORIGIN_BITS, keys[at] & ((1 << ORIGIN_BITS) - 1)
        if m == 0 or rows[m - 1] != row:
            rows[m], cosine[m], bm25[m] = row, np.float32(np.nan), np.float32(np.nan)
            m += 1
        if origin < some:
            cosine[m - 1] = cosines[origin]
        else:
            bm25[m - 1] = scores[origin - some]
    return m


@exact
def neighbours_of_best(rows: Any, scores: Any, graph: Any, heap_scores: Any, heap_rows: Any, beside: Any) -> Any:
    """Write the neighbours of the best, as many as the heap has room for, to `beside`; returns their number, -1 where
    one is out of range.

    Neighbours are the allowed rows up to two places away in the chain, and the linked ones. Those that do not
    fit are only counted.
    """
    previous, following, heads = graph.previous, graph.following, graph.heads
    nexts, targets, mask = graph.nexts, graph.targets, graph.mask
    n, masked, count, size, best = previous.shape[0], mask.shape[0] > 0, 0, 0, heap_rows.shape[0]
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
                    if count < beside.shape[0]:
                        beside[count] = at
                    count += 1
        edge, steps = np.int64(heads[heap_rows[place]]) if heads.shape[0] else -1, 0
        while edge >= 0:
            steps += 1
            if edge >= targets.shape[0] or steps > targets.shape[0]:
                return -1
            at = np.int64(targets[edge])
            if at >= n:
                return -1
            if at >= 0 and (not masked or mask[at] != 0):
                if count < beside.shape[0]:
                    beside[count] = at
                count += 1
            edge = np.int64(nexts[edge])
    return count


@exact
def merge(rows: Any, cosine: Any, bm25: Any, beside: Any, out_rows: Any, out_cosine: Any, out_bm25: Any) -> Any:
    """Write candidates and further ascending rows as one list; returns how many; new rows have signals of NaN."""
    i, j, m = 0, 0, 0
    while i < rows.shape[0] or j < beside.shape[0]:
        if j == beside.shape[0] or (i < rows.shape[0] and rows[i] <= beside[j]):
            out_rows[m], out_cosine[m], out_bm25[m] = rows[i], cosine[i], bm25[i]
            i += 1
        else:
            out_rows[m], out_cosine[m], out_bm25[m] = beside[j], np.float32(np.nan), np.float32(np.nan)
        while j < beside.shape[0] and beside[j] == out_rows[m]:
            j += 1
        m += 1
    return m
