"""The repositories of records, scopes, links and vectors.

Row ids are the store's own numbers of versions; public ids are what users see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from recallite.model.filters import Filter, Versions
from recallite.model.records import Link, Outcome, Record
from recallite.store.values import (
    Access,
    CurrentRecord,
    Direction,
    EmbedderRow,
    Found,
    LinkRow,
    Month,
    Parts,
    Row,
    Step,
    Version,
)
from recallite.text.standing import Standing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Records(Protocol):
    """Records and their versions."""

    def fetch(self, record_ids: Sequence[int] | NDArray[np.int64]) -> dict[int, Found]:
        """What hits show of these records, by row id, read at once; ids that no longer exist are absent."""

    def standing_ids(self, among: Sequence[int] | None = None) -> dict[int, Standing]:
        """Return the row ids, ascending, of versions that are standing instructions or preferences, and which they are.

        Only those in `among`, unless it is None.
        """

    def rows(self, record_ids: Sequence[int], embedder: EmbedderRow | None) -> dict[int, Row]:
        """Return the open, current ones of these records by row id, as `insert` was given them."""

    def contexts(self, record_ids: NDArray[np.int64]) -> list[str | None]:
        """The contexts of these records, in their order; None where there is none or no such record."""

    def find_ids(self, public_ids: Sequence[str], scope: str) -> dict[str, int]:
        """Row ids by public id, of open records in a scope and its descendants; others are absent."""

    def matching_ids(self, chosen: Filter, now: int, *, versions: Versions = "current") -> list[int]:
        """Row ids of the records that a filter admits, ascending."""

    def same_text(self, scope: str, kind: str, content_hash: bytes) -> list[int]:
        """Row ids of open records, superseded or not, of this kind and text in exactly this scope."""

    def admits(self, chosen: Filter, now: int, record_id: int) -> bool:
        """Whether a filter admits a record."""

    def find(
        self,
        chosen: Filter,
        now: int,
        *,
        versions: Versions = "current",
        order: str = "oldest",
        limit: int | None = None,
        offset: int = 0,
    ) -> Iterator[Record]:
        """The records that a filter admits, streamed."""

    def get(self, record_id: int, *, outcome: Outcome = "stored") -> Record:
        """The record with this row id."""

    def get_many(self, ids: Sequence[int]) -> Iterator[Record]:
        """The records with these row ids, ascending, streamed."""

    def history(self, public_id: str, *, chain: bool = False) -> list[Record]:
        """Every version of a record, oldest first; the open one is last.

        With `chain` also those of the records that it supersedes and that supersede it, transitively, in this order.
        """

    def version_ids(self, public_id: str) -> list[int]:
        """The row ids of `history`."""

    def version_at(self, record_id: int, moment: int) -> int:
        """The row id of the version of an open record that was valid at `moment`; the open one if none was."""

    def count(self, chosen: Filter, now: int, *, versions: Versions = "current") -> int:
        """How many records a filter admits."""

    def count_by_scope(self, chosen: Filter, now: int) -> list[tuple[str, int]]:
        """How many records a filter admits in each scope that has any."""

    def count_by_tag(self, chosen: Filter, now: int) -> list[tuple[str, int]]:
        """How many records that a filter admits have each tag."""

    def current(self, ids: Sequence[int], now: int) -> Iterator[CurrentRecord]:
        """The current records with these row ids; superseded ones are none."""

    def current_by_text(self, keys: Sequence[bytes], now: int) -> Iterator[CurrentRecord]:
        """The current records whose text has one of these keys (`text_key`), in order of storing."""

    def ids_by_text(self, keys: Sequence[bytes]) -> dict[int, bytes]:
        """Return the open records whose text has one of these keys (`text_key`): by row id, each with its key."""

    def current_by_topic(self, topics: Sequence[str], now: int) -> Iterator[CurrentRecord]:
        """The current records of these topics, the last changed last."""

    def months(self, chosen: Filter) -> list[Month]:
        """The open records that a filter admits, without chunks of documents, by scope and month (UTC)."""

    def versions(self, chosen: Filter, embedder: EmbedderRow | None) -> Iterator[Version]:
        """Every version of the open records that a filter admits, in order of storing, each record's oldest first.

        With `embedder`, with its vectors. Streamed, a few hundred records at a time.
        """

    def by_row_ids(self, ids: Sequence[int]) -> dict[int, Record]:
        """`get_many` by row id."""


class RecordWriter(Records, Protocol):
    """Records in a write transaction."""

    def insert(
        self, rows: Sequence[Row], embedder: EmbedderRow | None, *, compared_by: Callable[[bool], str] | None = None
    ) -> list[int]:
        """Insert records with their words, tags and vectors; returns their row ids, ascending.

        `rows` may be `RowColumns`. Their statements are read now; with `compared_by` they wait to be compared under the
        policy in JSON that it returns for rows whose ids the caller chose (True) or did not choose (False).
        """

    def change_text(self, record_id: int, row: Row, embedder: EmbedderRow | None, *, keep_version: bool = True) -> None:
        """Replace the text of a record. The old one becomes a closed version with a row id of its own, or is purged."""

    def insert_earlier(self, record_id: int, row: Row, embedder: EmbedderRow | None) -> None:
        """Insert a text that is older than the current one among the versions of a record, by its time."""

    def change_columns(self, record_id: int, columns: dict[str, Any], tags: tuple[str, ...] | None) -> None:
        """Change fields other than text: `columns` by name, `scope` and `source` as names; `tags` replace all tags."""

    def set_expiry(self, record_ids: Sequence[int], expires_at: int | None) -> None:
        """Let records expire at another time, which slides no more; no other field changes."""

    def slide_expiry(self, record_ids: Sequence[int], now: int) -> None:
        """Let those records that have an `expires_after` expire so long after `now`; no other field changes."""

    def delete(self, record_ids: Sequence[int]) -> int:
        """Purge open records with their versions, vectors, words, tags and links; returns how many versions."""

    def purge_versions(self, record_ids: Sequence[int]) -> int:
        """Purge the closed versions of these open records; returns how many."""

    def touch(self, accesses: Mapping[str, Access]) -> None:
        """Add to access counts, by public id. This is no change of the feed: ranking does not depend on them."""


class Scopes(Protocol):
    """Scopes by path and by the number that the index uses."""

    def within(self, scopes: Sequence[str]) -> list[int]:
        """The ids of these scopes and their descendants, each once."""

    def inhabited(self, scopes: Sequence[str], limit: int) -> list[str]:
        """Paths of these scopes (empty: all) and their descendants that have open records, shallow ones first."""

    def ids(self, paths: Sequence[str]) -> dict[str, int]:
        """The ids of the scopes that the store knows among these paths."""


class ScopeWriter(Scopes, Protocol):
    """Scopes in a write transaction."""

    def purge_services(self, scope: str) -> int:
        """Purge what every service keeps in a scope and its descendants; returns the rows, messages not counted."""


class Links(Protocol):
    """Links between records."""

    def of(self, record_id: int, *, incoming: bool, types: Sequence[str]) -> list[Link]:
        """The links that leave (or reach) a record, strongest first."""

    def between(self, chosen: Filter, *, chunks: bool = True) -> Iterator[Link]:
        """Links between open records that a filter admits, but "supersedes", streamed; with or without `chunks`."""

    def missing(self, rows: Sequence[LinkRow]) -> list[LinkRow]:
        """The links among these that the store does not have, each once."""

    def steps(
        self, ids: Sequence[int], direction: Direction, types: Sequence[str], visible: Filter, now: int
    ) -> list[Step]:
        """Every link from one of these records to one that a filter admits."""

    def contradicting(self) -> set[tuple[int, int]]:
        """Pairs of row ids, the lower first, with a link of type "contradicts"."""


class LinkWriter(Links, Protocol):
    """Links in a write transaction."""

    def put(self, links: Iterable[LinkRow]) -> None:
        """Insert or strengthen links."""

    def drop(self, source: int, target: int, types: Sequence[str]) -> int:
        """Remove the links from one record to another, of these types or (empty) all but "supersedes".

        Returns how many.
        """


class Vectors(Protocol):
    """Embedders, vectors, token codes, and texts that an embedder refused."""

    def of_current(
        self, ids: Sequence[int], embedder: EmbedderRow
    ) -> list[tuple[int, int, str, int, NDArray[np.float32]]]:
        """(row id, scope id, kind, expiry, vectors (parts, dimension)) of the open records among these."""

    def active_embedder(self) -> EmbedderRow | None:
        """The embedder whose vectors recall uses; None before the first vector."""

    def values_of(self, ids: Sequence[int], embedder: EmbedderRow) -> dict[int, list[bytes]]:
        """The float32 bytes of the parts of records by this embedder, by row id; those without are absent."""

    def cosines(self, embedder: EmbedderRow, query: NDArray[np.float32], ids: Sequence[int]) -> NDArray[np.float32]:
        """The cosine of a unit vector to the nearest part of each of these records; 0 where none is sound."""

    def of_record(self, record_id: int) -> Parts:
        """The parts of a record by the active embedder, if any; with token codes if every part has them."""

    def count_waiting(self) -> int:
        """How many records wait for a vector."""

    def waiting(self, limit: int, after_id: int = 0) -> list[tuple[int, str, str | None]]:
        """(row id, text, context) of records that wait for a vector, with row ids above `after_id`."""

    def lacking(self, embedder: EmbedderRow, limit: int) -> list[tuple[int, str, str | None]]:
        """(row id, text, context) of records that `embedder` has neither embedded nor refused."""

    def count_lacking(self, embedder: EmbedderRow) -> int:
        """How many records `embedder` has neither embedded nor refused."""

    def unchanged(self, rows: Sequence[tuple[int, str, str | None]], parts: dict[int, Parts]) -> dict[int, Parts]:
        """`parts` of the records whose text is still that of `rows`."""

    def has_token_codes(self) -> bool:
        """Whether any vector has token codes."""

    def lacking_token_codes(self, embedder_id: int, after_id: int, limit: int) -> list[tuple[int, str, str | None]]:
        """(row id, text, context) of records with vectors of this embedder but no token codes, above `after_id`."""

    def count_refused(self, scope: str) -> int:
        """How many open records of a scope and its descendants the active embedder refused."""

    def refused(self, scope: str, limit: int) -> list[tuple[str, str | None, str]]:
        """(id, source, reason) of the first open records of a scope that the active embedder refused."""


class VectorWriter(Vectors, Protocol):
    """Vectors in a write transaction."""

    def set(self, embedder: EmbedderRow, parts: dict[int, Parts], *, active: bool) -> None:
        """Store the vectors of records, or why the embedder refused them; `active` sets their embedding state too."""

    def register_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        """The row of the active embedder, this one if the store has none; EmbedderMismatch if it is another."""

    def add_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        """The row of an embedder whose vectors are made beside the active ones."""

    def switch_to(self, embedder: EmbedderRow) -> None:
        """Make `embedder`, which has embedded or refused every record, the active one and drop all others."""

    def start_over(self, embedder: EmbedderRow) -> None:
        """Make `embedder` the active one and drop all others; records without its vectors wait."""

    def add_token_codes(self, embedder_id: int, codes: dict[int, tuple[bytes, ...]]) -> int:
        """Add token codes to records that have as many parts as there are codes; returns to how many."""

    def drop_token_codes(self) -> None:
        """Remove all token codes."""

    def forget_refusals(self, embedder_id: int) -> None:
        """Forget what an embedder refused; those records wait again."""
