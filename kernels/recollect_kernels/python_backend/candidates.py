"""Candidate kernels in NumPy, a query at a time."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from recollect_kernels.contract import F32, F64, I32, I64, U8


def join_candidates(
    first_rows: I64, first_values: F32, first_counts: I64, second_rows: I64, second_values: F32, second_counts: I64
) -> tuple[I64, I64, F32, F32] | None:
    lists = []
    for query in range(len(first_rows)):
        some, others = slice(first_counts[query]), slice(second_counts[query])
        rows = np.unique(np.concatenate([first_rows[query, some], second_rows[query, others]]))
        if rows.size and not 0 <= int(rows[0]) <= int(rows[-1]) < 2**39:
            return None
        first, second = np.full((2, len(rows)), np.nan, np.float32)
        first[np.searchsorted(rows, first_rows[query, some])] = first_values[query, some]
        second[np.searchsorted(rows, second_rows[query, others])] = second_values[query, others]
        lists.append((rows, first, second))
    return _joined(lists)


def expand_candidates(
    offsets: I64, rows: I64, first: F32, second: F32, scores: F64, best: int, previous: I32, following: I32,
    heads: I32, nexts: I32, targets: I32, mask: U8,
) -> tuple[I64, I64, F32, F32] | None:  # fmt: skip
    n = len(previous)
    lists = []
    for start, stop in itertools.pairwise(offsets):
        part = slice(start, stop)
        chosen = rows[part][np.argsort(-scores[part], kind="stable")[:best]]
        found = []
        for chain in (previous, following):
            once = chain[chosen]
            once = once[once >= 0]
            if once.size and int(once.max()) >= n:
                return None
            twice = chain[once]
            found += [once, twice[twice >= 0]]
        edges, steps = heads[chosen], 0
        while (edges := edges[edges >= 0]).size:
            steps += 1
            if steps > len(targets) or int(edges.max()) >= len(targets):
                return None
            linked = targets[edges]
            found.append(linked[linked >= 0])
            edges = nexts[edges]
        beside = np.concatenate(found).astype(np.int64)
        if beside.size and int(beside.max()) >= n:
            return None
        if mask.size:
            beside = beside[mask[beside] != 0]
        wider = np.unique(np.concatenate([rows[part], beside]))
        signals = np.full((2, len(wider)), np.nan, np.float32)
        signals[:, np.searchsorted(wider, rows[part])] = first[part], second[part]
        lists.append((wider, signals[0], signals[1]))
    return _joined(lists)


def order_by_score(offsets: I64, scores: F64, keys: I64) -> I64:
    queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((keys, -scores, queries))
    return (order - offsets[queries]).astype(np.int64, copy=False)


def _joined(lists: list[tuple[NDArray[np.int64], F32, F32]]) -> tuple[I64, I64, F32, F32]:
    offsets = np.cumsum([0, *(len(each[0]) for each in lists)], dtype=np.int64)
    if not lists:
        return offsets, np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32)
    rows, first, second = (np.concatenate(column) for column in zip(*lists, strict=True))
    return offsets, rows, first, second
