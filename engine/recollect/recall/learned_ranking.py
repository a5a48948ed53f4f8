"""Learned ranking: a forest of small trees puts the best candidates of the formula in a new order.

The forest was trained with LambdaMART (Burges, 2010) by `recollect_models.training.ranking` on questions with the turns
that answer them. More of a signal never lowers a candidate, so that it holds on data that it has not seen. Age,
importance and dates, of which it was shown nothing, count beside it. The scores of the formula stay, and go to the
candidates in their new order: a score means what it meant, at its place, and the candidates below the best keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from msgspec import structs

from recollect.numerics import kernels
from recollect.recall.candidates import SIGNALS, Candidates
from recollect.recall.features import FEATURES, measure_features

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.query_batch import QueryBatch
    from recollect.profiles import Profile
    from recollect.recall.query import Words


# With the best 100 in a new order LoCoMo and RealMem lost 0.01 of recall@20; the first ranks gained as much.
DEPTH = 20
# What a factor of age or importance adds to the forest's output, and what a date that the query names adds: this times
# its logarithm. With 4 for dates too, "What did Ada say in May?" found another month first in 57 of 96 made-up
# questions, with 12 in none; at 16 the month won over the topic.
UNSEEN_WEIGHT, DATE_WEIGHT = 4.0, 12.0
# What alone has all words of the query, and is the formula's first, stays first. The training data has no tags: of 19
# questions for the word of a tag, 3 lost their record to one without it. Of 495 of LoCoMo one had another order.
_COVERAGE, _COMPLETE = list(FEATURES).index("coverage"), 0.999
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
    return LearnedRanking(forest, values.astype(np.float64), frozenset(manifest.embedders))


def ranking_for(profile: Profile, embedder: str | None) -> LearnedRanking | None:
    """The ranking for vectors of the embedder with this name; None where the formula alone ranks."""
    ranking = load_ranking() if embedder is not None and profile.ranks_by_forest else None
    return ranking if ranking is not None and embedder in ranking.embedders else None


def reorder(
    ranking: LearnedRanking, batch: QueryBatch, candidates: Candidates, words: Sequence[Words], profile: Profile
) -> Candidates:
    """The candidates with the best `DEPTH` of each query in the order that the forest gives them."""
    best = candidates.best(DEPTH)
    offsets = np.cumsum([0, *map(len, best)], dtype=np.int64)
    places = best[0] if len(best) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *best])
    features = measure_features(batch, candidates, offsets, places, words)
    outputs = kernels.forest_scores(features, ranking.forest) + _unseen(candidates, places, profile)
    complete = features[_COVERAGE] > _COMPLETE
    every = []
    for (start, stop), own in zip(pairwise(offsets.tolist()), best, strict=True):
        again = own[np.argsort(-outputs[start:stop], kind="stable")]
        if complete[start:stop].sum() == 1 and complete[start]:
            again = np.concatenate([own[:1], again[again != own[0]]])
        every.append(again)
    return structs.replace(candidates.reordered(best, every), formula=candidates.signals[SIGNALS.score])


def _unseen(candidates: Candidates, places: NDArray[np.int64], profile: Profile) -> NDArray[np.float64]:
    """What the factors of the score but for the speaker, which is a feature, add to the forest's output."""
    at = candidates.signals[:, places]
    score, fresh = at[SIGNALS.score], at[SIGNALS.decay]
    dated = 1.0 + profile.date_weight * at[SIGNALS.date]
    told = at[SIGNALS.spread] * (1.0 + profile.speaker_weight * at[SIGNALS.speaker]) * dated
    others = np.maximum(np.divide(score, told, out=fresh.copy(), where=told > 0), 1e-9)
    added: NDArray[np.float64] = UNSEEN_WEIGHT * np.log(others) + DATE_WEIGHT * np.log(dated)
    return added


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
