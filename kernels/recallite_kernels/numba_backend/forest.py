"""Learned ranking, JIT, in float64 without fastmath: features, a forest's outputs and the new order, in one call.

Complete trees need no branch: the next node is computed from a comparison. With the candidates in the inner loop
their walks overlap, which takes a third of the time of a walk per candidate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.arguments import Forest
from recallite_kernels.contract import F64
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._jit import exact, kernel
from recallite_kernels.numba_backend.evidence import covered_by, masses_of, signals_at
from recallite_kernels.python_backend.forest import COMPLETE
from recallite_kernels.signals import FEATURES, SIGNALS, features_of, unseen

COVERAGE = FEATURES.coverage


def forest_scores(features: F64, forest: Forest) -> F64:
    scores = np.zeros(features.shape[1])
    _forest_scores.call(features, forest, scores)
    return scores


@exact
def greatest(values: Any, m: Any) -> Any:
    most = -np.inf
    for i in range(m):
        most = max(most, values[i])
    return most


@exact
def add_leaves(features: Any, forest: Any, count: Any, outputs: Any) -> None:
    nodes, thresholds, leaves = forest.nodes, forest.thresholds, forest.leaves
    one = np.uintp(1)
    inner = np.uintp(nodes.shape[1])
    for tree in range(np.uintp(nodes.shape[0])):
        for i in range(np.uintp(count)):
            at = np.uintp(0)
            while at < inner:
                right = features[np.uintp(nodes[tree, at]), i] > thresholds[tree, at]
                at = at + at + one + np.uintp(right)
            outputs[i] += leaves[tree, at - inner]


@kernel(_jit.F64_2, _jit.FOREST, _jit.OUT_F64)
def _forest_scores(features: Any, forest: Any, scores: Any) -> None:
    add_leaves(features, forest, features.shape[1], scores)


@exact
def order_outputs(features: Any, outputs: Any, again: Any) -> None:
    """Write ranks by descending output, ties by rank; the first stays first if only it has all words."""
    count = outputs.shape[0]
    complete = 0
    for rank in range(count):
        complete += features[COVERAGE, rank] > COMPLETE
    stays = complete == 1 and features[COVERAGE, 0] > COMPLETE
    for rank in range(count):
        at = rank
        while at > 0 and outputs[again[at - 1]] < outputs[rank] and not (stays and at == 1):
            again[at] = again[at - 1]
            at -= 1
        again[at] = rank


@exact
def rank_by_forest(
    signals: Any, m: Any, rows: Any, order: Any, slices: Any, forest: Any, parameters: Any, depth: Any, features: Any,
    outputs: Any, met: Any, again: Any, scores: Any,
) -> None:  # fmt: skip
    """Put the best in the order of the forest; without trees write their features alone."""
    count, mass = min(depth, m), masses_of(slices)[0]
    best = (
        greatest(signals[0], m), greatest(signals[1], m), greatest(signals[2], m), greatest(signals[3], m),
        greatest(signals[4], m), greatest(signals[5], m), greatest(signals[6], m), greatest(signals[7], m),
        greatest(signals[8], m),
    )  # fmt: skip
    for rank in range(count):
        i = order[rank]
        covered = covered_by(rows[i], slices, met)[0]
        values = features_of(signals_at(signals, i), best, covered / mass if mass > 0 else 0.0)
        for at in range(len(values)):
            features[at, rank] = values[at]
        outputs[rank], scores[rank], again[rank] = 0.0, signals[SIGNALS.score, i], i
    add_leaves(features, forest, count, outputs)
    if forest.nodes.shape[0] == 0:
        return
    for rank in range(count):
        outputs[rank] += unseen(signals_at(signals, order[rank]), parameters)
    order_outputs(features, outputs[:count], order)
    for rank in range(count):
        order[rank] = again[order[rank]]
        signals[SIGNALS.score, order[rank]] = scores[rank]
