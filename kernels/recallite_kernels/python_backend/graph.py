"""Spreading activation in NumPy float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recallite_kernels.arguments import Graph
from recallite_kernels.contract import F64, I32, I64, U8


def activate(rows: I64, scores: F64, graph: Graph, near: float, far: float) -> tuple[F64, F64, F64, F64] | None:
    """The activation that reaches each candidate: see `signals.later_signals`. None if a row is out of range.

    None too where the strength of a link that reaches a candidate is no finite number of 0 or more.
    """
    n, m, mask = len(graph.previous), len(rows), graph.mask
    by_link = np.full(m, -1.0)
    # The rows one and two places before and after each, -1 for none.
    at = np.empty((2, 2, m), np.int64)
    for side, chain in enumerate((graph.previous, graph.following)):
        at[0, side] = chain.take(rows)
        if int(at[0, side].max()) >= n:
            return None
        at[1, side] = np.where(at[0, side] >= 0, chain.take(at[0, side], mode="clip"), -1)
    if int(at.max()) >= n:
        return None
    visible = _allowed(at, mask)
    place, among = _among(rows, at, visible)
    reaching = np.where(among, scores.take(place), 0.0)
    reaching *= np.array([near, far])[:, None, None]
    by_chain = reaching.max(axis=(0, 1))
    neighbourhood = np.minimum(1.0 + np.count_nonzero(visible, axis=(0, 1)), 3.0)
    edges = graph.heads.take(rows if len(graph.heads) else rows[:0])
    places, steps = np.arange(len(edges)), 0
    while True:
        left = edges >= 0
        edges, places = edges[left], places[left]
        if not len(edges):
            break
        steps += 1
        if steps > len(graph.targets) or int(edges.max()) >= len(graph.targets):
            return None
        linked = graph.targets.take(edges).astype(np.int64)
        if int(linked.max()) >= n:
            return None
        place, among = _among(rows, linked, _allowed(linked, mask))
        strength = graph.strengths.take(edges[among]).astype(np.float64)
        if not ((strength >= 0) & (strength < np.inf)).all():
            return None
        linked_places = places[among]
        by_link[linked_places] = np.maximum(by_link[linked_places], strength * scores.take(place[among]))
        edges = graph.nexts.take(edges)
    return (by_chain, by_link, _best_three(scores, graph.sources.take(rows)), neighbourhood)


def _allowed(at: I64, mask: U8) -> NDArray[np.bool_]:
    """Whether the mask allows each of the rows, -1 for none."""
    visible: NDArray[np.bool_] = at >= 0
    if mask.size:
        visible &= mask[at] > 0
    return visible


def _among(candidates: I64, at: I64, visible: NDArray[np.bool_]) -> tuple[I64, NDArray[np.bool_]]:
    """The places of the rows `at` among candidates, and which of those that are held are there."""
    place = candidates.searchsorted(at)
    np.minimum(place, len(candidates) - 1, out=place)
    among: NDArray[np.bool_] = candidates.take(place) == at
    among &= visible
    return place, among


def _best_three(scores: F64, sources: I32) -> F64:
    """The sum of the best three scores in each candidate's source, added from the best down; 0 without a source."""
    order = np.lexsort((-scores, sources))
    ranked, grouped = np.zeros(len(order) + 2), sources.take(order)
    ranked[:-2] = scores.take(order)
    starts = np.ones(len(order), np.bool_)
    np.not_equal(grouped[1:], grouped[:-1], out=starts[1:])
    first = np.flatnonzero(starts)
    ends = np.append(first[1:], len(order))
    totals = ranked.take(first)
    for step in (1, 2):
        totals = totals + np.where(first + step < ends, ranked.take(first + step), 0.0)
    totals[grouped.take(first) == -1] = 0
    out = np.empty(len(scores))
    out[order] = totals.repeat(ends - first)
    return out
