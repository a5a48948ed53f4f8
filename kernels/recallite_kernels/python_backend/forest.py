"""Learned ranking in NumPy: every tree goes down one level at a time for all candidates."""

from __future__ import annotations

import numpy as np

from recallite_kernels.arguments import Forest, WordSlices
from recallite_kernels.contract import F64, I64
from recallite_kernels.python_backend.lexical import coverage
from recallite_kernels.signals import FEATURES, SIGNALS, RankParameters, features_of, unseen

COMPLETE = 0.999
"""A record that covers more of the query's IDF mass has all words of it: what alone does, and is the formula's first,
stays first. The training data has no tags: of 19 questions for the word of a tag, 3 lost their record to one without
it. Of 495 of LoCoMo one had another order."""


@np.errstate(all="ignore")
def rank_by_forest(
    signals: F64, rows: I64, order: I64, slices: WordSlices, forest: Forest, parameters: RankParameters, depth: int
) -> tuple[F64, F64, I64, F64]:  # fmt: skip
    """The features and the outputs of the best `depth` candidates, and the order and scores of all."""
    places = order[:depth]
    best_signals = signals[:, places]
    covered, _ = coverage(slices, rows[places])
    mass = sum(slices.idf.tolist())
    features = np.empty((len(FEATURES), len(places)))
    shares = covered[0] / mass if mass > 0 else np.zeros(len(places))
    best = signals.max(axis=1, initial=-np.inf)
    for row, values in zip(features, features_of(best_signals, best, shares), strict=True):
        row[:] = values
    outputs = forest_scores(features, forest) + unseen(best_signals, parameters)
    ranks = np.argsort(-outputs, kind="stable")
    complete = features[FEATURES.coverage] > COMPLETE
    if complete.sum() == 1 and complete[0]:
        ranks = np.concatenate([[0], ranks[ranks != 0]])
    new_order, scores = order.copy(), signals[SIGNALS.score].copy()
    new_order[: len(places)] = places[ranks]
    scores[new_order[: len(places)]] = best_signals[SIGNALS.score]
    return features, outputs, new_order, scores


@np.errstate(all="ignore")
def forest_scores(features: F64, forest: Forest) -> F64:
    """The sum of each candidate's leaves, added tree by tree."""
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
