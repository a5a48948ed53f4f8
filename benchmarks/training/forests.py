"""Conversion of a trained LightGBM model to the arrays that `recallite_kernels.forest_scores` takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Trees(NamedTuple):
    """Complete trees of one depth: see `recallite_kernels.Forest`. Written as float32, they are read as float64.

    `values`, by node, is the mean output of the training candidates that came by.
    """

    nodes: NDArray[np.uint8]
    thresholds: NDArray[np.float32]
    leaves: NDArray[np.float32]
    values: NDArray[np.float32]


def complete_trees(model: Any) -> Trees:
    """The trees of a LightGBM model, each with as many levels as the deepest has."""
    roots = [tree["tree_structure"] for tree in model.dump_model()["tree_info"]]
    depth = max(1, *map(_depth, roots))
    inner = 2**depth - 1
    trees = Trees(
        np.zeros((len(roots), inner), np.uint8),
        np.full((len(roots), inner), np.inf, np.float32),
        np.zeros((len(roots), inner + 1), np.float32),
        np.zeros((len(roots), inner), np.float32),
    )
    for tree, root in enumerate(roots):
        _fill(trees, tree, 0, root)
    return trees


def _depth(node: dict[str, Any]) -> int:
    return 0 if "leaf_value" in node else 1 + max(_depth(node["left_child"]), _depth(node["right_child"]))


def _fill(trees: Trees, tree: int, at: int, node: dict[str, Any]) -> None:
    """Write a node and what is below it; below a leaf that is not on the last level every node goes left."""
    inner = trees.nodes.shape[1]
    leaf = "leaf_value" in node
    if at >= inner:
        trees.leaves[tree, at - inner] = node["leaf_value"]
        return
    trees.values[tree, at] = node["leaf_value"] if leaf else node["internal_value"]
    if leaf:
        _fill(trees, tree, 2 * at + 1, node)
        _fill(trees, tree, 2 * at + 2, node)
        return
    if node["decision_type"] != "<=":
        raise ValueError(f"a node decides by {node['decision_type']!r}: only <= is known")
    trees.nodes[tree, at] = node["split_feature"]
    trees.thresholds[tree, at] = node["threshold"]
    _fill(trees, tree, 2 * at + 1, node["left_child"])
    _fill(trees, tree, 2 * at + 2, node["right_child"])
