"""Values of a store: checked rows, records, blocks of arrays, supersessions, and rows of the services.

Rows are checked against their types: values of another program raise StoreCorrupt here instead of failing later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NewType, TypeVar

import msgspec
from msgspec import Struct

from recallite.errors import StoreCorrupt
from recallite.model.checks import EARLIEST_US, LATEST_US
from recallite.model.records import EmbeddingState, Record, Standing
from recallite.system.messages import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Microseconds since 1970 that a datetime can show.
Moment = Annotated[int, msgspec.Meta(ge=EARLIEST_US, le=LATEST_US)]
_PLACE = re.compile(r"`\$\[(\d+)\]")
Typed = TypeVar("Typed")


def runs_of(ids: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of consecutive row ids, as the first and the last of each, ascending."""
    distinct = {*ids}
    if distinct and max(distinct) - min(distinct) == len(distinct) - 1:  # a bulk write is one run
        return [(min(distinct), max(distinct))]
    runs: list[tuple[int, int]] = []
    for row_id in sorted(distinct):
        first = runs.pop()[0] if runs and runs[-1][1] == row_id - 1 else row_id
        runs.append((first, row_id))
    return runs


def read_row(row: tuple[Any, ...], type: type[Typed], table: str) -> Typed:
    """A row as the NamedTuple `type`; StoreCorrupt, which names it by its first column, if a value has another type."""
    try:
        return msgspec.convert(row, type)
    except msgspec.ValidationError as fault:
        place = _PLACE.search(str(fault))
        column = "a column" if place is None else type._fields[int(place[1])]  # type: ignore[attr-defined]
        raise StoreCorrupt(
            f"{table} {shown(row[0])}: {column} is not what was stored ({fault}): another program changed it; "
            "correct or remove the row"
        ) from None


def read_rows(rows: Iterable[tuple[Any, ...]], type: type[Typed], table: str) -> list[Typed]:
    """`read_row` of each."""
    rows = [*rows]
    try:
        return msgspec.convert(rows, list[type])  # type: ignore[valid-type]
    except msgspec.ValidationError:  # which row it is takes longer to find
        return [read_row(row, type, table) for row in rows]


def stored_json(text: object, what: str, type: type[Typed]) -> Typed:
    """Stored JSON as `type`; StoreCorrupt if another program has changed it."""
    try:
        return msgspec.json.decode(text if isinstance(text, str) else b"", type=type)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise StoreCorrupt(f"{what} is not what was stored ({fault}): another program changed it") from None


# Records, and what the repositories take and return.


class Row(Struct, kw_only=True, gc=False):
    """A record as it is written: checked, tokenised and, where it could be, embedded."""

    public_id: str
    kind: str
    scope: str
    text: str
    context: str | None = None
    importance: float = 0.5
    base_importance: float | None = None
    pinned: bool = False
    # The rank of who said it, as `model.authority` has it.
    authority: int = 0
    topic: str | None = None
    source: str | None = None
    position: int | None = None
    created_at: int
    valid_from: int | None = None
    valid_until: int | None = None
    valid_resolved: bool = False
    updated_at: int
    expires_at: int | None = None
    expires_after: int | None = None
    recorded_from: int
    recorded_until: int | None = None
    metadata: str | None = None
    content_hash: bytes
    indexed: bool = True
    # Which of the two the text is, if it asks for something from now on.
    standing: Standing | None = None
    tags: tuple[str, ...] = ()
    vectors: tuple[bytes, ...] = ()
    codes: tuple[bytes, ...] = ()
    pending: bool = False
    refused: str | None = None
    access_count: int = 0
    accessed_at: int | None = None
    # Further times at which it was remembered, with the text where that differs.
    repeated: tuple[tuple[int, str | None], ...] = ()
    # Whether the caller chose its id, and gave its vectors.
    named: bool = False
    vectors_given: bool = False
    # The ids of records that it supersedes, as a handle bound to the scope `base` named them.
    supersedes: tuple[str, ...] = ()
    base: str = "/"

    @property
    def embedding_state(self) -> EmbeddingState:
        """embedded, refused (by the embedder, which says why), pending (the embedder failed) or none (keyword only)."""
        if self.vectors:
            return "embedded"
        return "refused" if self.refused is not None else "pending" if self.pending else "none"


