"""Forests in NumPy: every tree goes down one level at a time for all candidates."""

from __future__ import annotations

import numpy as np

from recollect_kernels.arguments import Forest
from recollect_kernels.contract import F64


@np.errstate(all="ignore")
def forest_scores(features: F64, forest: Forest) -> F64:
    trees, nodes = forest.nodes.shape
    candidates = np.arange(features.shape[1])
    of_tree = np.arange(trees)[:, None]
    at = np.zeros((trees, len(candidates)), np.int64)
    for _ in range(nodes.bit_length()):
        at = 2 * at + 1 + (features[forest.nodes[of_tree, at], candidates] > forest.thresholds[of_tree, at])
    scores = np.zeros(len(candidates))
    for reached in forest.leaves[of_tree, at - nodes]:
        scores += reached
    return scores
