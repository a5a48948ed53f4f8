"""Other systems: their sections in a settings file, and profiles that rank as they do.

Sections are those of Reeve's `reeve.json` and of Hermes' `config.yaml`; profiles those of Reeve, Hermes and memweave.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from recallite.errors import InvalidInput
from recallite.model.configuration import Count, NonNegative, Share, check_keys
from recallite.model.settings import Formula, Profile
from recallite.system.messages import shown


class Dialect(NamedTuple):
    """A system's section: its key in the file, the profile it implies, and its keys with the (table, key) of ours.

    `part` is the key below the section that tells it from other things of the same name; all else is left out.
    `implied` is what a value of a key means besides, by (table, key) of ours, where the file does not say otherwise.
    """

    name: str
    profile: str
    keys: dict[str, tuple[str, str]]
    part: str | None = None
    implied: Mapping[tuple[str, Any], Mapping[tuple[str, str], Any]] = {}

    def without_others(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """The file's table without what the system keeps in the section beside its memory settings."""
        section = table[self.name]
        if self.part is not None and isinstance(section, Mapping) and self.part in section:
            return {**table, self.name: {self.part: section[self.part]}}
        return table


REEVE_SECTION = Dialect(
    "memorySearch",
    profile="reeve",
    keys={
        "temporalDecay.halfLife": ("profile", "half_life_days"),
        "temporalDecay.floor": ("profile", "decay_floor"),
        "mergeStrategy": ("write", "merge_strategy"),
    },
    # Every version counts alike: none is put after another because it is older.
    implied={
        ("mergeStrategy", "append"): {("write", "supersede_confidence"): None, ("profile", "superseded"): "as_ranked"}
    },
)
HERMES_SECTION = Dialect(
    "memory",
    profile="hermes",
    keys={
        "recall.semantic_weight": ("profile", "semantic_weight"),
        "recall.recency_weight": ("profile", "recency_weight"),
        "recall.importance_weight": ("profile", "importance_weight"),
        "recall.recency_half_life_days": ("profile", "half_life_days"),
    },
    part="recall",
)
DIALECTS = {dialect.name: dialect for dialect in (REEVE_SECTION, HERMES_SECTION)}


