"""The plan of a request for the kernel of a recall: a profile's numbers, its forest and its weights of confidence."""

from __future__ import annotations

from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from recallite.index.lexical import K1, B
from recallite.index.vectors import ALIKE, shortlist_size
from recallite.recall.calibration import BY_COHORT, evidence_weights
from recallite.recall.confidence import least_before
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.model.settings import Profile
    from recallite.recall.pipeline import Opened
    from recallite.recall.query import Queries
    from recallite.recall.request import Request

# With 0 only 3.5 % of the records without a source reach the top 20 when half of a store's sessions lose theirs.
_LONE_SHARE = 0.8
# How much of a neighbour's activation arrives: from one place away, and from two.
_NEAR, _FAR = 1.0, 0.7
# Shares of the strongest neighbour's score, and of the three best of the source.
_NEIGHBOR_SHARE, _SOURCE_SHARE = 0.4, 0.5
# How many of the best candidates make their neighbours candidates too.
_EXPANDED = 100
# MMR chooses among this many times the limit, and at least this many.
_MMR_POOL, _MMR_LEAST = 4, 32
# Hits that are spread are chosen among this many times the limit.
_SPREAD_POOL = 8
NO_LIMIT = 2**31
# A least confidence that every candidate has.
_ANY = 1e-12
NO_TREES = kernels.Forest(np.empty((0, 1), np.uint8), np.empty((0, 1)), np.empty((0, 2)))
SIGNALS = kernels.SIGNALS
_CLOCK, _PARAMETERS = kernels.RankParameters._fields.index("clock"), kernels.Plan._fields.index("parameters")
# Named tuples from tuples: `_replace` takes 5 microseconds for both.
_as_parameters, _as_plan = partial(tuple.__new__, kernels.RankParameters), partial(tuple.__new__, kernels.Plan)


class PlanKey(NamedTuple):
    """The parts of a plan that are not in the profile.

    - by_vector, by_tokens: whether the questions have vectors, and token codes
    - visible: how many vectors the filter admits, `ALIKE` for fewer; factor: how many times as many vectors as rows are
      looked at
    - widening: how many times as many candidates as usual
    """

    by_vector: bool
    by_tokens: bool
    by_words: bool
    embedder: str | None
    visible: int
    factor: int
    limit: int
    grouped: bool
    diversify_by: bool
    about_past: bool
    marked: bool
    shared: bool
    widening: int = 1


def plan_key(opened: Opened, queries: Queries, request: Request, *, shared: bool) -> PlanKey:
    """The parts of the plan that questions, their request and a view of the index decide."""
    vectors, count = opened.view.vectors, len(opened.view.vectors.scales)
    # The parts of one record may fill the list.
    factor = 1 if count <= len(opened.view.terms.lengths) else 4
    return PlanKey(
        queries.vectors is not None and request.profile.vector_weight > 0 and count > 0, queries.tokens is not None,
        request.mode != "vector", opened.embedder_name, max(vectors.visible, ALIKE), factor, request.limit,
        request.one_per_source, request.diversify_by is not None, request.about_past,
        request.about_past, shared,
    )  # fmt: skip


def candidates_per_signal(profile: Profile, limit: int, *, spread: bool) -> int:
    """The number of candidates by each signal."""
    multiplier = profile.formula.candidate_multiplier
    return max(profile.candidates, limit * (max(multiplier, _SPREAD_POOL) if spread else multiplier))


def mmr_pool(limit: int) -> int:
    """The number of the best that MMR chooses among."""
    return max(_MMR_POOL * limit, _MMR_LEAST)


@lru_cache(maxsize=128)
def plan_of(profile: Profile, key: PlanKey) -> kernels.Plan:
    """The plan; its clock is 0: see `with_clock`."""
    ranking = load_ranking() if key.by_tokens and profile.ranks_by_forest else None
    if ranking is not None and key.embedder not in ranking.embedders:
        ranking = None
    exhaustive = profile.formula.composition == "weighted_sum" and profile.fusion == "weighted"
    least = profile.min_score if profile.min_score > 0 else -np.inf
    diverse = profile.mmr_lambda is not None and not key.diversify_by
    pool = mmr_pool(key.limit) if diverse else key.limit
    wanted = key.widening * candidates_per_signal(profile, key.limit, spread=key.diversify_by)
    top = wanted if profile.min_confidence > 0 or key.diversify_by else pool
    by_words = key.by_words and (profile.keyword_weight > 0 or profile.formula.keyword_fallback)
    return kernels.Plan(
        by_vector=int(key.by_vector), by_words=int(by_words), wanted=wanted,
        shortlist=shortlist_size(key.visible, wanted * key.factor), measured=profile.rescore_depth,
        exact=int(exhaustive or profile.formula.exact_rescore), exhaustive=int(exhaustive), top=top,
        depth=0 if ranking is None else DEPTH, changes=0 if profile.superseded == "as_ranked" else DEPTH,
        marked=int(key.marked), omit=int(profile.superseded == "omit" and not key.about_past),
        grouped=int(key.grouped and not diverse), least=least,
        least_of=SIGNALS.score if profile.formula.min_score_of == "score" else SIGNALS.spread,
        least_confidence=_least_weighed(profile, key.embedder),
        ranked=int(profile.fusion == "rrf" and profile.formula.composition == "product"), shared=int(key.shared),
        limit=NO_LIMIT if key.diversify_by or (diverse and key.grouped) else pool,
        final=key.limit, k1=K1, b=B,
        standing=0 if key.grouped or key.diversify_by else profile.standing_instructions,
        parameters=_rank_parameters(profile), forest=NO_TREES if ranking is None else ranking.forest,
        weights=evidence_weights(key.embedder),
    )  # fmt: skip


