"""Settings of an engine: policies of writing, profiles of recall, and `Settings`, which holds them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, structs

from recallite.errors import InvalidInput
from recallite.model.authority import Authority, SourceAuthorities, check_authorities
from recallite.model.configuration import (
    Count,
    NonNegative,
    Section,
    Setting,
    Share,
    check_keys,
    declared,
    from_table,
    to_table,
)
from recallite.model.environment import ModelAddress, default_embedder
from recallite.model.filters import FIELD_NAMES
from recallite.system import plugins
from recallite.system.messages import shown
from recallite.text.secrets import redact, redact_all

MergeStrategy = Literal["append", "latest", "replace"]


class WritePolicy(Section, frozen=True, kw_only=True, dict=True):
    """Effects of a write on similar records of its own scope and kind.

    By default a text that replaces what an older one says supersedes it, contradictions are linked, and repeated
    statements are counted. Nothing is deleted or changed by that, and `restore` undoes it. Episodes, chunks, procedures
    and turns of a transcript (records with a position) are evidence, and left as they are. The rules are for English;
    in other languages they find equal texts, numbers and names.

    - supersede_confidence: A record is superseded by a text that replaces it with at least this confidence: the same
      statement with another value, or its end. Recall puts it after that text. None supersedes none.
    - contradict_confidence: Records that contradict the text with at least this confidence, or may be superseded by it,
      are linked to it as `contradicts`, and `remember` reports them. None finds none.
    - duplicates: `count` stores a statement once, with the times at which it was remembered, where nothing else that is
      given differs. `store` stores it again.
    - compare: Records that are written 64 or more at a time are compared with others `later`, in the background, or
      `now`, which takes four times as long. A single write always compares now; equal texts are always counted now.
    - several_values: More words for relations that hold several values at a time, such as 'likes' and 'owns'.
    - judge: Have the language model, where there is one, judge in the background what the rules leave open.
    - resolve_dates: Resolve dates in the text, such as 'last Tuesday', to `valid_from` and `valid_until` where none is
      given.
    - merge_strategy: For records of one topic: `append` keeps all, `latest` stores the new text as the next version,
      `replace` does so and purges the old text unless the record is pinned. Of several records the last changed is
      taken. Without a topic, `latest` and `replace` supersede what has changed, also where only the cosine tells that
      two values are of a kind ('prefers vim', 'prefers emacs'), and `replace` purges what a text surely says has.
    - topic_cosine: Without a given topic, the nearest record with at least this cosine shares the topic, unless the
      texts differ in numbers, dates, units, versions, negations, names, identifiers or subject: 'I take the bus'
      replaces 'I take the train', but 'MySQL 8.4' does not replace 'MySQL 8.0'. Not for texts that are embedded in
      several parts.
    - recognise_recalled: Do not store again what a recall in the scope may have returned, quoted line by line.
      Bullets, scores and the memory's own fields around it are ignored; with any other text around it, it is new.
    - link_cosine: Link to records with at least this cosine, as `similar` with the cosine as strength. Of texts that
      are embedded in several parts the nearest parts count.
    - most_links: Links made by `link_cosine` for a record.
    - junk: `skip` does not store a text that is only a greeting, thanks, agreement or tool noise (rules for English);
      `store` does. What has a topic, is pinned or answers a question of its context is stored, and so are episodes.
    - redact: `secrets` replaces keys, tokens, passwords, card numbers and IBANs, as '[redacted: card number]', before
      anything is embedded or stored: in text, context and metadata, and in the settings' policy also in messages,
      snapshots, working memory and documents. Names (tags, sources, topics, scopes) are kept. Hooks and imports from
      other systems always do so.
    - authority: Whose word a text is: `user`, `agent`, `tool`, `document` or `web`, or pairs of a pattern of sources
      and one of these, such as ("https://*", "web"); the first that fits counts, else `user`. A source that is a URL, a
      context such as 'assistant' or 'tool', and a chunk of a document lower it. A lower authority supersedes, repeats
      or replaces nothing of a higher one: it is linked as `contradicts`. Nor does any supersede a pinned record.
    """

    supersede_confidence: Share | None = 0.8
    contradict_confidence: Share | None = 0.6
    duplicates: Literal["count", "store"] = "count"
    compare: Literal["later", "now"] = "later"
    several_values: tuple[str, ...] = ()
    judge: bool = True
    resolve_dates: bool = True
    merge_strategy: MergeStrategy = "append"
    topic_cosine: Share | None = None
    recognise_recalled: bool = False
    link_cosine: Share | None = None
    most_links: int = 10
    junk: Literal["store", "skip"] = "store"
    redact: Literal["secrets"] | None = None
    authority: Annotated[Authority | SourceAuthorities, Setting(check=check_authorities)] = "user"

    @cached_property
    def compares_later(self) -> bool:
        """Whether many texts are compared in the background; what may be purged is compared at once."""
        return self.compare == "later" and self.merge_strategy != "replace"

    @cached_property
    def compares(self) -> bool:
        """Whether a text is compared with the statements stored."""
        marks = self.supersede_confidence is not None or self.contradict_confidence is not None
        return marks or self.duplicates == "count"

    def clean(self, text: str) -> str:
        """The text without what `redact` removes."""
        return text if self.redact is None else redact(text)

    def clean_json(self, value: Any) -> Any:
        """A JSON value without what `redact` removes from its strings."""
        return value if self.redact is None else redact_all(value)

    @cached_property
    def floor(self) -> float | None:
        """The least cosine for which all vectors are searched; None where they are not."""
        topic, linked = self.topic_cosine, self.link_cosine if self.most_links else None
        return linked if topic is None else topic if linked is None else min(topic, linked)


class Consolidation(Section, frozen=True, kw_only=True):
    """Settings of consolidation.

    - threshold: New episodes of an agent after which a cycle runs by itself.
    - decay_factor: Factor by which each cycle multiplies the importance of episodes.
    - prune_threshold: Episodes below this importance are deleted; 0 deletes none.
    - cycles_a_recall: Cycles by which each recall of an episode delays its deletion.
    - extract: Have the language model, where there is one, find lasting facts in the new episodes.
    """

    threshold: Count = 10
    decay_factor: Annotated[float, Meta(gt=0, le=1)] = 0.95
    prune_threshold: Share = 0.1
    # On LoCoMo 10 lost .007 of recall@20 for 4 % of the episodes, 3 .088 for 14 %, 0 .290 for 33 %.
    cycles_a_recall: NonNegative = 10.0
    extract: bool = False


# Profiles of recall: named sets of choices.
class Formula(NamedTuple):
    """Choices in the score that only a `DialectProfile` has: see `recallite.compat.dialects`."""

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
    - reading: How many of the first hits a small model reads together with the question, to put them in order and say
      how sure they are: the default embedder's, in English. None is five for `relevant=True` and otherwise 0. A hit
      takes 1.5 ms; of five, LoCoMo's MRR is .676 instead of .632.
    - long_query_chars: A question of at least this many characters is also split into sub-queries; None never splits.
    - standing_instructions: Most standing instructions and preferences ("always ...", "I prefer ...") that recall
      brings after the hits that rank; 0 brings none.
    - superseded: What becomes of a memory that another has superseded, and of a hit whose statement another of the best
      20 makes with a later value: it can come directly after that ("after_current"), be left out ("omit"), or stay
      where it ranks, if nothing surely replaced it ("as_ranked"). In a question about the past what held then goes
      before what came later, and nothing is left out.
    - hops: How often a question that describes something by something else ("where was the author of Dune born?") is
      asked again with the values that its hits state; what has such a value as its subject joins the hits. In English,
      and not with `diversify_by` or `token_budget`; it needs `adaptive`. 0 turns it off.
    - adaptive: English questions about a whole story ("in what order did I ...", "summarise how ... changed over time")
      are recognised, searched by their topic, and answered with `diversify_by="time"`. Those and questions about the
      past ("where did I live before", "what was my first job", "in March") are recalled with superseded records. What
      has a name with a number that the question has, as "EIP-3368", joins the first hits.
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
    reading: Annotated[int | None, Meta(ge=0, le=20)] = None
    long_query_chars: Annotated[int | None, Meta(ge=2)] = None
    standing_instructions: Annotated[int, Meta(ge=0)] = 3
    superseded: Literal["after_current", "omit", "as_ranked"] = "after_current"
    hops: Annotated[int, Meta(ge=0, le=5)] = 3
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

    def override(self, changes: Mapping[str, Any]) -> Profile:
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


_DEFAULT = Profile()
_WEIGHTS_OF_THE_DEFAULT = {
    name: getattr(_DEFAULT, name)
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


def resolve_profile(profile: object, name: str = "profile") -> Profile:
    """The profile of this name, or the profile given; `name` is what errors call it.

    Profiles that rank as another system does are entry points, loaded when one is named.
    """
    if isinstance(profile, Profile):
        return profile
    if isinstance(profile, str) and profile == "default":
        return DEFAULT
    if isinstance(profile, str) and profile in plugins.names("profiles"):
        dialect: Profile = plugins.load("profiles", profile)
        return dialect
    raise InvalidInput(f"{name} is {shown(profile)}: use one of {', '.join(['default', *plugins.names('profiles')])}")


# What users of a profile's system expect of its writes.
_WRITE_POLICIES = {
    "reeve": WritePolicy(merge_strategy="latest", topic_cosine=0.92),
    "hermes": WritePolicy(supersede_confidence=None, recognise_recalled=True),
}
_PLAIN_POLICY = WritePolicy()


def _check_profile(value: object, name: str) -> object:
    """The profile or its name; of a table with a `name` and changes, the profile that it says."""
    if not isinstance(value, Mapping):
        resolve_profile(value, name)
        return value
    named = resolve_profile(value.get("name", "default"), f"{name}.name")
    changes = dict(check_keys(value, name, type(named).__struct_fields__))
    changes.pop("name", None)
    return from_table(type(named), changes, name, make=lambda **values: named.override(values))


class Warm(Section, frozen=True, kw_only=True):
    """The resident process that keeps stores loaded for the command line and MCP hosts.

    - use: Whether the resident process opens this store; else each process opens the store itself.
    - idle_minutes: Minutes without use after which it closes the store. It ends when it has none; 0 keeps the store.
    """

    use: bool = True
    idle_minutes: NonNegative = 30.0


class Settings(Section, frozen=True, kw_only=True):
    """Settings of an engine. Every field has a measured or safe default.

    - embedder: `default`, `multilingual` (other languages; an extra), `instant` (token vectors, no network), `none`
      (keyword search, or vectors that the caller gives), a folder with an ONNX model, or a model over HTTP with its
      provider (`ollama/nomic-embed-text`, `voyage/voyage-3`). None is the environment's, else `default`.
    - query_prefix: What the embedder's model wants before a query, as `query: `; with a folder in place of what its
      `config_sentence_transformers.json` says.
    - document_prefix: The same before a memory or a part of a document, as `passage: `.
    - durability: `full` survives power loss once `remember` returns; `normal` survives a killed process.
    - profile: Profile of a recall that names none: its name, or a table with `name` and changes.
    - busy_timeout_ms: How long a write waits for another process's lock.
    - max_text_chars: Longer texts are refused.
    - index_snapshot: Keep a snapshot of the index of a store of 1,000 or more memories in `<database>-index`, or for a
      server in the user's cache folder, from which the index loads several times faster. The file is derived: it can be
      deleted at any time, and `forget` deletes it.
    - key_file: File whose first line is the key of an encrypted store, where `Memory` is given none. None is the
      environment's RECALLITE_KEY, else its RECALLITE_KEY_FILE.
    - token_codes: Store a code of 16 bytes for each content word, at most 64 per record, for token-level reranking:
      about 0.3 KB per chat turn. `reembed` adds the codes to what is stored, or removes them. Models over HTTP
      give none.
    - vectors: How the vectors of a new store are kept. `float16` takes half of the space, 0.8 KB less of a memory with
      384 components, and changes cosines by less than 0.001. A store of the other type refuses to be written; `rebuild`
      converts it, to `float16` for good.
    - sql_search: Keep an FTS5 table of the texts and a vec0 table of the vectors in the file, for search in SQL by any
      program; recall uses neither. A store gets them when it is opened so, and keeps them until `rebuild` without this
      setting. A write puts ten more pages into the WAL for them.
    - write: What writing does to similar records. None is what the profile implies: `reeve` keeps the latest memory of
      a topic, `hermes` recognises recalled text and reports contradictions without superseding anything.
    - consolidation: Consolidate episodes automatically after `threshold` new ones of an agent; None does not.
    - warm: Whether and how long the resident process keeps the store open. None is its defaults.
    """

    embedder: Annotated[str | None, Setting(environment="RECALLITE_EMBEDDER")] = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    durability: Literal["full", "normal"] = "full"
    profile: Annotated[str | Profile, Setting(check=_check_profile)] = "default"
    busy_timeout_ms: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 10_000
    max_text_chars: Count = 1_000_000
    index_snapshot: bool = True
    key_file: Annotated[str | None, Setting(environment="RECALLITE_KEY_FILE")] = None
    token_codes: bool = True
    vectors: Literal["float32", "float16"] = "float32"
    sql_search: bool = False
    write: WritePolicy | None = None
    consolidation: Consolidation | None = None
    warm: Warm | None = None

    @property
    def write_policy(self) -> WritePolicy:
        """The write policy: the setting, else what the profile implies."""
        return self.write or _implied(self.profile)

    @property
    def embedder_spec(self) -> str | ModelAddress:
        """The embedder to load: the setting, else the environment's, else "default"."""
        return self.embedder or default_embedder()

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Settings:
        """The settings of a table; `to_dict` gives one.

        `profile` is a name, or a table of changes with a `name`. `write` is a table; what it leaves out is as the
        profile implies. Raises InvalidInput, which begins with the key that is wrong.
        """
        settings = dict(check_keys(table, "", cls.__struct_fields__))
        profile = settings["profile"] = _check_profile(settings.get("profile", "default"), "profile")
        if settings.get("write") is not None:
            implied = partial(structs.replace, _implied(profile))
            settings["write"] = from_table(WritePolicy, settings["write"], "write", make=implied)
        return from_table(cls, settings)

    def to_dict(self) -> dict[str, Any]:
        """Every setting that is not its default, as `from_dict` and a file take it."""
        table = to_table(self, Settings())
        if isinstance(self.profile, Profile):
            table["profile"] = {"name": self.profile.name, **to_table(self.profile, resolve_profile(self.profile.name))}
        if self.write is not None:
            table["write"] = to_table(self.write, _implied(self.profile))
        return table


def _implied(profile: object) -> WritePolicy:
    return _WRITE_POLICIES.get(resolve_profile(profile).name, _PLAIN_POLICY)
