"""Spreading activation in NumPy float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect_kernels.arguments import Graph
from recollect_kernels.contract import F64, I64, U8


def activate(rows: I64, scores: F64, graph: Graph, near: float, far: float) -> tuple[F64, F64, F64, F64] | None:
    """What reaches each candidate: see `signals.later_signals`. None where a chain or a link leaves the records.

    None too where the strength of a link that reaches a candidate is no finite number of 0 or more.
    """
    n, mask = len(graph.previous), graph.mask
    by_chain, by_link, neighbourhood = np.zeros(len(rows)), np.full(len(rows), -1.0), np.ones(len(rows))
    for chain in (graph.previous, graph.following):
        at = rows
        for weight in (near, far):
            at = np.where(at >= 0, np.maximum(chain[at], -1), -1).astype(np.int64)
            if int(at.max()) >= n:
                return None
            neighbourhood += (at >= 0) & (mask[at] > 0) if mask.size else at >= 0
            among, place = _among(rows, at, mask)
            by_chain[among] = np.maximum(by_chain[among], weight * scores[place[among]])
    edges, steps = np.maximum(graph.heads[rows], -1), 0
    while (edges >= 0).any():
        steps += 1
        if steps > len(graph.targets) or int(edges.max()) >= len(graph.targets):
            return None
        at = np.where(edges >= 0, np.maximum(graph.targets[edges], -1), -1).astype(np.int64)
        if int(at.max()) >= n:
            return None
        among, place = _among(rows, at, mask)
        strength = graph.strengths[edges[among]].astype(np.float64)
        if not ((strength >= 0) & (strength < np.inf)).all():
            return None
        by_link[among] = np.maximum(by_link[among], strength * scores[place[among]])
        edges = np.where(edges >= 0, np.maximum(graph.nexts[edges], -1), -1)
    return (by_chain, by_link, _best_three(scores, graph.sources[rows]), np.minimum(neighbourhood, 3.0))


def _among(own: I64, at: I64, mask: U8) -> tuple[NDArray[np.bool_], I64]:
    """Which of the rows `at` are allowed candidates, and where."""
    place = np.minimum(np.searchsorted(own, at), len(own) - 1)
    among: NDArray[np.bool_] = (at >= 0) & (own[place] == at)
    if mask.size:
        among &= mask[at] > 0
    return among, place


def _best_three(scores: F64, sources: I64) -> F64:
    """The sum of the best three scores in each candidate's source, added from the best down; 0 without a source."""
    order = np.lexsort((-scores, sources))
    groups, first, inverse = np.unique(sources[order], return_index=True, return_inverse=True)
    ranked = np.append(scores[order], [0.0, 0.0])
    ends = np.append(first[1:], len(order))
    totals = ranked[first]
    for step in (1, 2):
        totals = totals + np.where(first + step < ends, ranked[first + step], 0.0)
    totals[groups < 0] = 0
    out = np.empty(len(scores))
    out[order] = totals[inverse]
    return out