class Found(NamedTuple):
    """The fields that a hit shows of its record."""

    public_id: str
    text: str
    kind: str
    scope: str
    context: str | None
    tags: tuple[str, ...]
    importance: float
    created_at: Moment
    valid_from: Moment | None
    valid_until: Moment | None
    valid_resolved: bool
    updated_at: Moment
    topic: str | None
    metadata: dict[str, Any]
    source: str | None
    position: int | None
    authority: int


class CurrentRecord(Struct):
    """An open record that has not expired, or a row that is to become one: its row id is 0 until it is stored."""

    row_id: int
    public_id: str
    scope: str
    kind: str
    text: str
    context: str | None
    topic: str | None
    pinned: bool
    authority: int
    content_hash: bytes
    recorded_from: int
    # The row of a batch that its text comes from; None while it has the stored text.
    text_row: int | None = None

    @classmethod
    def of(cls, row: Row, text_row: int, row_id: int = 0) -> CurrentRecord:
        """Return the record that a row of a batch becomes, or a stored one that it replaces."""
        return cls(
            row_id, row.public_id, row.scope, row.kind, row.text, row.context, row.topic, row.pinned, row.authority,
            row.content_hash, row.recorded_from, text_row,
        )  # fmt: skip


class Version(NamedTuple):
    """One version of a record, with the float32 bytes of its parts where they were asked for, and its further times."""

    record: Record
    vectors: tuple[bytes, ...]
    repeated: Sequence[Occurrence] = ()


class Access(NamedTuple):
    """The number of times that a record was recalled, and the last time, in microseconds."""

    times: int
    last_at: int


Operation = Literal["insert", "text", "update", "delete", "link", "frames", "reload"]


Commit = NewType("Commit", str)
"""An opaque name of a commit: ask `Changes` what it means."""


class Change(NamedTuple):
    """The records `first_id` to `last_id` underwent `operation`."""

    first_id: int
    last_id: int
    operation: Operation


class SnapshotIdentity(NamedTuple):
    """The state that an index snapshot is of: token, lexicon epoch, the active embedder's fingerprint and id."""

    token: str
    lexicon_epoch: str
    fingerprint: str
    embedder_id: int | None


Direction = Literal["out", "in", "both"]


class LinkRow(NamedTuple):
    """A link as it is written, with the row ids of its ends."""

    source: int
    target: int
    type: str
    strength: float
    created_at: int
    reason: str | None = None


class Step(NamedTuple):
    """One link, as row ids of where a walk comes from and where it leads."""

    near: int
    far: int
    strength: float


NEVER = 2**63 - 1


class Columns(NamedTuple):
    """The columns that filters and scoring read, one entry a record, ascending by row id.

    `kind_numbers` gives the number of every kind of the store; positions, moments_until, recorded_until, expires_at,
    superseded_at and held_until are NEVER for none. `resolved` is 1 where the valid time was found in the text,
    `authorities` are the ranks of who said it without their sign. `tags` are the numbers of the tags of all records,
    and `tagged` the records that have them, ascending; there may be others among these.
    """

    ids: NDArray[np.int64]
    scopes: NDArray[np.int32]
    kinds: NDArray[np.int32]
    sources: NDArray[np.int64]
    positions: NDArray[np.int64]
    created_at: NDArray[np.int64]
    moments: NDArray[np.int64]
    moments_until: NDArray[np.int64]
    recorded_from: NDArray[np.int64]
    recorded_until: NDArray[np.int64]
    expires_at: NDArray[np.int64]
    superseded_at: NDArray[np.int64]
    held_until: NDArray[np.int64]
    importance: NDArray[np.float32]
    resolved: NDArray[np.uint8]
    authorities: NDArray[np.uint8]
    kind_numbers: dict[str, int]
    tagged: NDArray[np.int64]
    tags: NDArray[np.int32]


class TermBlock(NamedTuple):
    """Term lists of consecutive records: numbers, the byte of each word, and where each record's list ends."""

    ids: NDArray[np.int64]
    terms: NDArray[np.int32]
    counts: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class TokenBlock(NamedTuple):
    """Token codes of vectors with ascending row ids: how many uint64 each has, and all of them."""

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.uint64]