def _least_weighed(profile: Profile, embedder: str | None) -> float:
    """The confidence below which a candidate is dropped before hits are compared with the cohort, or read."""
    least = least_before(profile.min_confidence)
    return _ANY if embedder == BY_COHORT and least > 0 else least


def with_clock(plan: kernels.Plan, clock_us: int) -> kernels.Plan:
    """The plan at a moment that ages are measured from."""
    parameters = plan.parameters
    timed = _as_parameters((*parameters[:_CLOCK], clock_us, *parameters[_CLOCK + 1 :]))
    return _as_plan((*plan[:_PARAMETERS], timed, *plan[_PARAMETERS + 1 :]))


@lru_cache(maxsize=16)
def _rank_parameters(profile: Profile) -> kernels.RankParameters:
    """The options of the same name, except those below; the clock is 0."""
    same = {
        name: getattr(part, name)
        for part in (profile, profile.formula)
        for name in kernels.RankParameters._fields
        if hasattr(part, name)
    }
    changed = {
        "rrf_k": profile.formula.rrf_k if profile.fusion == "rrf" else -1.0, "clock": 0,
        "expansion_depth": _EXPANDED if profile.neighbor_boost > 0 else 0, "near": _NEAR, "far": _FAR,
        "neighbor_weight": profile.neighbor_boost * _NEIGHBOR_SHARE,
        "source_weight": profile.neighbor_boost * _SOURCE_SHARE, "lone_share": _LONE_SHARE,
        "half_life_days": profile.half_life_days or np.inf,
        "decay_floor": profile.decay_floor if profile.half_life_days else 0.0,
        "exponential": int(profile.formula.decay == "exp"), "keyword_fallback": int(profile.formula.keyword_fallback),
        "weighted_sum": int(profile.formula.composition == "weighted_sum"),
    }  # fmt: skip
    return kernels.check_parameters(kernels.RankParameters(**{**same, **changed}))


# Learned ranking: a forest of small trees puts the best candidates of the formula in a new order.
#
# The forest was trained with LambdaMART (Burges, 2010) by `benchmarks.training.ranking` on questions with the turns
# that answer them. More of a signal never lowers a candidate, so that it holds on data that it has not seen. Age,
# importance and dates, of which it was shown nothing, count beside it. The scores of the formula stay, and go to the
# candidates in their new order: a score means what it meant, at its place, and the candidates below the best keep
# theirs.
#
# A feature describes a candidate by its signals, alone or beside the best of its query: `recallite_kernels.signals` has
# the definition. None describes the query alone, a place in a source, or an age: a forest that had them fell apart on
# data that it had not seen. To add a feature, name it there and in `FEATURES`, and train again.

# With the best 100 in a new order LoCoMo and RealMem lost 0.01 of recall@20; the first ranks gained as much.
DEPTH = 20
RANKING_FILE = Path(__file__).with_name("learned_ranking.npz")
FEATURES = {
    "cosine": "semantic", "cosine_gap": "semantic", "bm25": "keyword", "bm25_share": "keyword", "coverage": "keyword",
    "speaker": "speaker", "speaker_gap": "speaker", "rerank": "rerank", "rerank_gap": "rerank", "fused": "score",
    "fused_gap": "score", "gain": "session", "gain_gap": "session", "linked": "link", "spread": "score",
    "spread_gap": "score",
}  # fmt: skip
"""The match reason that each feature is part of, "score" for several; more of a feature speaks for a candidate."""


class LearnedRanking(NamedTuple):
    """The forest, and float64 (trees, nodes) the mean output of the training candidates that reach each node."""

    forest: kernels.Forest
    values: NDArray[np.float64]
    embedders: frozenset[str]


@cache
def load_ranking() -> LearnedRanking | None:
    """The ranking that ships; None where it was learned with other features than this version has."""
    manifest = msgspec.json.decode(RANKING_FILE.with_suffix(".json").read_bytes(), type=dict[str, Any])
    if manifest["features"] != list(FEATURES):
        return None
    with np.load(RANKING_FILE) as saved:
        nodes, thresholds, leaves, values = (saved[name] for name in ("nodes", "thresholds", "leaves", "values"))
    forest = kernels.Forest(nodes, thresholds.astype(np.float64), leaves.astype(np.float64))
    kernels.check_forest(forest, len(FEATURES))
    return LearnedRanking(forest, values.astype(np.float64), frozenset(manifest["embedders"]))


def contributions(ranking: LearnedRanking, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of each feature in each candidate's output, against the mean of these: float64 (features, candidates).

    A feature has the change of the mean output at every node that asks for it on the candidate's way down (Saabas,
    2014). A candidate's contributions add up to its output less the mean output of these.
    """
    forest = ranking.forest
    of_tree, candidates = np.arange(len(forest.nodes))[:, None], np.arange(features.shape[1])
    values = np.concatenate([ranking.values, forest.leaves], axis=1)
    added: NDArray[np.float64] = np.zeros(features.shape)
    node = np.zeros((len(forest.nodes), len(candidates)), dtype=np.int64)
    for _ in range(forest.nodes.shape[1].bit_length()):
        feature = forest.nodes[of_tree, node]
        below = 2 * node + 1 + (features[feature, candidates] > forest.thresholds[of_tree, node])
        change = values[of_tree, below] - values[of_tree, node]
        np.add.at(added, (feature, np.broadcast_to(candidates, feature.shape)), change)
        node = below
    added -= added.mean(axis=1, keepdims=True)
    return added
