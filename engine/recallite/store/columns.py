"""Rows as columns, from which a batch of records is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Self, overload

from recallite.model.records import EmbeddingState
from recallite.store.values import Row
from recallite.text.reading import Reading
from recallite.text.standing import Standing

_FIELDS = Row.__struct_fields__
_values = attrgetter(*_FIELDS)
# The fields of a prepared row that embedding and writing set.
_DECIDED = ("topic", "vectors", "vectors_given", "codes", "pending", "refused")


@dataclass(slots=True, eq=False)
class RowColumns(Sequence[Row]):
    """A list for each field of `Row`, all of one length.

    A row is made when it is asked for, which a bulk write hardly ever does, and kept.
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
    # What was read in the texts, and the index in it of each row's text; None for all, in order.
    reading: Reading | None = field(init=False, default=None, repr=False)
    texts_read: list[int] | None = field(init=False, default=None, repr=False)
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
        if not 0 <= index < len(self):
            raise IndexError(index)
        row = self._made.get(index)
        if row is None:
            row = self._made[index] = Row(**{name: getattr(self, name)[index] for name in _FIELDS})
        return row

    def select(self, indices: Sequence[int]) -> Self:
        """Return the rows of these indices; itself if they are all."""
        self.copy_decisions_to_columns()
        if len(indices) == len(self):
            return self
        columns = ((name, getattr(self, name)) for name in _FIELDS)
        selected = type(self)(**{name: [column[i] for i in indices] for name, column in columns})
        # The same rows: a refusal is traced to its item by the identity of its row.
        selected._made = {new: self._made[i] for new, i in enumerate(indices) if i in self._made}
        if self.reading is not None:
            selected.reading = self.reading
            selected.texts_read = [*indices] if self.texts_read is None else [self.texts_read[i] for i in indices]
        return selected

    def give_vectors(self, vectors: Sequence[bytes]) -> None:
        """Set the vectors that the caller gave, one for each row."""
        self.vectors, self.vectors_given = [(vector,) for vector in vectors], [True] * len(self)
        for i, row in self._made.items():
            row.vectors, row.vectors_given = self.vectors[i], True

    def copy_decisions_to_columns(self) -> None:
        """Copy into the columns what was decided of rows that were made."""
        for i, row in self._made.items():
            for name in _DECIDED:
                getattr(self, name)[i] = getattr(row, name)

    @property
    def embedding_states(self) -> list[EmbeddingState]:
        """The `embedding_state` of each row."""
        if all(self.vectors):
            return ["embedded"] * len(self)
        return [
            "embedded" if parts else "refused" if refused is not None else "pending" if pending else "none"
            for parts, refused, pending in zip(self.vectors, self.refused, self.pending, strict=True)
        ]
