"""Many records as columns: rows from which a batch is written, texts, and what is derived from texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeAlias, overload

import numpy as np
from msgspec import Struct

from recallite.model.records import DEFAULT_IMPORTANCE, EmbeddingState, Standing

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Texts(NamedTuple):
    """The fields of versions that all else is derived from, an entry each."""

    kinds: Sequence[str]
    authorities: Sequence[int]
    positions: Sequence[int | None]
    recorded_until: Sequence[int | None]
    texts: Sequence[str]
    contexts: Sequence[str | None]
    tags: Sequence[Sequence[str]]


class Words(Struct, frozen=True):
    """The words of n texts.

    Text i has the words vocabulary[p] for p in indices[offsets[i]:offsets[i + 1]], each once, with a byte for each:
    indices int32 (m,), counts uint8 (m,), offsets int64 (n + 1,).
    """

    vocabulary: Sequence[str]
    indices: NDArray[np.int32]
    counts: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def of(self, texts: Sequence[int]) -> Words:
        """The words of these texts only."""
        rows = np.asarray(texts, np.int64)
        begins, lengths = self.offsets[rows], np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
        used, indices = np.unique(self.indices[entries], return_inverse=True)
        vocabulary = [*map(self.vocabulary.__getitem__, used.tolist())]
        return Words(vocabulary, indices.astype(np.int32), self.counts[entries], offsets)


class StatementForm(Struct, frozen=True):
    """What is stored of a statement: int64 keys, frames as pairs of uint32, and the outline."""

    keys: Sequence[int]
    frames: Sequence[tuple[int, int]]
    outline: bytes


class Derivation(Protocol):
    """What is derived from texts."""

    @property
    def words(self) -> Words:
        """The words of all texts."""

    @property
    def standing(self) -> Sequence[Standing | None]:
        """Whether each is a standing instruction or preference."""

    @property
    def hashes(self) -> Sequence[bytes]:
        """The hash of each text under its context."""

    def statement(self, i: int) -> StatementForm | None:
        """The form of the statement of text i; None if nothing is stored of it."""

    def frames(self, i: int) -> Sequence[tuple[int, int]]:
        """The frames of that form, which take less time."""


Derive: TypeAlias = Callable[[Texts], Derivation]
"""The function by which a store derives again what it has of texts; whoever opens the store gives it."""


def without_deriving(texts: Texts) -> Derivation:
    """Refuse to derive, in a store that was opened only to be read."""
    raise RuntimeError("the store was opened without the function that derives what it has of texts")


class Row(Struct, kw_only=True, gc=False):
    """A record as it is written: checked, tokenised and, where it could be, embedded."""

    public_id: str
    kind: str
    scope: str
    text: str
    context: str | None = None
    importance: float = DEFAULT_IMPORTANCE
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

    @property
    def begins_at(self) -> int:
        """The time when it begins to hold."""
        return beginning(self.created_at, self.valid_from, resolved=self.valid_resolved)


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


class Parts(NamedTuple):
    """A text embedded: the float32 bytes of each part, and the codes of each part's tokens, or none at all.

    One without parts could not be embedded: `problem` says why, and `refused` that asking again would not help.
    """

    values: tuple[bytes, ...]
    codes: tuple[bytes, ...] = ()
    problem: str | None = None
    refused: bool = False

    def rows(self, row_id: int) -> list[tuple[int, int, bytes, bytes | None]]:
        """The rows that `Vectors.insert` takes."""
        codes = self.codes or (None,) * len(self.values)
        return [(row_id, part, *pair) for part, pair in enumerate(zip(self.values, codes, strict=True))]


_FIELDS = Row.__struct_fields__
_values = attrgetter(*_FIELDS)


@dataclass(slots=True, eq=False)
class RowColumns(Sequence[Row]):
    """A list for each field of `Row`, all of one length.

    What is decided of rows is set in the columns. A row is made when one is looked at, which a bulk write hardly ever
    does, and kept until its columns change.
    """

    public_id: list[str]
    kind: list[str]
    scope: list[str]
    text: list[str]
    context: list[str | None]
    importance: list[float]
    base_importance: list[float | None]
    pinned: list[bool]
    authority: list[int]
    topic: list[str | None]
    source: list[str | None]
    position: list[int | None]
    created_at: list[int]
    valid_from: list[int | None]
    valid_until: list[int | None]
    valid_resolved: list[bool]
    updated_at: list[int]
    expires_at: list[int | None]
    expires_after: list[int | None]
    recorded_from: list[int]
    recorded_until: list[int | None]
    metadata: list[str | None]
    content_hash: list[bytes]
    indexed: list[bool]
    standing: list[Standing | None]
    tags: list[tuple[str, ...]]
    vectors: list[tuple[bytes, ...]]
    codes: list[tuple[bytes, ...]]
    pending: list[bool]
    refused: list[str | None]
    access_count: list[int]
    accessed_at: list[int | None]
    repeated: list[tuple[tuple[int, str | None], ...]]
    named: list[bool]
    vectors_given: list[bool]
    supersedes: list[tuple[str, ...]]
    base: list[str]
    # What was derived from the texts, and the index in it of each row; None for all, in order.
    derivation: Derivation | None = field(init=False, default=None, repr=False)
    derived: list[int] | None = field(init=False, default=None, repr=False)
    # The policy in JSON under which each row waits to be compared; None if none waits.
    waits_under: list[str | None] | None = field(init=False, default=None, repr=False)
    _made: dict[int, Row] = field(init=False, default_factory=dict, repr=False)

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Self:
        """Return the columns of these rows, which are `rows` itself if it is columns."""
        if isinstance(rows, cls):
            return rows
        rows = list(rows)
        columns = zip(*map(_values, rows), strict=True) if rows else [()] * len(_FIELDS)
        made = cls(**{name: [*column] for name, column in zip(_FIELDS, columns, strict=True)})
        made._made = dict(enumerate(rows))
        return made

    def __len__(self) -> int:
        return len(self.text)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        row = self._made.get(index)
        if row is None:
            if not 0 <= index < len(self.text):
                raise IndexError(index)
            row = self._made[index] = Row(**dict(zip(_FIELDS, map(itemgetter(index), _values(self)), strict=True)))
        return row

    def select(self, indices: Sequence[int]) -> Self:
        """Return the rows of these indices; itself if they are all."""
        if len(indices) == len(self.text):
            return self
        columns = ((name, getattr(self, name)) for name in _FIELDS)
        selected = type(self)(**{name: [column[i] for i in indices] for name, column in columns})
        # The same rows: a refusal is traced to its item by the identity of its row.
        selected._made = {new: self._made[i] for new, i in enumerate(indices) if i in self._made}
        selected.derivation = self.derivation
        selected.derived = [*indices] if self.derived is None else [self.derived[i] for i in indices]
        if self.waits_under is not None:
            selected.waits_under = [self.waits_under[i] for i in indices]
        return selected

    def texts(self) -> Texts:
        """The fields that all else is derived from: the columns themselves, so that a change in place is seen."""
        return Texts(self.kind, self.authority, self.position, self.recorded_until, self.text, self.context, self.tags)

    def give_vectors(self, vectors: Sequence[bytes]) -> None:
        """Set the vectors that the caller gave, one for each row."""
        self.vectors, self.vectors_given = [(vector,) for vector in vectors], [True] * len(self)
        self._made.clear()

    def put_parts(self, made: Mapping[int, Parts], given: Collection[int]) -> None:
        """Set what embedding made of some rows; `given` are those whose vectors the caller gave."""
        for i, parts in made.items():
            refused, pending = (parts.problem, False) if parts.refused else (None, parts.problem is not None)
            self.vectors[i], self.codes[i], self.vectors_given[i] = parts.values, parts.codes, i in given
            self.refused[i], self.pending[i] = refused, pending
            if (row := self._made.get(i)) is not None:
                row.vectors, row.codes, row.vectors_given = parts.values, parts.codes, i in given
                row.refused, row.pending = refused, pending

    @property
    def embedding_states(self) -> list[EmbeddingState]:
        """The `embedding_state` of each row."""
        if all(self.vectors):
            return ["embedded"] * len(self.text)
        return [
            "embedded" if parts else "refused" if refused is not None else "pending" if pending else "none"
            for parts, refused, pending in zip(self.vectors, self.refused, self.pending, strict=True)
        ]


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
