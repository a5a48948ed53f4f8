"""Learned ranking: a forest of small trees puts the best candidates of the formula in a new order.

The forest was trained with LambdaMART (Burges, 2010) by `recallite_models.training.ranking` on questions with the turns
that answer them. More of a signal never lowers a candidate, so that it holds on data that it has not seen. Age,
importance and dates, of which it was shown nothing, count beside it. The scores of the formula stay, and go to the
candidates in their new order: a score means what it meant, at its place, and the candidates below the best keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from msgspec import structs

from recallite.recall.candidates import SIGNALS, Candidates
from recallite.recall.features import FEATURES, rank_by_forest
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.query_batch import QueryBatch
    from recallite.model.profiles import Profile
    from recallite.recall.query import Words


# With the best 100 in a new order LoCoMo and RealMem lost 0.01 of recall@20; the first ranks gained as much.
DEPTH = 20
FILE = Path(__file__).with_name("learned_ranking.npz")
ARRAYS = ("nodes", "thresholds", "leaves", "values")


class Manifest(msgspec.Struct):
    """What is known of a trained ranking: its features in order, and the embedders that it ranks for."""

    features: list[str]
    embedders: list[str]


class LearnedRanking(NamedTuple):
    """The forest, and float64 (trees, nodes) the mean output of the training candidates that reach each node."""

    forest: kernels.Forest
    values: NDArray[np.float64]
    embedders: frozenset[str]


@cache
def load_ranking() -> LearnedRanking | None:
    """The ranking that ships; None where its features are not those of this version."""
    manifest = msgspec.json.decode(FILE.with_suffix(".json").read_bytes(), type=Manifest)
    if manifest.features != list(FEATURES):
        return None
    with np.load(FILE) as saved:
        nodes, thresholds, leaves, values = (saved[name] for name in ARRAYS)
    forest = kernels.Forest(nodes, thresholds.astype(np.float64), leaves.astype(np.float64))
    kernels.check_forest(forest, len(FEATURES))
    return LearnedRanking(forest, values.astype(np.float64), frozenset(manifest.embedders))


def ranking_for(profile: Profile, embedder: str | None) -> LearnedRanking | None:
    """The ranking for vectors of the embedder with this name; None where the formula alone ranks."""
    ranking = load_ranking() if embedder is not None and profile.ranks_by_forest else None
    return ranking if ranking is not None and embedder in ranking.embedders else None


def reorder(
    ranking: LearnedRanking, batch: QueryBatch, candidates: Candidates, words: Sequence[Words], profile: Profile
) -> Candidates:
    """The candidates with the best `DEPTH` of each query in the order that the forest gives them."""
    found = rank_by_forest(batch, candidates, words, profile, DEPTH, ranking.forest)
    signals = candidates.signals.copy()
    signals[SIGNALS.score] = found.scores
    return structs.replace(
        candidates, order=found.order, signals=signals, formula=candidates.signals[SIGNALS.score]
    )  # fmt: skip


def contributions(ranking: LearnedRanking, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each feature adds to each candidate's output, against the mean of these: float64 (features, candidates).

    A feature has the change of the mean output at every node that asks for it on the candidate's way down (Saabas,
    2014). A candidate's contributions add up to its output less the mean output of these.
    """
    forest = ranking.forest
    of_tree, candidates = np.arange(len(forest.nodes))[:, None], np.arange(features.shape[1])
    values = np.concatenate([ranking.values, forest.leaves], axis=1)
    added: NDArray[np.float64] = np.zeros(features.shape)
    at = np.zeros((len(forest.nodes), len(candidates)), dtype=np.int64)
    for _ in range(forest.nodes.shape[1].bit_length()):
        asked = forest.nodes[of_tree, at]
        below = 2 * at + 1 + (features[asked, candidates] > forest.thresholds[of_tree, at])
        change = values[of_tree, below] - values[of_tree, at]
        np.add.at(added, (asked, np.broadcast_to(candidates, asked.shape)), change)
        at = below
    added -= added.mean(axis=1, keepdims=True)
    return added
