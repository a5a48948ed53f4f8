"""The plan of a request for the kernel of a recall: a profile's numbers, its forest and its weights of confidence."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.index.lexical import K1, B
from recallite.index.vectors import ALIKE, shortlist_size
from recallite.recall.confidence import SIGNAL_SETS, load_calibration
from recallite.recall.learned_ranking import DEPTH, ranking_for
from recallite.recall.named import least_before
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from recallite.model.settings import Profile
    from recallite.recall.request import Request

# With 0 only 3.5 % of the records without a source reach the top 20 when half of a store's sessions lose theirs.
_LONE_SHARE = 0.8
# How much of a neighbour's activation arrives: from one place away, and from two.
_NEAR, _FAR = 1.0, 0.7
# Shares of the strongest neighbour's score, and of the three best of the source.
_NEIGHBOR_SHARE, _SOURCE_SHARE = 0.4, 0.5
EXPANDED = 100
"""The best candidates whose neighbours become candidates too."""
_EVERY = 2**31
NO_TREES = kernels.Forest(np.empty((0, 1), np.uint8), np.empty((0, 1)), np.empty((0, 2)))
SIGNALS = kernels.SIGNALS
_CLOCK, _PARAMETERS = kernels.RankParameters._fields.index("clock"), kernels.Plan._fields.index("parameters")
# Named tuples from tuples: `_replace` takes 5 microseconds for both.
_as_parameters, _as_plan = partial(tuple.__new__, kernels.RankParameters), partial(tuple.__new__, kernels.Plan)


class Wanted(NamedTuple):
    """The parts of a plan that are not in the profile.

    - by_vector, by_tokens: whether the questions have vectors, and token codes
    - visible: how many vectors the filter admits, `ALIKE` for fewer; factor: how many times as many places as rows are
      looked at
    - limit: hits; mmr_pool: those that MMR chooses among; wanted: candidates by each signal
    """

    by_vector: bool
    by_tokens: bool
    by_words: bool
    embedder: str | None
    visible: int
    factor: int
    limit: int
    mmr_pool: int
    wanted: int
    grouped: bool
    diversify_by: bool
    about_past: bool
    marked: bool
    shared: bool


def wanted_of(
    request: Request, view: kernels.View, embedder: str | None, *, by_vector: bool, by_tokens: bool, shared: bool
) -> Wanted:
    """The parts of the plan that a request and a view of the index decide."""
    vectors, places = view.vectors, len(view.vectors.scales)
    # The parts of one record may fill the list.
    factor = 1 if places <= len(view.terms.lengths) else 4
    return Wanted(
        by_vector and request.profile.vector_weight > 0 and places > 0, by_tokens, request.mode != "vector", embedder,
        max(vectors.visible, ALIKE), factor, request.limit, request.mmr_pool, request.wanted,
        request.one_per_source, request.diversify_by is not None, request.about_past,
        request.filter.include_superseded, shared,
    )  # fmt: skip


@lru_cache(maxsize=128)
def plan_of(profile: Profile, wanted: Wanted) -> kernels.Plan:
    """The plan; its clock is 0: see `at`."""
    ranking = ranking_for(profile, wanted.embedder if wanted.by_tokens else None)
    calibration = load_calibration()
    weights = np.array([calibration.weights(wanted.embedder, name) for name in SIGNAL_SETS])
    exhaustive = profile.formula.composition == "weighted_sum" and profile.fusion == "weighted"
    least = profile.min_score if profile.min_score > 0 else -np.inf
    diverse = profile.mmr_lambda is not None and not wanted.diversify_by
    pool = wanted.mmr_pool if diverse else wanted.limit
    top = wanted.wanted if profile.min_confidence > 0 or wanted.diversify_by else pool
    by_words = wanted.by_words and (profile.keyword_weight > 0 or profile.formula.keyword_fallback)
    return kernels.Plan(
        by_vector=int(wanted.by_vector), by_words=int(by_words), wanted=wanted.wanted,
        shortlist=shortlist_size(wanted.visible, wanted.wanted * wanted.factor), measured=profile.rescore_depth,
        exact=int(exhaustive or profile.formula.exact_rescore), exhaustive=int(exhaustive), top=top,
        depth=0 if ranking is None else DEPTH, changes=0 if profile.superseded == "as_ranked" else DEPTH,
        marked=int(wanted.marked), omit=int(profile.superseded == "omit" and not wanted.about_past),
        grouped=int(wanted.grouped and not diverse), least=least,
        least_of=SIGNALS.score if profile.formula.min_score_of == "score" else SIGNALS.spread,
        least_confidence=least_before(profile.min_confidence),
        ranked=int(profile.fusion == "rrf" and profile.formula.composition == "product"), shared=int(wanted.shared),
        limit=_EVERY if wanted.diversify_by or (diverse and wanted.grouped) else pool,
        final=wanted.limit, k1=K1, b=B,
        standing=0 if wanted.grouped or wanted.diversify_by else profile.standing_instructions,
        parameters=rank_parameters(profile), forest=NO_TREES if ranking is None else ranking.forest, weights=weights,
    )  # fmt: skip


def at(plan: kernels.Plan, clock_us: int) -> kernels.Plan:
    """The plan at a moment that ages are measured from."""
    parameters = plan.parameters
    timed = _as_parameters((*parameters[:_CLOCK], clock_us, *parameters[_CLOCK + 1 :]))
    return _as_plan((*plan[:_PARAMETERS], timed, *plan[_PARAMETERS + 1 :]))


@lru_cache(maxsize=64)
def rank_parameters(profile: Profile) -> kernels.RankParameters:
    """The options of the same name, except those below; the clock is 0."""
    same = {
        name: getattr(part, name)
        for part in (profile, profile.formula)
        for name in kernels.RankParameters._fields
        if hasattr(part, name)
    }
    changed = {
        "rrf_k": profile.formula.rrf_k if profile.fusion == "rrf" else -1.0,
        "expansion_depth": EXPANDED if profile.neighbor_boost > 0 else 0,
        "neighbor_weight": profile.neighbor_boost * _NEIGHBOR_SHARE,
        "source_weight": profile.neighbor_boost * _SOURCE_SHARE,
        "near": _NEAR,
        "far": _FAR,
        "lone_share": _LONE_SHARE,
        "clock": 0,
        "half_life_days": profile.half_life_days or np.inf,
        "decay_floor": profile.decay_floor if profile.half_life_days else 0.0,
        "exponential": int(profile.formula.decay == "exp"),
        "keyword_fallback": int(profile.formula.keyword_fallback),
        "weighted_sum": int(profile.formula.composition == "weighted_sum"),
    }
    return kernels.check_parameters(kernels.RankParameters(**{**same, **changed}))
