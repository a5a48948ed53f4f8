"""Profiles of recall: named sets of choices."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import structs

from recallite.errors import InvalidInput
from recallite.model.configuration import Count, NonNegative, Section, Setting, Share, declared
from recallite.model.filters import FIELD_NAMES
from recallite.system import plugins
from recallite.system.messages import shown


class Formula(NamedTuple):
    """Choices in the score that only a `DialectProfile` has: see `recallite.compat.dialect_profiles`."""

    rrf_k: float = 60.0
    ranked_share: float = 0.0
    keyword_fallback: bool = False
    candidate_multiplier: int = 2
    composition: Literal["product", "weighted_sum"] = "product"
    semantic_weight: float = 0.5
    recency_weight: float = 0.3
    min_score_of: Literal["score", "relevance"] = "score"
    gap_score: float | None = None
    exact_rescore: bool = False
    decay: Literal["half_life", "exp"] = "half_life"


_FORMULA = Formula()


class Profile(Section, frozen=True, kw_only=True, cache_hash=True):
    """Choices of how recall ranks. A call can override it, as in `recall(query, profile={"neighbor_boost": 0})`.

    - name: The preset that the profile is or was made from; it also implies a write policy.
    - limit: Hits of a recall that does not say how many.
    - vector_weight: Share of the cosine in the fused score.
    - keyword_weight: Share of max-normalised BM25 in the fused score.
    - fusion: How the shares are joined: a weighted sum, or reciprocal rank fusion normalised to [0.4, 1.0] over the
      candidates. A record that shares no word with the query has no keyword rank; one whose cosine is 0 or less, or
      below `ranked_share` of the best, has no vector rank. Without any rank it scores 0.4.
    - candidates: Candidates by vector, and by keyword, that are fused.
    - neighbor_boost: Strength of spreading activation; 0 turns it off. With 1 a record gains up to 0.4 times its
      strongest neighbour's score (up to two places before and after in the same source, or linked), and 0.5 times that
      of the three best records of its source. The neighbours of the best 100 candidates become candidates too.
    - importance_weight: Weight of importance: a record of importance 1 scores this share above one of 0.5, and one of
      0 as much below.
    - speaker_weight: If the question names the context of a record, a speaker above all, its score is multiplied by
      1 + this weight.
    - date_weight: If the question names a time ("in May", "last week"), in English, the score of a record of that
      time is multiplied by 1 + this weight, and of one up to a week later by less.
    - half_life_days: Age at which the recency weight, 0.5^(age / half_life_days), halves; 0 if age does not count.
    - decay_floor: Least recency weight.
    - mmr_lambda: Jaccard MMR: 1 is relevance alone, 0 diversity alone, None is off.
    - min_score: Hits with a lower score are dropped.
    - min_confidence: Hits with a lower confidence are dropped.
    - gap_confidence: If the best hit's confidence is lower, `evidence_gaps` says what is missing.
    - rescore_depth: Nearest vectors whose cosine is measured exactly; other cosines come from int8 codes.
    - rerank_weight: Weight of token-level reranking beside the fused score; it needs `Settings.token_codes`.
    - rerank_depth: Best candidates that are reranked.
    - learned_ranking: Put the best 20 in the order of a trained forest, if the embedder is the default one and the
      store has token codes. None is on where every weight of the ranking is that of the profile `default`.
    - long_query_chars: A question of at least this many characters is also split into sub-queries; None never splits.
    - standing_instructions: Most standing instructions and preferences ("always ...", "I prefer ...") that recall
      brings after the hits that rank; 0 brings none.
    - superseded: What becomes of a hit whose statement another of the best 20 makes with a later value: it can come
      directly after that ("after_current"), be left out ("omit"), or stay where it ranks ("as_ranked"). In a question
      about the past what held then goes before what came later, and nothing is left out.
    - hops: How often a question that describes something by something else ("where was the author of Dune born?") is
      asked again with the values that its hits state; what has such a value as its subject joins the hits. In English,
      and not with `diversify_by` or `token_budget`; it needs `adaptive`. 0 turns it off.
    - adaptive: English questions about a whole story ("in what order did I ...", "summarise how ... changed over time")
      are recognised, searched by their topic, and answered with `diversify_by="time"`. Those and questions about the
      past ("where did I live before", "what was my first job", "in March") are recalled with superseded records.
    """

    name: Literal["default", "reeve", "hermes", "memweave"] = "default"
    limit: Count = 10
    vector_weight: NonNegative = 0.6
    keyword_weight: NonNegative = 0.4
    fusion: Literal["weighted", "rrf"] = "weighted"
    candidates: Count = 200
    neighbor_boost: NonNegative = 1.0
    importance_weight: NonNegative = 0.2
    speaker_weight: NonNegative = 0.2
    date_weight: NonNegative = 0.25
    # 90 days find as much as 30 on RealMem, with better first ranks, and lose no old session on LongMemEval.
    half_life_days: NonNegative = 90.0
    decay_floor: Share = 0.5
    mmr_lambda: Share | None = None
    min_score: Share = 0.0
    min_confidence: Share = 0.0
    # Keeps 95 % of the right first hits of questions that the weights were not fitted on.
    gap_confidence: Share = 0.15
    rescore_depth: int = 16
    # Of 0.5, 0.75, 1, 1.5 and 2: what FriendsQA and QMSum gain from, as turns and as passages.
    rerank_weight: NonNegative = 1.0
    rerank_depth: int = 50
    learned_ranking: bool | None = None
    long_query_chars: Annotated[int | None, Setting(minimum=2)] = None
    standing_instructions: Annotated[int, Setting(minimum=0)] = 3
    superseded: Literal["after_current", "omit", "as_ranked"] = "after_current"
    hops: Annotated[int, Setting(minimum=0, maximum=5)] = 3
    adaptive: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vector_weight + self.keyword_weight <= 0:
            raise InvalidInput("vector_weight and keyword_weight are both 0: nothing would rank")

    @property
    def formula(self) -> Formula:
        """The rest of how scores are made."""
        return _FORMULA

    @property
    def ranks_by_forest(self) -> bool:
        """Whether learned ranking orders the best, if the embedder is one that it ranks for."""
        if self.learned_ranking is not None:
            return self.learned_ranking
        same = all(getattr(self, name) == value for name, value in _WEIGHTS_OF_THE_DEFAULT.items())
        return same and all(getattr(self.formula, name) == getattr(_FORMULA, name) for name in _RANKING_OF_THE_FORMULA)

    def override(self, changes: Mapping[str, Any]) -> "Profile":
        """The profile with some choices changed. Raises InvalidInput for an unknown name or a wrong value."""
        if not changes:
            return self
        fields = declared(type(self))
        values = {}
        for name, value in changes.items():
            if name not in fields or name == "name":
                raise InvalidInput(unknown_option("a profile", name))
            values[name] = fields[name].check(value, name)
        return structs.replace(self, **values)


def unknown_option(where: str, name: str) -> str:
    """Name what to use in place of an unknown argument of `recall` or choice of a profile."""
    if name in _MEANT:
        use = f"use {_MEANT[name]}"
    elif name in Profile.__struct_fields__:
        use = f"give profile={{{name!r}: ...}}"
    elif name in Formula._fields:
        use = f"profiles of other systems have it: give profile={{'name': 'reeve', {name!r}: ...}}, hermes or memweave"
    elif name in FIELD_NAMES:
        use = f"give filter=Filter({name}=...)"
    else:
        near = get_close_matches(name, (*OPTIONS, *FIELD_NAMES, *ARGUMENTS), n=1)
        use = f"did you mean {near[0]}? " if near else ""
        use += f"use one of {', '.join(OPTIONS)}, or a field of a filter: {', '.join(FIELD_NAMES)}"
    return f"{where} has no option {shown(name)}: {use}"


ARGUMENTS = ("query", "limit", "vector", "mode", "profile", "relevant", "filter", "diversify_by", "token_budget")


_WEIGHTS_OF_THE_DEFAULT = {
    name: getattr(Profile(), name)
    for name in (
        "vector_weight", "keyword_weight", "fusion", "neighbor_boost", "rerank_weight", "speaker_weight", "date_weight",
    )
}  # fmt: skip

_RANKING_OF_THE_FORMULA = ("ranked_share", "keyword_fallback", "composition")

# As mem0, Chroma and LangChain call them.
_MEANT = {
    **dict.fromkeys(("k", "top_k", "n", "n_results", "num_results", "max_results"), "limit"),
    **dict.fromkeys(("metadata", "metadatas", "filters", "where_document"), "where={...}, or a field of a filter"),
    **dict.fromkeys(("user_id", "agent_id", "run_id"), "scope, or memory.scoped('/users/ada')"),
    **dict.fromkeys(("threshold", "score_threshold"), "relevant=True, or profile={'min_confidence': ...}"),
    "namespace": "scope", "group_by": "diversify_by='one_per_source'",
}  # fmt: skip
OPTIONS = (*Profile.__struct_fields__[1:], *Formula._fields)
"""Every name that `Profile.override` takes, of a profile of another system too."""

DEFAULT = Profile()
DIALECTS = ("reeve", "hermes", "memweave")
"""The profiles that rank as another system does; they are loaded when one is named."""


def resolve_profile(profile: object, name: str = "profile") -> Profile:
    """The profile of this name, or the profile given; `name` is what errors call it."""
    if isinstance(profile, Profile):
        return profile
    if isinstance(profile, str) and profile == "default":
        return DEFAULT
    if isinstance(profile, str) and profile in DIALECTS:
        dialect: Profile = plugins.load("profiles", profile)
        return dialect
    raise InvalidInput(f"{name} is {shown(profile)}: use one of default, {', '.join(DIALECTS)}")
