"""A forest of small regression trees over the features of candidates: gradient boosting as it is applied."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from recallite_kernels import contract, dispatch
from recallite_kernels.arguments import Forest, WordSlices
from recallite_kernels.contract import F64, I64, KernelError, array
from recallite_kernels.evidence import check_word_slices
from recallite_kernels.groups import check_group
from recallite_kernels.rank import check_parameters
from recallite_kernels.signals import FEATURES, SIGNALS, RankParameters


class Reordered(NamedTuple):
    """Candidates in the order of a forest, with the p of them that it was asked for.

    - features: float64 (features, p), in rows as `FEATURES` names them, best first by the order before
    - outputs: float64 (p,), the sum of the leaves and what factors that are no features add
    - order: int64 (n,), places of each query's candidates, counted from its first, best first
    - scores: float64 (n,): those before, dealt out in the new order
    """

    features: F64
    outputs: F64
    order: I64
    scores: F64


def rank_by_forest(
    signals: F64, offsets: I64, rows: I64, order: I64, slices: WordSlices, unknown: F64, forest: Forest,
    parameters: RankParameters, depth: int,
) -> Reordered:  # fmt: skip
    """The candidates with the best `depth` of each query by descending output of the forest, ties as they were.

    signals float64 (signals, n) of the candidates, of which query i has those from offsets[i] to offsets[i + 1]; rows
    int64 (n,); order int64 (n,) has the places of each query's candidates, counted from its first, best first.
    `slices` are the postings of the queries' words, and unknown float64 (q,) is the summed IDF of words that no record
    contains. A first candidate that alone of these has all words of its query stays first. An output that is not finite
    is refused.
    """
    _check(signals, offsets, rows, order, slices, unknown)
    check_forest(forest, len(FEATURES))
    parameters, depth = check_parameters(parameters), min(contract.whole("depth", depth, 0), rows.shape[0])
    found = Reordered(
        *dispatch.active.rank_by_forest(signals, offsets, rows, order, slices, unknown, forest, parameters, depth)
    )
    contract.finite_scores(found.outputs, "leaves")
    return found


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


def _check(signals: F64, offsets: I64, rows: I64, order: I64, slices: WordSlices, unknown: F64) -> None:
    n = array("signals", signals, contract.f64, len(SIGNALS), None).shape[1]
    contract.finite("signals", signals)
    queries = contract.offsets("offsets", offsets, n).shape[0] - 1
    contract.indices("rows", rows, 2**31, n)
    array("order", order, contract.i64, n)
    for start, stop in pairwise(offsets.tolist()):
        if sorted(order[start:stop].tolist()) != list(range(stop - start)):
            raise KernelError(f"order: wanted each place from 0 to {stop - start - 1} of a query once")
    check_word_slices(slices, queries)
    contract.finite("unknown", array("unknown", unknown, contract.f64, queries))