class LinkBlock(NamedTuple):
    """Links as row ids of their ends, with strengths."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    strengths: NDArray[np.float64]


class Parts(NamedTuple):
    """A text embedded: the float32 bytes of each part, and the codes of each part's tokens, or none at all.

    One without parts could not be embedded: `problem` says why, and `refused` that asking again would not help.
    """

    values: tuple[bytes, ...]
    codes: tuple[bytes, ...] = ()
    problem: str | None = None
    refused: bool = False

    @property
    def refusal(self) -> str | None:
        """Why the embedder refuses the text for good."""
        return self.problem if self.refused else None

    @property
    def waits(self) -> bool:
        """Whether the text is to be embedded later."""
        return self.problem is not None and not self.refused

    def rows(self, row_id: int) -> list[tuple[int, int, bytes, bytes | None]]:
        """The rows that `Vectors.insert` takes."""
        codes = self.codes or (None,) * len(self.values)
        return [(row_id, part, *pair) for part, pair in enumerate(zip(self.values, codes, strict=True))]


class EmbedderRow(NamedTuple):
    """An embedder that made vectors of this store, which keeps them as `vector_type`: float32 or float16."""

    id: int
    fingerprint: str
    name: str
    dimension: int
    vector_type: str = "float32"

    @property
    def vector_bytes(self) -> int:
        """The size of a stored vector."""
        return self.dimension * (2 if self.vector_type == "float16" else 4)

    @property
    def dtype(self) -> str:
        """The type of a stored component, as NumPy names it."""
        return "<f2" if self.vector_type == "float16" else "<f4"


CHUNK_KIND = "chunk"


class DocumentRow(NamedTuple):
    """A document as it is stored; times are microseconds since 1970 UTC, `mtime_ns` is the file's, in nanoseconds."""

    id: int
    public_id: str
    source_id: int
    source: str
    scope: str
    title: str | None
    media_type: str
    content_hash: bytes
    chunking: str
    size_bytes: int
    mtime_ns: int | None
    inode: int | None
    read_at: int
    metadata: str | None
    caller_metadata: str | None
    problem: str | None
    chunks: int
    created_at: int
    updated_at: int


class Chunk(NamedTuple):
    """A stored chunk: its row id, its text, and the fields that can change without a new embedding."""

    id: int
    text: str
    context: str | None
    position: int
    metadata: str | None
    created_at: int
    tags: str
    embedding_state: str


class Erased:
    """Traces that an erasure removes. `skipped` counts values too short to be searched for: they occur by chance."""

    def __init__(self) -> None:
        self.ids: tuple[str, ...] = ()
        self.pieces: set[bytes] = set()
        self.skipped = 0
        # Words, tags, sources and scopes, which are removed only if no other record has them, by table and column.
        self.names: dict[tuple[str, str], set[str]] = {}
        self.rows: dict[str, int] = {}
        self.had_snapshot = False


class AccessTokenRow(NamedTuple):
    """An access token, without its secret. Times are microseconds since 1970 UTC; `expires_at` None: never."""

    public_id: str
    name: str | None
    scope: str
    reads: str
    read_only: bool
    authority: int
    created_at: int
    expires_at: int | None


class CopyMark(NamedTuple):
    """The mark of an unfinished copy: its source, the part of it, and which run writes to it."""

    source: str
    scope: str
    access_tokens: bool
    run: str


class TenantRow(NamedTuple):
    """A role of the database server that is confined to a scope."""

    role: str
    scope: str
    created_at: int


# Supersessions, repeated statements, and pairs that wait to be judged.


class Supersession(NamedTuple):
    """The open version `new_id` in the place of `old_id`; times in microseconds.

    `holds_from` is the valid time from which the new one holds, `known_from` and `known_until` say when the store knew
    of it: it stands while `known_until` is None. The old one is left out of what is current only if this is `certain`.
    `by_rule` says that rules or a language model found it, and no caller said it.
    """

    old_id: int
    new_id: int
    holds_from: int
    known_from: int
    known_until: int | None = None
    reason: str | None = None
    strength: float = 1.0
    certain: bool = True
    by_rule: bool = False


class NamedSupersession(NamedTuple):
    """A supersession between public ids, as exports have it."""

    old: str
    new: str
    holds_from: Moment
    known_from: Moment
    known_until: Moment | None
    reason: str | None
    strength: float
    certain: bool | int
    by_rule: bool | int


