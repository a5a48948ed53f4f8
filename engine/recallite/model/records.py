"""Records, hits and links as immutable values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict, TypeVar, get_args

from msgspec import Struct, field, json, structs

from recallite.model.authority import Authority

__all__ = [
    "Changes",
    "Contradiction",
    "Expiry",
    "Explanation",
    "Former",
    "Hit",
    "Hits",
    "Link",
    "NewRecord",
    "Plain",
    "Reached",
    "Record",
    "RecordFields",
    "RecordOrHit",
    "Records",
    "SourceRef",
    "as_seen",
]

EmbeddingState = Literal["embedded", "pending", "refused", "none"]
Standing = Literal["instruction", "preference"]
Direction = Literal["out", "in", "both"]
OnExisting = Literal["error", "replace", "version"]
ON_EXISTING: tuple[OnExisting, ...] = get_args(OnExisting)
Outcome = Literal["created", "updated", "merged", "replaced", "duplicate", "skipped", "stored"]


_MOST_SHOWN = 60


class Plain(Struct, frozen=True):
    """A value that converts to JSON: times to ISO 8601 text, tuples to lists."""

    def to_dict(self) -> dict[str, Any]:
        """Every field by its name, as JSON values."""
        table: dict[str, Any] = json.decode(json.encode(self))
        return table

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.encode(self).decode()


def _short(text: str) -> str:
    """A text in quotes that fits into a line."""
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…")


DEFAULT_IMPORTANCE = 0.5
"""The importance of a memory that was given none."""


class NewRecord(Struct, frozen=True):
    """A memory to be stored: what `remember` takes by name, and what is rarer.

    - topic: what it is about, by which the policy finds what it repeats or continues
    - position: its place in its source, from 0
    - valid_until: what it says holds from `valid_from`, else `created_at`, until before this time
    - expires_at: a time, or how long it lives, from now and from each `update(id, renew=True)`, as a timedelta or as a
      text such as "P30D"
    - pinned: a policy purges no text of it, nor does consolidation
    - vector: a float32 (dimension,) of the store's embedder, or (parts, dimension) for several, of which recall
      compares the best; the text is not embedded then
    - supersedes: ids of memories in whose place it stands: see `Memory.supersede`, whose refusals are raised here too
    - indexed: with False it is stored, read by id and listed, but is in no recall
    """

    text: str
    scope: str = "/"
    kind: str = "memory"
    tags: Sequence[str] = ()
    importance: float = DEFAULT_IMPORTANCE
    metadata: dict[str, Any] | None = None
    context: str | None = None
    topic: str | None = None
    source: str | None = None
    position: int | None = None
    created_at: datetime | str | None = None
    valid_from: datetime | str | None = None
    valid_until: datetime | str | None = None
    expires_at: datetime | str | timedelta | None = None
    pinned: bool = False
    vector: Any = None
    supersedes: str | Sequence[str] | None = None
    id: str | None = None
    indexed: bool = True


class RecordFields(TypedDict, total=False):
    """The fields of a `NewRecord` that every kind of record has."""

    importance: float
    pinned: bool
    tags: Sequence[str]
    context: str | None
    topic: str | None
    source: str | None
    position: int | None
    metadata: dict[str, Any] | None
    created_at: datetime | str | None
    valid_from: datetime | str | None
    valid_until: datetime | str | None
    expires_at: datetime | str | timedelta | None
    supersedes: str | Sequence[str] | None
    vector: object


class Expiry(TypedDict, total=False):
    """The expiry of memories: a time (None: never) or a length of life; `renew`: as long after now as each lives."""

    expires_at: datetime | str | timedelta | None
    renew: bool


class Changes(Expiry, total=False):
    """The fields that `update` changes."""

    text: str
    context: str | None
    vector: Any
    kind: str
    scope: str
    tags: Sequence[str]
    importance: float
    metadata: dict[str, Any] | None
    topic: str | None
    source: str | None
    position: int | None
    valid_from: datetime | str | None
    valid_until: datetime | str | None
    pinned: bool


class Link(Plain, frozen=True, kw_only=True):
    """A directed edge between two records; `strength` in [0, 1], `reason` in words where one was given."""

    source: str
    target: str
    type: str = "similar"
    strength: float = 1.0
    created_at: datetime | None = None
    reason: str | None = None


class Contradiction(Plain, frozen=True, kw_only=True):
    """A stored memory that contradicts the one just written, found without a model.

    `authority` is whose word it is. `reason` says in a few words how they differ, `strength` how sure the rules are.
    `cosine` is that of the two, None where one has no vector of its own.
    """

    id: str
    text: str
    authority: Authority
    cosine: float | None
    reason: str
    strength: float


class Record(Plain, frozen=True, kw_only=True):
    """A stored memory. Times are UTC; `recorded_until` is set on a version that a later text has replaced.

    What it says holds from `valid_from` (else `created_at`) until before `valid_until`; `valid_resolved` says that
    these were found in the text. `superseded_by` are the memories that stand in its place since `superseded_at`, by the
    time of the store. What it says held until `held_until`; where that is None it may still hold: neither a caller nor
    the texts said for certain that it does not. `superseded_by_rule` is the reason, where rules or a language model
    found it and no caller said it. `supersedes` are those in whose place it stands. A statement that was remembered
    more than once has the number as `occurrences`, and all times as `occurred_at`, oldest first.

    `authority` is whose word it is; a lower one supersedes none of a higher one. `standing` says that the text is a
    standing instruction or preference of the user, as a model of ten languages has it.

    `expires_after` is how long it lives from when it was stored or renewed last; None: `expires_at` stays. One that is
    not `indexed` is in no recall.

    `base_importance` is the importance that recall ranks by, if consolidation has lowered `importance` since.

    After a write, `outcome` is "created", "merged" (a new version of this record), "replaced" (the same, with the old
    text purged), "duplicate" (this record has the text already; nothing was stored) or "skipped" (the text is junk;
    nothing was stored, and `id` is empty). `cosine` is the similarity to the record that was merged into or repeated,
    None if text or topic were equal. `links` are the links made automatically, strongest first; `contradictions` are
    memories that may contradict it, nearest first.
    """

    id: str
    text: str
    kind: str = "memory"
    scope: str = "/"
    context: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = DEFAULT_IMPORTANCE
    base_importance: float | None = None
    pinned: bool = False
    authority: Authority = "user"
    topic: str | None = None
    source: str | None = None
    position: int | None = None
    created_at: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    valid_resolved: bool = False
    updated_at: datetime
    accessed_at: datetime | None = None
    expires_at: datetime | None = None
    expires_after: timedelta | None = None
    access_count: int = 0
    recorded_from: datetime
    recorded_until: datetime | None = None
    superseded_at: datetime | None = None
    held_until: datetime | None = None
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    superseded_by_rule: str | None = None
    occurrences: int = 1
    occurred_at: tuple[datetime, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    embedding_state: EmbeddingState = "none"
    indexed: bool = True
    standing: Standing | None = None
    outcome: Outcome = "stored"
    cosine: float | None = None
    links: tuple[Link, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def held(self) -> tuple[datetime, datetime | None]:
        """Valid time of this version, from and until, as far as known; None for an open end."""
        is_first = self.recorded_from == self.created_at
        begin = self.valid_from or self.created_at if is_first else self.recorded_from
        return begin, self.recorded_until or self.held_until

    def __repr__(self) -> str:
        return f"Record({_short(self.text)}, scope={self.scope!r}, id={self.id!r})"


class Records(list[Record]):
    """The memories of a list, in order. `left_out` counts those that it would have if nothing had surely replaced them.

    `include_superseded` lists these too.
    """

    __slots__ = ("left_out",)

    def __init__(self, records: Iterable[Record] = (), *, left_out: int = 0) -> None:
        super().__init__(records)
        self.left_out = left_out


class Reached(Plain, frozen=True, kw_only=True):
    """A memory reached through links: the length of the shortest path, and the product of the strengths along it."""

    record: Record
    distance: int
    strength: float


class SourceRef(Plain, frozen=True, kw_only=True):
    """The source of a hit: its document, file or session, and the position in it."""

    id: str
    position: int | None = None
    path: str | None = None
    lines: tuple[int, int] | None = None


class Former(Plain, frozen=True, kw_only=True):
    """A memory that another has superseded, and the valid times between which it held."""

    id: str
    text: str
    held_from: datetime
    held_until: datetime


class Hit(Plain, frozen=True, kw_only=True):
    """One recalled record. `score` orders the hits of one query; `confidence` is comparable across queries.

    `supersedes` is what stood in its place before, the last first. A hit that is superseded itself, which recall shows
    after what superseded it, has `superseded_by`, and `held_until` unless it may still hold. `superseded_by` also names
    another of the best candidates that states the same thing with a later value, though nobody has marked it.
    `contradicts` are the ids of memories that say the opposite, or another value, where nothing says which holds.
    """

    id: str
    text: str
    score: float
    confidence: float
    kind: str = "memory"
    scope: str = "/"
    context: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = DEFAULT_IMPORTANCE
    created_at: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    updated_at: datetime
    authority: Authority = "user"
    topic: str | None = None
    held_until: datetime | None = None
    superseded_by: tuple[str, ...] = ()
    supersedes: tuple[Former, ...] = ()
    contradicts: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    source: SourceRef | None = None
    match_reasons: tuple[str, ...] = ()
    evidence_gaps: tuple[str, ...] = ()
    signals: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Hit({_short(self.text)}, confidence={self.confidence:.2f}, id={self.id!r})"


class Hits(list[Hit]):
    """The hits of one query, best first; in order of time where `diversify_by` says what they were spread over.

    `left_out` counts the hits that did not fit into `token_budget`; `evidence_gaps` says what the store seems not to
    know; `stages` has the milliseconds of each stage. `sub_queries` were searched besides a long query, and `scopes`
    are those that a language model restricted the search to.
    """

    __slots__ = ("diversify_by", "evidence_gaps", "left_out", "query", "scopes", "stages", "sub_queries")

    def __init__(
        self,
        hits: Iterable[Hit] = (),
        *,
        query: str = "",
        evidence_gaps: tuple[str, ...] = (),
        sub_queries: tuple[str, ...] = (),
        scopes: tuple[str, ...] = (),
        left_out: int = 0,
        diversify_by: str | None = None,
        stages: dict[str, float] | None = None,
    ) -> None:
        super().__init__(hits)
        self.query = query
        self.evidence_gaps = evidence_gaps
        self.sub_queries = sub_queries
        self.scopes = scopes
        self.left_out = left_out
        self.diversify_by = diversify_by
        self.stages = stages or {}

    @property
    def best(self) -> Hit | None:
        """The first hit; None where there is none."""
        return self[0] if self else None

    def to_dict(self) -> dict[str, Any]:
        """The query, the hits and the attributes, as JSON values."""
        table: dict[str, Any] = json.decode(json.encode(self.fields()))
        return table

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.encode(self.fields()).decode()

    def fields(self) -> dict[str, Any]:
        """The hits and the attributes by name, each as it is."""
        return {"hits": list(self)} | {name: getattr(self, name) for name in self.__slots__}


class Explanation(Plain, frozen=True, kw_only=True):
    """The reason that a record was, or was not, among the hits of a query.

    `stage` is "returned", or the stage that dropped it; `reason` says so in a sentence; `signals` and `ranks` have the
    value of each signal and the rank of the record by it (1 is best). If learned ranking placed the record,
    `ranks["formula"]` is its rank without that, and `learned` what each match reason and the score did for it
    against the mean of the best: above 0 it was raised. `authority` is whose word the
    record is: it ranks after what a higher one states of the same thing. `index` is what answered: the index in memory,
    by what it was loaded from ("store", "snapshot"), or "server: " and how that found candidates; ranks are then among
    these.
    """

    id: str
    query: str
    returned: bool
    stage: str
    reason: str
    rank: int | None = None
    score: float | None = None
    confidence: float | None = None
    authority: Authority | None = None
    signals: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    learned: dict[str, float] = field(default_factory=dict)
    index: str | None = None


RecordOrHit = TypeVar("RecordOrHit", Record, Hit)


def as_seen(value: RecordOrHit, base: str) -> RecordOrHit:
    """A record or hit with its scope relative to `base`, as a handle bound to it shows it.

    One of another scope, which the handle only reads, has the path from the root with a second slash: "//handbook".
    """
    if base == "/":
        return value
    own = value.scope == base or value.scope.startswith(f"{base}/")
    return structs.replace(value, scope=value.scope.removeprefix(base) or "/" if own else f"/{value.scope}")
