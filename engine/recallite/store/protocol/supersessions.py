"""The repositories of supersessions, statements and what waits to be compared or judged. Row ids: of open versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from recallite.model.filters import Filter
from recallite.store.supersession_values import (
    FormerRow,
    Judgement,
    NamedSupersession,
    Occurrence,
    Sought,
    SoughtText,
    Standpoint,
    StatementCandidate,
    Supersession,
    Uncompared,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Supersessions(Protocol):
    """Which record stands in the place of which."""

    def of_old(self, old_ids: Sequence[int]) -> list[Supersession]:
        """The standing supersessions of these records, by others."""

    def of_new(self, new_ids: Sequence[int]) -> list[Supersession]:
        """The standing supersessions by these records, of others."""

    def following(self, ids: Sequence[int]) -> set[int]:
        """The records that supersede these, directly or through others."""

    def standpoints(self, ids: Sequence[int]) -> dict[int, Standpoint]:
        """What decides whether these open records may take part, by row id."""

    def chain(self, record_id: int) -> list[int]:
        """A record, those that it supersedes and those that supersede it, transitively: the oldest first."""

    def formers(
        self, ids: Sequence[int] | NDArray[np.int64], now: int, known_at: int | None = None
    ) -> dict[int, list[FormerRow]]:
        """What these versions supersede, by row id, the last that held first; those that supersede none are absent.

        As it is known now or was at `known_at`, without what has expired.
        """

    def successors(
        self, ids: Sequence[int] | NDArray[np.int64], known_at: int | None = None
    ) -> dict[int, tuple[int, tuple[str, ...]]]:
        """When each of these versions stopped to hold, and the ids of what supersedes it; current ones are absent."""

    def undone(self, known_at: int, valid_at: int | None = None) -> list[int]:
        """Row ids of all versions that were superseded at `known_at` by what has been undone since.

        With `valid_at` only those that, as it was known then, no longer held at that valid time.
        """

    def lapses(self) -> list[tuple[int, int]]:
        """When superseded versions are current again, as all their successors expire, and their row ids; ascending."""

    def missing(self, row: Supersession) -> bool:
        """Whether the store lacks a supersession: between these records, and standing, or undone at the same times."""

    def between(self, chosen: Filter) -> Iterator[NamedSupersession]:
        """All supersessions, undone ones too, between open records that a filter admits, in order of storing."""


class SupersessionWriter(Supersessions, Protocol):
    """The same in a write transaction. It checks nothing: `remember/supersession.py` does."""

    def put(self, rows: Sequence[Supersession]) -> None:
        """Store supersessions, with the links of those that stand."""

    def undo(self, old_ids: Sequence[int], known_until: int) -> int:
        """End the standing supersessions of these records by others, and remove their links; returns how many."""

    def hold_from(self, new_id: int, before: int, after: int) -> None:
        """Have what this record supersedes from one valid time on be superseded from another on."""

    def derive(self, ids: Sequence[int]) -> None:
        """Set again what is derived from the supersessions of these records, by others."""


class Statements(Protocol):
    """What the statements of records speak of; see `recallite.text.statements`."""

    def candidates(self, sought: Sequence[Sought], now: int, limit: int) -> list[list[StatementCandidate]]:
        """For each that is sought at most `limit` records that share a key, of those that are new for the key.

        Those that share the most keys come first, where the first keys weigh most; of equals the newest. Closed,
        superseded and expired ones are none.
        """

    def of_text(self, sought: Sequence[SoughtText], now: int) -> list[list[StatementCandidate]]:
        """For each that is sought the records of its text, in no order, of those that `candidates` would find."""

    def frames(self, record_ids: NDArray[np.int64], *, of_texts: bool = False) -> NDArray[np.uint32]:
        """The frames of these versions and their values: uint32 (versions, `MAX_FRAMES`, 2), 0 where there is none.

        `of_texts` reads them from the texts, of records that wait to be compared: some 0.1 ms each.
        """


class StatementWriter(Statements, Protocol):
    """The same in a write transaction."""

    def derive(self, ids: Sequence[int], *, tell: bool = False) -> None:
        """Make the keys and frames of these records again from what is stored of them; `tell` the indexes of it."""


class UncomparedRecords(Protocol):
    """The records whose statements many were stored without reading; see `remember/catching_up.py`."""

    def first(self, limit: int) -> Uncompared | None:
        """At most `limit` of those with the least row ids; None where none waits."""

    def ranges(self) -> list[tuple[int, int]]:
        """The first and the last row id of each range that waits, ascending."""

    def count(self) -> int:
        """How many wait."""


class UncomparedWriter(UncomparedRecords, Protocol):
    """The same in a write transaction."""

    def add(self, ids: Sequence[int], policy: str) -> None:
        """Have records wait to be compared under a policy."""

    def done(self, first: Uncompared) -> None:
        """Have those that `first` returned wait no longer."""


class Occurrences(Protocol):
    """Further times at which statements were remembered."""

    def of(self, record_ids: Sequence[int]) -> dict[int, list[Occurrence]]:
        """The further times of these records, oldest first, by row id; those without are absent."""


class OccurrenceWriter(Occurrences, Protocol):
    """The same in a write transaction."""

    def add(self, rows: Iterable[tuple[int, int, str | None]]) -> None:
        """Add times, given as row id, time and (where it differs from the record's) text."""


class Judgements(Protocol):
    """Pairs that wait for a language model."""

    def waiting(self, limit: int) -> list[Judgement]:
        """The first pairs, in order of their row ids."""

    def count(self) -> int:
        """How many wait."""


class JudgementWriter(Judgements, Protocol):
    """The same in a write transaction."""

    def put(self, rows: Iterable[Judgement]) -> None:
        """Have pairs wait."""

    def drop(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Remove pairs (old, new)."""
