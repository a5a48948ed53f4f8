"""A forest of small regression trees over the features of candidates: gradient boosting as it is applied."""

from __future__ import annotations

from recallite_kernels import contract, dispatch
from recallite_kernels.arguments import Forest
from recallite_kernels.contract import F64, KernelError, array
from recallite_kernels.groups import check_group


def forest_scores(features: F64, forest: Forest) -> F64:
    """The sum of each candidate's leaves: features float64 (f, m) -> float64 (m,).

    A candidate goes right at a node where its feature is above the threshold, so never where that is NaN. Values are
    added tree by tree; a sum that is not finite is refused.
    """
    array("features", features, contract.f64, None, None)
    contract.finite("features", features)
    check_forest(forest, features.shape[0])
    scores = dispatch.active.forest_scores(features, forest)
    contract.finite_scores(scores, "leaves")
    return scores


def check_forest(forest: Forest, features: int) -> None:
    """Refuse a forest that cannot be walked, or that asks for more features."""
    trees, nodes = check_group(forest, Forest).nodes.shape
    if nodes < 1 or nodes & (nodes + 1):
        raise KernelError(f"nodes: {nodes} a tree; wanted complete trees: 1, 3, 7, 15, ... nodes")
    array("thresholds", forest.thresholds, contract.f64, trees, nodes)
    array("leaves", forest.leaves, contract.f64, trees, nodes + 1)
    contract.finite("leaves", forest.leaves)
    if trees and int(forest.nodes.max()) >= features:
        raise KernelError(f"nodes: name feature {int(forest.nodes.max())}; wanted 0 to {features - 1}")