def own_table(dialect: Dialect, table: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The table in Recallite's form, and for each of our keys the key that the file has for it.

    Raises InvalidInput, which begins with the key of the file, for what the section may not hold.
    """
    translated = {key: value for key, value in table.items() if key != dialect.name}
    name = translated.get("profile", dialect.profile)
    profile = {"name": name} if isinstance(name, str) else dict(name) if isinstance(name, Mapping) else name
    if not isinstance(profile, dict) or profile.setdefault("name", dialect.profile) != dialect.profile:
        raise InvalidInput(f"profile is {shown(name)}: {dialect.name} goes with the profile {dialect.profile!r}")
    tables: dict[str, Any] = {"profile": profile, "write": translated.get("write", {})}
    origins: dict[str, str] = {}
    for path, value in _leaves(table[dialect.name], dialect):
        part, key = dialect.keys[path]
        present = tables[part]
        if not isinstance(present, Mapping):
            raise InvalidInput(f"{part} is {shown(present)}: give a table")
        if key in present and present[key] != value:
            raise InvalidInput(
                f"{dialect.name}.{path} is {shown(value)} and {part}.{key} is {shown(present[key])}: give one of them"
            )
        tables[part] = {**present, key: value}
        origins[f"{part}.{key}"] = f"{dialect.name}.{path}"
        for (part, key), meant in dialect.implied.get((path, value), {}).items() if isinstance(value, str) else ():
            tables[part] = {key: meant, **tables[part]}
    translated["profile"] = tables["profile"]
    if tables["write"]:
        translated["write"] = tables["write"]
    return translated, origins


def with_file_keys(fault: InvalidInput, origins: Mapping[str, str]) -> InvalidInput:
    """The error with the key that the file has in place of ours."""
    key, space, rest = str(fault).partition(" ")
    return InvalidInput(f"{origins.get(key, key)}{space}{rest}")


def _leaves(table: object, dialect: Dialect, path: str = "") -> list[tuple[str, Any]]:
    """Every key of the section with its value, by its path in it."""
    inside = [key.removeprefix(path) for key in dialect.keys if key.startswith(path)]
    allowed = tuple(dict.fromkeys(key.split(".")[0] for key in inside))
    leaves: list[tuple[str, Any]] = []
    for key, value in check_keys(table, f"{dialect.name}.{path}".rstrip("."), allowed).items():
        here = path + key
        leaves += [(here, value)] if here in dialect.keys else _leaves(value, dialect, f"{here}.")
    return leaves


_WEIGHTS_OF_THE_SUM = ("semantic_weight", "recency_weight")


class DialectProfile(Profile, frozen=True, kw_only=True, cache_hash=True):
    """A profile with the choices that only other systems have.

    With `composition="weighted_sum"` the best by the sum are the best of all visible records, with three exceptions:
    spreading, reranking, rank fusion, speakers and dates only move records that are candidates without them; a record
    among more than 4,096 can be hidden where its sketch is farther from its cosine than 5 standard deviations; and a
    record without a vector needs a word of the query.

    - rrf_k: The constant k of reciprocal rank fusion.
    - ranked_share: Least share of the query's best cosine that gets a vector rank.
    - keyword_fallback: If the query or a record has no vector, max-normalised BM25 is the whole fused score.
    - candidate_multiplier: At least this many times the limit are candidates.
    - composition: `product` multiplies the spread score by recency and importance. `weighted_sum` is semantic_weight *
      similarity + recency_weight * decay + importance_weight * importance, with the spread score cut to [0, 1] as
      similarity and weights that are divided by their sum.
    - semantic_weight: Weight of the similarity in `weighted_sum`.
    - recency_weight: Weight of recency in `weighted_sum`.
    - min_score_of: What `min_score` applies to: the score, or the relevance before recency and importance.
    - gap_score: A hit with at least this score closes the gap too; sub-queries of a question go by confidence alone.
    - exact_rescore: Measure the cosine of every candidate exactly.
    - decay: `half_life` is 0.5^(age / half_life_days), `exp` is e^(-age / half_life_days).
    """

    rrf_k: NonNegative = 60.0
    ranked_share: Share = 0.0
    keyword_fallback: bool = False
    candidate_multiplier: Count = 2
    composition: Literal["product", "weighted_sum"] = "product"
    semantic_weight: NonNegative = 0.5
    recency_weight: NonNegative = 0.3
    min_score_of: Literal["score", "relevance"] = "score"
    gap_score: Share | None = None
    exact_rescore: bool = False
    decay: Literal["half_life", "exp"] = "half_life"

    def __post_init__(self) -> None:
        super().__post_init__()
        summed = self.semantic_weight + self.recency_weight + self.importance_weight
        if self.composition == "weighted_sum" and summed <= 0:
            raise InvalidInput("semantic_weight, recency_weight and importance_weight are all 0: nothing would rank")

    @property
    def formula(self) -> Formula:
        """The rest of how scores are made."""
        return Formula(*(getattr(self, name) for name in Formula._fields))

    def override(self, changes: Mapping[str, Any]) -> Profile:
        """The profile with some choices changed.

        Raises InvalidInput as `Profile.override`, and for weights of a sum where the score is a product.
        """
        changed = super().override(changes)
        summed = [name for name in _WEIGHTS_OF_THE_SUM if name in changes]
        if summed and changed.formula.composition != "weighted_sum":
            raise InvalidInput(
                f"{summed[0]} is a weight of a sum, and composition is {shown(changed.formula.composition)}: use "
                "profile='hermes' or composition='weighted_sum', in mode 'hybrid'"
            )
        return changed


PROFILES: dict[str, DialectProfile] = {
    # Cosine rank and keyword rank count alike, normalised over the candidates: the best has 1.
    "reeve": DialectProfile(
        name="reeve", vector_weight=1.0, keyword_weight=1.0, fusion="rrf", rrf_k=60.0, ranked_share=0.5,
        neighbor_boost=0.0, rerank_weight=0.0, speaker_weight=0.0, date_weight=0.0, half_life_days=30.0,
        decay_floor=0.5, importance_weight=0.0, standing_instructions=0, hops=0, adaptive=False,
    ),
    # Records with a vector score by its cosine; recency and importance can bring in a record of any cosine.
    # Without similarity the sum reaches at most 0.5, so a hit counts as evidence from 0.55.
    "hermes": DialectProfile(
        name="hermes", limit=5, vector_weight=1.0, keyword_weight=0.0, keyword_fallback=True, neighbor_boost=0.0,
        rerank_weight=0.0, speaker_weight=0.0, date_weight=0.0, composition="weighted_sum",
        semantic_weight=0.5, recency_weight=0.3, importance_weight=0.2,
        half_life_days=30.0, decay_floor=0.0, rescore_depth=50, exact_rescore=True, long_query_chars=200,
        gap_score=0.55, standing_instructions=0, superseded="as_ranked", hops=0, adaptive=False,
    ),
    # MMR and decay are off; memweave uses mmr_lambda=0.7 where it is on, and half_life_days turns decay on.
    "memweave": DialectProfile(
        name="memweave", limit=6, vector_weight=0.7, keyword_weight=0.3, keyword_fallback=True, candidates=1,
        candidate_multiplier=4, neighbor_boost=0.0, rerank_weight=0.0, speaker_weight=0.0, date_weight=0.0,
        min_score=0.35, min_score_of="relevance", half_life_days=0, decay_floor=0.0, importance_weight=0.0,
        rescore_depth=50, exact_rescore=True,
        standing_instructions=0, superseded="as_ranked", hops=0, adaptive=False,
    ),
}  # fmt: skip
REEVE, HERMES, MEMWEAVE = PROFILES.values()
