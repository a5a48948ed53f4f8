"""Spreading activation, JIT, in float64 without fastmath.

Activation flows from neighbours (Collins and Loftus, 1975); of all that reaches a node the strongest counts. A sum
would rank what lies between two strong nodes above both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.numba_backend._jit import exact


@exact
def find_candidate(rows: Any, stop: Any, at: Any, row: Any) -> Any:
    """The place of `row` in rows[:stop], which ascend, or -1. Neighbours are mostly stored together:
    gallop from place `at` before bisecting.
    """
    if rows[at] < row <= rows[at] + 2:  # rows ascend: it is one of the next two, if any
        for place in range(at + 1, min(at + 3, stop)):
            if rows[place] == row:
                return place
        return -1
    if rows[at] - 2 <= row < rows[at]:
        for place in range(max(at - 2, 0), at):
            if rows[place] == row:
                return place
        return -1
    low, high, stride = at, at, 1
    if row > rows[at]:
        while high < stop and rows[high] < row:
            low = high
            high += stride
            stride *= 2
        high = min(high, stop)
    else:
        while low >= 0 and rows[low] > row:
            high = low
            low -= stride
            stride *= 2
        low = max(low, 0)
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low if low < stop and rows[low] == row else -1


@exact
def table_size(entries: Any) -> Any:
    """The least power of two above twice the number of entries."""
    size = 1
    while size <= 2 * entries:
        size *= 2
    return size


@exact
def mixed(number: Any, table: Any) -> Any:
    """The slot of a number in a table whose length is a power of two."""
    return (number * 0x9E3779B1) & (table.shape[0] - 1)


@exact
def slot_of(slots: Any, source: Any) -> Any:
    """The slot of a source in an open-addressing table, or its first free slot."""
    at = mixed(source, slots)
    while slots[at] != -1 and slots[at] != source:
        at = (at + 1) & (slots.shape[0] - 1)
    return at


@exact
def best_of_sources(rows: Any, scores: Any, sources: Any, scratch: Any, best_three: Any) -> None:
    """The sum of the best three scores in each candidate's source, 0 without a source."""
    slots, best = scratch.slots[: table_size(rows.shape[0])], scratch.best
    slots[:] = -1
    for i in range(rows.shape[0]):
        source = np.int64(sources[rows[i]])
        if source == -1:
            continue
        slot = slot_of(slots, source)
        if slots[slot] == -1:
            slots[slot] = source
            best[slot, 0] = best[slot, 1] = best[slot, 2] = 0.0
        score = scores[i]
        for rank in range(3):
            if score > best[slot, rank]:
                score, best[slot, rank] = best[slot, rank], score
    for i in range(rows.shape[0]):
        best_three[i] = 0.0
        if sources[rows[i]] != -1:
            slot = slot_of(slots, np.int64(sources[rows[i]]))
            best_three[i] = best[slot, 0] + best[slot, 1] + best[slot, 2]


@exact
def activate(rows: Any, scores: Any, graph: Any, near: Any, far: Any, scratch: Any, reached: Any) -> Any:
    """Fill in what reaches each candidate: see `signals.later_signals`. False where a row is out of range,
    or the strength of a link that reaches a candidate is no finite number of 0 or more.
    """
    previous, following, heads = graph.previous, graph.following, graph.heads
    nexts, targets, strengths, mask = graph.nexts, graph.targets, graph.strengths, graph.mask
    by_chain, by_link, best_three, neighbourhood = reached
    n, m, masked = previous.shape[0], rows.shape[0], mask.shape[0] > 0
    # Most links lead to no candidate. Marks tell so without a search, which saved 1.5 ms per recall.
    seen = scratch.marks[: 2 * table_size(m)]
    if targets.shape[0]:
        seen[:] = 0
    for i in range(m if targets.shape[0] else 0):
        seen[mixed(rows[i], seen)] = 1
    for i in range(m):
        by_chain[i], by_link[i], neighbourhood[i] = 0.0, -1.0, 1.0
        for side in range(2):
            at = rows[i]
            for step in range(2):
                at = np.int64(previous[at]) if side == 0 else np.int64(following[at])
                if at < 0:
                    break
                if at >= n:
                    return False
                if masked and mask[at] == 0:
                    continue
                neighbourhood[i] = min(neighbourhood[i] + 1.0, 3.0)
                place = find_candidate(rows, m, i, at)
                if place >= 0:
                    by_chain[i] = max(by_chain[i], (near if step == 0 else far) * scores[place])
        edge, steps = np.int64(heads[rows[i]]) if heads.shape[0] else -1, 0
        while edge >= 0:
            steps += 1
            if edge >= targets.shape[0] or steps > targets.shape[0]:
                return False
            at = np.int64(targets[edge])
            if at >= n:
                return False
            if at >= 0 and seen[mixed(at, seen)] and not (masked and mask[at] == 0):
                place = find_candidate(rows, m, i, at)
                if place >= 0:
                    if not 0 <= strengths[edge] < np.inf:
                        return False
                    by_link[i] = max(by_link[i], np.float64(strengths[edge]) * scores[place])
            edge = np.int64(nexts[edge])
    best_of_sources(rows, scores, graph.sources, scratch, best_three)
    return True
