"""Learned ranking: a forest of small trees puts the best candidates of the formula in a new order.

The forest was trained with LambdaMART (Burges, 2010) by `benchmarks.training.ranking` on questions with the turns
that answer them. More of a signal never lowers a candidate, so that it holds on data that it has not seen. Age,
importance and dates, of which it was shown nothing, count beside it. The scores of the formula stay, and go to the
candidates in their new order: a score means what it meant, at its place, and the candidates below the best keep theirs.

A feature describes a candidate by its signals, alone or beside the best of its query: `recallite_kernels.signals` has
the definition. None describes the query alone, a place in a source, or an age: a forest that had them fell apart on
data that it had not seen. To add a feature, name it there and in `FEATURES`, and train again.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.model.profiles import Profile


# With the best 100 in a new order LoCoMo and RealMem lost 0.01 of recall@20; the first ranks gained as much.
DEPTH = 20
FILE = Path(__file__).with_name("learned_ranking.npz")
ARRAYS = ("nodes", "thresholds", "leaves", "values")


FEATURES = {
    "cosine": "semantic",
    "cosine_gap": "semantic",
    "bm25": "keyword",
    "bm25_share": "keyword",
    "coverage": "keyword",
    "speaker": "speaker",
    "speaker_gap": "speaker",
    "rerank": "rerank",
    "rerank_gap": "rerank",
    "fused": "score",
    "fused_gap": "score",
    "gain": "session",
    "gain_gap": "session",
    "linked": "link",
    "spread": "score",
    "spread_gap": "score",
}
"""The match reason that each feature is part of, "score" for several; more of a feature speaks for a candidate."""


class Manifest(msgspec.Struct):
    """The description of a trained ranking: its features in order, and the embedders that it ranks for."""

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


def contributions(ranking: LearnedRanking, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of each feature in each candidate's output, against the mean of these: float64 (features, candidates).

    A feature has the change of the mean output at every node that asks for it on the candidate's way down (Saabas,
    2014). A candidate's contributions add up to its output less the mean output of these.
    """
    forest = ranking.forest
    of_tree, candidates = np.arange(len(forest.nodes))[:, None], np.arange(features.shape[1])
    values = np.concatenate([ranking.values, forest.leaves], axis=1)
    added: NDArray[np.float64] = np.zeros(features.shape)
    at = np.zeros((len(forest.nodes), len(candidates)), dtype=np.int64)
    for _ in range(forest.nodes.shape[1].bit_length()):
        features_asked = forest.nodes[of_tree, at]
        below = 2 * at + 1 + (features[features_asked, candidates] > forest.thresholds[of_tree, at])
        change = values[of_tree, below] - values[of_tree, at]
        np.add.at(added, (features_asked, np.broadcast_to(candidates, features_asked.shape)), change)
        at = below
    added -= added.mean(axis=1, keepdims=True)
    return added
