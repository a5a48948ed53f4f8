"""Forests, JIT, in float64 without fastmath.

Complete trees need no branch: the next node is computed from a comparison. With the candidates in the inner loop
their walks overlap, which takes a third of the time of a walk per candidate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.arguments import Forest
from recollect_kernels.contract import F64
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import kernel


def forest_scores(features: F64, forest: Forest) -> F64:
    scores = np.zeros(features.shape[1])
    _forest_scores.call(features, forest, scores)
    return scores


@kernel(_jit.F64_2, _jit.FOREST, _jit.OUT_F64)
def _forest_scores(features: Any, forest: Any, scores: Any) -> None:
    nodes, thresholds, leaves = forest.nodes, forest.thresholds, forest.leaves
    one = np.uintp(1)
    inner = np.uintp(nodes.shape[1])
    for tree in range(np.uintp(nodes.shape[0])):
        for i in range(np.uintp(features.shape[1])):
            at = np.uintp(0)
            while at < inner:
                right = features[np.uintp(nodes[tree, at]), i] > thresholds[tree, at]
                at = at + at + one + np.uintp(right)
            scores[i] += leaves[tree, at - inner]
