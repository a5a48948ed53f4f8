"""Gradient boosting of small complete trees for a chance (Friedman, 2001), in NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BINS = 24
_SHRINKS, _LEAST = 4.0, 3.0


class Boosted(NamedTuple):
    """A logit to begin with, and trees: the feature and threshold of every inner node, and the values of the leaves.

    The children of node n are 2n + 1, where the feature is at most the threshold, and 2n + 2.
    """

    base: float
    trees: list[tuple[list[int], list[float], list[float]]]


def fit_boosted(
    values: NDArray[np.float64],
    truth: NDArray[np.bool_],
    weights: NDArray[np.float64],
    *,
    trees: int,
    depth: int,
    rate: float,
    share: float,
) -> Boosted:
    """Trees that lower the log loss of the chance of `truth`, each by `rate`, each from a `share` of the features."""
    rows, columns = values.shape
    random = np.random.default_rng(0)
    edges = [_edges(values[:, column]) for column in range(columns)]
    binned = np.stack([np.searchsorted(edges[place], values[:, place]) for place in range(columns)], axis=1)
    mean = float(weights @ truth / weights.sum())
    base = float(np.log(mean / (1 - mean)))
    logits: NDArray[np.float64] = np.full(rows, base)
    grown = []
    for _ in range(trees):
        chance = 1.0 / (1.0 + np.exp(-logits))
        gradient, curvature = weights * (chance - truth), weights * chance * (1 - chance)
        sampled = random.permutation(columns)[: max(1, int(columns * share))]
        node: NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
        places, thresholds = [], []
        for level in range(depth):
            right = np.zeros(rows, dtype=np.int64)
            for index, split in enumerate(_splits(binned, node, gradient, curvature, sampled, 2**level)):
                if split is None:
                    places.append(0)
                    thresholds.append(1e9)
                    continue
                column, cut = split
                places.append(column)
                thresholds.append(round(float(edges[column][cut]), 5))
                inside = node == index
                right[inside] = binned[inside, column] > cut
            node = 2 * node + right
        size = 2**depth
        leaves = -rate * np.bincount(node, gradient, size) / (np.bincount(node, curvature, size) + _SHRINKS)
        leaves = np.round(leaves, 4)
        logits += leaves[node]
        grown.append((places, thresholds, leaves.tolist()))
    return Boosted(round(base, 4), grown)


def boosted_logits(model: Boosted, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logit of each row."""
    logits: NDArray[np.float64] = np.full(len(values), model.base)
    rows = np.arange(len(values))
    for places, thresholds, leaves in model.trees:
        of_node, cuts = np.array(places), np.array(thresholds)
        node: NDArray[np.int64] = np.zeros(len(values), dtype=np.int64)
        while node[0] < len(places):
            node = 2 * node + 1 + (values[rows, of_node[node]] > cuts[node])
        logits += np.array(leaves)[node - len(places)]
    return logits


def _edges(column: NDArray[np.float64]) -> NDArray[np.float64]:
    distinct = np.unique(column)
    if len(distinct) <= _BINS:
        return (distinct[1:] + distinct[:-1]) / 2
    return np.unique(np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1]))


def _splits(
    binned: NDArray[np.int64],
    node: NDArray[np.int64],
    gradient: NDArray[np.float64],
    curvature: NDArray[np.float64],
    sampled: NDArray[np.int64],
    nodes: int,
) -> list[tuple[int, int] | None]:
    """The feature and bin of the best split of each node, None where none is worth one."""
    best: list[tuple[float, tuple[int, int] | None]] = [(0.0, None)] * nodes
    bins = _BINS + 1
    for column in sampled.tolist():
        at = node * bins + binned[:, column]
        pulls = np.bincount(at, gradient, nodes * bins).reshape(nodes, bins)
        curves = np.bincount(at, curvature, nodes * bins).reshape(nodes, bins)
        all_pulls, all_curves = pulls.sum(axis=1)[:, None], curves.sum(axis=1)[:, None]
        left, below = pulls.cumsum(axis=1)[:, :-1], curves.cumsum(axis=1)[:, :-1]
        above = all_curves - below
        gain = left**2 / (below + _SHRINKS) + (all_pulls - left) ** 2 / (above + _SHRINKS)
        gain = np.where((below < _LEAST) | (above < _LEAST), 0.0, gain - all_pulls**2 / (all_curves + _SHRINKS))
        for index, cut in enumerate(gain.argmax(axis=1).tolist()):
            if gain[index, cut] > best[index][0] + 1e-9:
                best[index] = (float(gain[index, cut]), (column, cut))
    return [split for _, split in best]