def beginning(created_at: int, valid_from: int | None, *, resolved: bool) -> int:
    """The time when a statement begins to hold, to tell which of two holds later.

    A time that was found in the text counts as the moment at which it was told: "I moved to Bergen last month" replaces
    "I live in Oslo", told last week, and "The review moved to Thursday" what was told of next Friday.
    """
    return created_at if valid_from is None or resolved else valid_from


def stated_at(created_at: int, recorded_from: int, valid_from: int | None, *, resolved: bool) -> int:
    """The time as of which a version speaks. What is to come was announced when it was told.

    A text that `update` gave was told when its version began, not when the memory was created.
    """
    told_at = max(created_at, recorded_from)
    return told_at if valid_from is None or resolved else min(valid_from, told_at)


class Standpoint(NamedTuple):
    """The fields that decide whether a record may take part in a supersession."""

    row_id: int
    public_id: str
    scope: str
    kind: str
    begins_at: int
    recorded_from: int
    expires_at: int | None
    pinned: bool
    authority: int


class FormerRow(NamedTuple):
    """A record that another has superseded, and the valid times between which it held."""

    public_id: str
    text: str
    held_from: Moment
    held_until: Moment


class Occurrence(NamedTuple):
    """A further time at which a statement was remembered; `text` where it differs from the record's."""

    at: Moment
    text: str | None


class Sought(NamedTuple):
    """A search for records of exactly this scope and kind that share a key; the first keys count most."""

    keys: Sequence[int]
    scope: str
    kind: str


class SoughtText(NamedTuple):
    """A search for records of exactly this scope and kind with this `text_key`."""

    key: bytes
    scope: str
    kind: str


class Uncompared(NamedTuple):
    """The records from `first_id` to `last_id` wait to be compared, as a policy in JSON says."""

    first_id: int
    last_id: int
    policy: str


class StatementCandidate(Struct, frozen=True, gc=False):
    """An open record, neither expired nor superseded, that a new statement may repeat, supersede or contradict."""

    row_id: int
    public_id: str
    text: str
    context: str | None
    content_hash: bytes
    topic: str | None
    source: str | None
    position: int | None
    pinned: bool
    authority: int
    created_at: int
    valid_from: int | None
    valid_until: int | None
    valid_resolved: bool
    expires_at: int | None
    recorded_from: int
    metadata: str | None
    # The outline of its statement, empty where the store has none: it waits to be compared, or is no statement.
    outline: bytes
    tags: tuple[str, ...]
    # Further times at which it was remembered.
    repeated_at: tuple[int, ...]
    # The weight of the keys that it was found by; the first keys asked for weigh most.
    shared: int

    @property
    def begins_at(self) -> int:
        """The time when it begins to hold."""
        return beginning(self.created_at, self.valid_from, resolved=self.valid_resolved)


class Judgement(NamedTuple):
    """A pair of open records; the rules leave open whether the new one supersedes the old."""

    old_id: int
    new_id: int
    confidence: float
    reason: str
    created_at: int


# Rows of the services: sessions, their snapshots and messages, consolidation, patterns of tools and recoveries.


class SessionRow(NamedTuple):
    """A session as it is listed; times in microseconds."""

    row_id: int
    name: str
    scope: str
    provider: str | None
    messages: int
    created_at: Moment
    updated_at: Moment


class SnapshotRow(NamedTuple):
    """A snapshot as it is stored: lists are JSON."""

    public_id: str
    scope: str
    session: str | None
    messages: str
    summary: str
    key_decisions: str
    task_ids: str
    started_at: Moment | None
    ended_at: Moment
    total_cost: float
    total_tokens: int


class CycleRow(NamedTuple):
    """The work of one cycle; time in microseconds."""

    row_id: int
    scope: str
    trigger_id: int
    replayed_id: int
    created_at: Moment
    compressed: int
    pruned: int
    replayed: int
    promoted: int
    error: str | None


class ToolPattern(NamedTuple):
    """The record of one tool list for one type of task; an average is None if no run told its figure."""

    task_type: str
    pattern: str
    total_count: int
    success_count: int
    avg_steps: float | None
    avg_tokens: float | None


class Recovery(NamedTuple):
    """The recovery that helped against an error of a tool."""

    tool: str
    error_pattern: str
    error: str
    recovery: str
    total_count: int
