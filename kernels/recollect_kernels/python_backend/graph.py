"""The graph kernel in NumPy float64."""

from __future__ import annotations

import itertools

import numpy as np

from recollect_kernels.contract import F32, F64, I32, I64, U8


def spread_activation(
    offsets: I64, rows: I64, scores: F64, previous: I32, following: I32, sources: I64, heads: I32, nexts: I32,
    targets: I32, strengths: F32, mask: U8, near: float, far: float,
) -> tuple[F64, F64, F64, I64] | None:  # fmt: skip
    m = len(rows)
    by_chain, by_link, best_three = np.zeros(m), np.full(m, -1.0), np.zeros(m)
    company = np.ones(m, np.int64)
    for start, stop in itertools.pairwise(offsets):
        own, score = rows[start:stop], scores[start:stop]
        out, linked, near_by = by_chain[start:stop], by_link[start:stop], company[start:stop]
        for chain in (previous, following):
            at = own
            for weight in (near, far):
                at = np.where(at >= 0, chain[at], -1).astype(np.int64)
                if at.size and int(at.max()) >= len(previous):
                    return None
                near_by += (at >= 0) & (mask[at] > 0) if mask.size else at >= 0
                among, place = _among(own, at, mask)
                out[among] = np.maximum(out[among], weight * score[place[among]])
        edges, steps = heads[own], 0
        while (edges >= 0).any():
            steps += 1
            if steps > len(targets) or int(edges.max()) >= len(targets):
                return None
            at = np.where(edges >= 0, targets[edges], -1).astype(np.int64)
            if int(at.max()) >= len(previous):
                return None
            among, place = _among(own, at, mask)
            strength = strengths[edges[among]].astype(np.float64)
            linked[among] = np.maximum(linked[among], strength * score[place[among]])
            edges = np.where(edges >= 0, nexts[edges], -1)
        best_three[start:stop] = _best_three(score, sources[own])
    return by_chain, by_link, best_three, np.minimum(company, 3)


def _among(own: I64, at: I64, mask: U8) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], I64]:
    """Which of the rows `at` are allowed candidates, and where."""
    place = np.minimum(np.searchsorted(own, at), max(len(own) - 1, 0))
    among = (at >= 0) & (own[place] == at) if len(own) else at >= 0
    if mask.size:
        among &= mask[at] > 0
    return among, place


def _best_three(scores: F64, sources: I64) -> F64:
    """The sum of the best three scores of each one's source, added from the best down; 0 without a source."""
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
