"""Profiles of recall: named sets of choices, and the names that other memory systems have for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from msgspec import Struct, structs

from recollect.checks import check_choice, check_count, check_finite, check_unit, shown
from recollect.errors import InvalidInput

__all__ = ["ALIASES", "OPTIONS", "PROFILES", "Profile", "ProfileChoices", "by_own_names", "resolve_profile"]

ALIASES = {
    "halfLife": "half_life_days",
    "recency_half_life_days": "half_life_days",
    "decay_half_life_days": "half_life_days",
    "floor": "decay_floor",
}
"""What Reeve, Hermes and memweave call a choice, where it is not our name."""

_OF_THE_SUM = ("semantic_weight", "recency_weight")


class Profile(Struct, frozen=True, kw_only=True):
    """A full set of choices of recall. Any field but `name` can be overridden per call, e.g. `recall(query, spread=0)`.

    - name: the profile of `PROFILES` that it is or was made from, which also says what writing does by default.
    - limit: how many hits a recall gives unless it says so.
    - vector_weight, keyword_weight: shares of cosine and of max-normalised BM25 in the fused score.
    - fusion: "weighted", or "rrf" (reciprocal rank fusion with `rrf_k`, normalised to [0.4, 1.0] over what has a rank).
      What shares no word with the query has no rank by keyword, and what has a cosine of 0 or less, or below
      `ranked_share` of the query's best, none by vector. What is weakly related, so that it has no rank, scores 0.4.
    - keyword_fallback: where no vector can be had, of the query or of a record, max-normalised BM25 is the fused
      score; otherwise it keeps its share.
    - candidates, candidate_multiplier: of the best by vector, and by keyword, so many are fused, and at least so many
      times the limit.
    - spread: strength of spreading activation; 0 turns it off. Within it `neighbor_weight` is the share that flows
      from the strongest of the records up to two places before and after in the same source and of those linked
      (times the link's strength), `source_weight` the share of the source's best three.
    - expansion_depth: the neighbours of this many of the best candidates become candidates too.
    - composition: "product" multiplies the score after spreading by the decay and by importance (`importance_weight`:
      a record of importance 1 scores this share above one of 0.5, one of 0 as much below); "weighted_sum" is
      semantic_weight * similarity + recency_weight * decay + importance_weight * importance, where the similarity is
      the score after spreading, cut to [0, 1], and the weights are divided by their sum. The best by this sum are the
      best of all visible records, but for three cases: what spreading, reranking or fusion by ranks adds moves
      only what is a candidate without it; sketches farther apart than 5 standard deviations from what a cosine says
      hide a record among more than 4,096; and a record without a vector is none without a word of the query.
    - half_life_days, decay_floor, decay: weight of age, from 1 down to the floor; "half_life" is 0.5^(age / h),
      "exp" is e^(-age / h), "none" turns it off. A half-life given by a call turns it on.
    - mmr_lambda: Jaccard MMR; 1 is pure relevance, None turns it off.
    - min_score, min_confidence: hits below are dropped; `min_score_of` says whether the "score" has to reach it or the
      "relevance", which is the score before age and importance.
    - gap_confidence, gap_score: when the best hit's confidence is below the first, `evidence_gaps` says what is
      missing; not where a hit reaches the second, None for no such score. A question in parts goes by the first alone.
    - rescore_depth: how many of the nearest vectors are rescored from the stored float32.
    - exact_rescore: the best `rescore_depth` candidates by score, at least twice the limit, take their cosines from
      the stored float32 too; the others' come from int8 codes.
    - rerank_weight, rerank_depth: weight of token-level reranking (late interaction) beside the fused score, and how
      many of the best candidates it scores; it needs token codes (`Settings.token_codes`).
    - long_query_chars: a question at least so long is searched in parts as well; None: never.
    """

    name: Literal["default", "reeve", "hermes", "memweave"] = "default"
    limit: int = 10
    vector_weight: float = 0.6
    keyword_weight: float = 0.4
    fusion: Literal["weighted", "rrf"] = "weighted"
    rrf_k: float = 60.0
    ranked_share: float = 0.0
    keyword_fallback: bool = False
    candidates: int = 200
    candidate_multiplier: int = 2
    spread: float = 1.0
    neighbor_weight: float = 0.4
    source_weight: float = 0.5
    expansion_depth: int = 100
    composition: Literal["product", "weighted_sum"] = "product"
    semantic_weight: float = 0.5
    recency_weight: float = 0.3
    importance_weight: float = 0.2
    # 90 days find as much as 30 on RealMem, with better first ranks, and lose no old session on LongMemEval.
    half_life_days: float = 90.0
    decay_floor: float = 0.5
    decay: Literal["half_life", "exp", "none"] = "half_life"
    mmr_lambda: float | None = None
    min_score: float = 0.0
    min_score_of: Literal["score", "relevance"] = "score"
    min_confidence: float = 0.0
    gap_confidence: float = 0.5
    gap_score: float | None = None
    rescore_depth: int = 16
    exact_rescore: bool = False
    rerank_weight: float = 0.5
    rerank_depth: int = 50
    long_query_chars: int | None = None

    def __post_init__(self) -> None:
        for name in ("vector_weight", "keyword_weight", "neighbor_weight", "source_weight", "spread",
                     "semantic_weight", "recency_weight", "importance_weight", "rrf_k", "rerank_weight"):  # fmt: skip
            check_finite(getattr(self, name), name, minimum=0.0)
        if self.vector_weight + self.keyword_weight <= 0:
            raise InvalidInput("vector_weight and keyword_weight are both 0: nothing would rank")
        for name in ("min_score", "min_confidence", "gap_confidence", "decay_floor", "ranked_share"):
            check_unit(getattr(self, name), name)
        if check_finite(self.half_life_days, "half_life_days") <= 0:
            raise InvalidInput(f"half_life_days is {shown(self.half_life_days)}: give days above 0, or decay='none'")
        for name in ("mmr_lambda", "gap_score"):
            if getattr(self, name) is not None:
                check_unit(getattr(self, name), name)
        for name, allowed in _CHOICES.items():
            check_choice(getattr(self, name), name, allowed)
        for name in ("limit", "candidates", "candidate_multiplier"):
            check_count(getattr(self, name), name)
        for name in ("expansion_depth", "rescore_depth", "rerank_depth"):
            check_count(getattr(self, name), name, minimum=0)
        for name in ("keyword_fallback", "exact_rescore"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"{name} is {shown(getattr(self, name))}: True or False")
        if self.long_query_chars is not None:
            check_count(self.long_query_chars, "long_query_chars", minimum=2)
        if (
            self.composition == "weighted_sum"
            and self.semantic_weight + self.recency_weight + self.importance_weight <= 0
        ):
            raise InvalidInput("semantic_weight, recency_weight and importance_weight are all 0: nothing would rank")

    def override(self, changes: Mapping[str, Any]) -> Profile:
        """The profile with some choices changed, by our names or by `ALIASES`.

        Raises InvalidInput for an unknown name, for two names of one choice that say different things, and for weights
        of a sum where the score is a product.
        """
        if not changes:
            return self
        own = by_own_names(changes)
        if "half_life_days" in own and self.decay == "none":
            own.setdefault("decay", "half_life")
        changed = structs.replace(self, **own)
        summed = [name for name in _OF_THE_SUM if name in own]
        if summed and changed.composition != "weighted_sum":
            raise InvalidInput(
                f"{summed[0]} is a weight of a sum, and composition is {shown(changed.composition)}: use "
                "profile='hermes' or composition='weighted_sum', in mode 'hybrid'"
            )
        return changed


class ProfileChoices(TypedDict, total=False):
    """The choices of a `Profile` but `limit` as keyword arguments; None for `min_score` is the profile's own."""

    vector_weight: float
    keyword_weight: float
    fusion: Literal["weighted", "rrf"]
    rrf_k: float
    ranked_share: float
    keyword_fallback: bool
    candidates: int
    candidate_multiplier: int
    spread: float
    neighbor_weight: float
    source_weight: float
    expansion_depth: int
    composition: Literal["product", "weighted_sum"]
    semantic_weight: float
    recency_weight: float
    importance_weight: float
    half_life_days: float
    decay_floor: float
    decay: Literal["half_life", "exp", "none"]
    mmr_lambda: float | None
    min_score: float | None
    min_score_of: Literal["score", "relevance"]
    min_confidence: float
    gap_confidence: float
    gap_score: float | None
    rescore_depth: int
    exact_rescore: bool
    rerank_weight: float
    rerank_depth: int
    long_query_chars: int | None


_CHOICES: dict[str, tuple[str, ...]] = {
    "name": ("default", "reeve", "hermes", "memweave"),
    "fusion": ("weighted", "rrf"),
    "composition": ("product", "weighted_sum"),
    "decay": ("half_life", "exp", "none"),
    "min_score_of": ("score", "relevance"),
}
OPTIONS = (*Profile.__struct_fields__[1:], *ALIASES)
"""Every name that `Profile.override` takes."""

PROFILES: dict[str, Profile] = {
    "default": Profile(),
    # The cosine and the keyword rank count alike; normalised over the candidates, of which the best has 1.
    "reeve": Profile(
        name="reeve", vector_weight=1.0, keyword_weight=1.0, fusion="rrf", rrf_k=60.0, ranked_share=0.5, spread=0.0,
        rerank_weight=0.0, half_life_days=30.0, decay_floor=0.5, importance_weight=0.0,
    ),
    # All that have a vector score by its cosine; recency and importance bring a record in whatever its cosine.
    # Without any similarity the sum reaches 0.5 at most: from 0.55 on a hit is evidence.
    "hermes": Profile(
        name="hermes", limit=5, vector_weight=1.0, keyword_weight=0.0, keyword_fallback=True, spread=0.0,
        rerank_weight=0.0, composition="weighted_sum", semantic_weight=0.5, recency_weight=0.3, importance_weight=0.2,
        half_life_days=30.0, decay_floor=0.0, rescore_depth=50, exact_rescore=True, long_query_chars=200,
        gap_score=0.55,
    ),
    # MMR is off: mmr_lambda=0.7 is what memweave takes where it is on. So is age: half_life_days turns it on.
    "memweave": Profile(
        name="memweave", limit=6, vector_weight=0.7, keyword_weight=0.3, keyword_fallback=True, candidates=1,
        candidate_multiplier=4, spread=0.0, rerank_weight=0.0, min_score=0.35, min_score_of="relevance", decay="none",
        half_life_days=30.0, decay_floor=0.0, importance_weight=0.0, rescore_depth=50, exact_rescore=True,
    ),
}  # fmt: skip


def resolve_profile(name: object) -> Profile:
    """The profile of this name, or the profile given."""
    if isinstance(name, Profile):
        return name
    if isinstance(name, str) and name in PROFILES:
        return PROFILES[name]
    raise InvalidInput(f"profile is {shown(name)}: use one of {', '.join(PROFILES)}")


def by_own_names(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Choices under our names; a name that is none of `OPTIONS`, or two that contradict each other, are refused."""
    own: dict[str, Any] = {}
    said: dict[str, str] = {}
    for name, value in changes.items():
        if name not in OPTIONS:
            raise InvalidInput(f"recall has no option {shown(name)}: use one of {', '.join(OPTIONS)}")
        field = ALIASES.get(name, name)
        if field in own and own[field] != value:
            raise InvalidInput(
                f"{said[field]} is {shown(own[field])} and {name} is {shown(value)}, and both are the {field}: give one"
            )
        own[field], said[field] = value, name
    return own
