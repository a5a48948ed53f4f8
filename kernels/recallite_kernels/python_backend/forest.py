"""Learned ranking in NumPy: every tree goes down one level at a time for all candidates."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from recallite_kernels.arguments import Forest, WordSlices
from recallite_kernels.contract import F64, I64
from recallite_kernels.python_backend.lexical import coverage
from recallite_kernels.signals import FEATURES, SIGNALS, RankParameters, features_of, unseen

COMPLETE = 0.999
"""A record that covers more of the query's IDF mass has all words of it: what alone does, and is the formula's first,
stays first. The training data has no tags: of 19 questions for the word of a tag, 3 lost their record to one without
it. Of 495 of LoCoMo one had another order."""


def asked_for(offsets: I64, depth: int) -> int:
    """How many candidates are among the best `depth` of their query."""
    return sum([min(depth, stop - start) for start, stop in pairwise(offsets.tolist())])


@np.errstate(all="ignore")
def rank_by_forest(
    signals: F64, offsets: I64, rows: I64, order: I64, slices: WordSlices, unknown: F64, forest: Forest,
    parameters: RankParameters, depth: int,
) -> tuple[F64, F64, I64, F64]:  # fmt: skip
    count = asked_for(offsets, depth)
    features, places = np.empty((len(FEATURES), count)), np.empty(count, np.int64)
    ends = np.zeros(len(offsets), np.int64)
    np.cumsum(np.minimum(np.diff(offsets), depth), out=ends[1:])
    spans = [*zip(pairwise(offsets.tolist()), pairwise(ends.tolist()), strict=True)]
    for (first, _), (begin, end) in spans:
        places[begin:end] = first + order[first : first + end - begin]
    covered, _ = coverage(*slices[:6], ends, rows[places])
    own = signals[:, places]
    for query, ((first, stop), (begin, end)) in enumerate(spans):
        words = slice(*slices.word_offsets[query : query + 2])
        mass = sum(slices.idf[words].tolist()) + unknown[query]
        share = covered[begin:end] / mass if mass > 0 else np.zeros(end - begin)
        best = signals[:, first:stop].max(axis=1, initial=-np.inf)
        for row, values in zip(features, features_of(own[:, begin:end], best, share), strict=True):
            row[begin:end] = values
    outputs = forest_scores(features, forest) + unseen(own, parameters)
    again, scores = order.copy(), signals[SIGNALS.score].copy()
    complete = features[FEATURES.coverage] > COMPLETE
    for (first, _), (begin, end) in spans:
        ranks = np.argsort(-outputs[begin:end], kind="stable")
        if complete[begin:end].sum() == 1 and complete[begin]:
            ranks = np.concatenate([[0], ranks[ranks != 0]])
        again[first : first + end - begin] = order[first + ranks]
        scores[first + order[first + ranks]] = own[SIGNALS.score, begin:end]
    return features, outputs, again, scores


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
