"""Records, scopes, links and vectors, as every store keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from recollect.filters import Filter, Versions
from recollect.records import Link, Outcome, Record
from recollect.store.values import (
    Access,
    CurrentRecord,
    Direction,
    EmbedderRow,
    Found,
    Month,
    Parts,
    Row,
    Step,
    Version,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray


class Records(Protocol):
    """Records and their versions."""

    def fetch(self, record_ids: Sequence[int] | NDArray[np.int64]) -> dict[int, Found]:
        """The records with these row ids; one statement for all. Ids that no longer exist are absent."""

    def public_ids(self, ids: Sequence[int]) -> list[str]:
        """The public ids of records, in the order of their row ids."""

    def find_ids(self, public_ids: Sequence[str], scope: str) -> dict[str, int]:
        """Row ids of the open records of a scope and its descendants, by public id; others are absent."""

    def matching_ids(self, chosen: Filter, now: int, *, versions: Versions = "current") -> list[int]:
        """Row ids of the records that a filter admits, ascending."""

    def same_text(self, scope: str, kind: str, content_hash: bytes) -> list[int]:
        """Row ids of the open records of a kind in exactly this scope that have this text."""

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

    def history(self, public_id: str) -> list[Record]:
        """Every version of a record, oldest first; the open one is last."""

    def version_ids(self, public_id: str) -> list[int]:
        """The row ids of what `history` gives, in its order."""

    def version_at(self, record_id: int, moment: int) -> int:
        """The row id of the version of an open record that stood at `moment`; the open one if none did."""

    def count(self, chosen: Filter, now: int, *, versions: Versions = "current") -> int:
        """How many records a filter admits."""

    def current(self, ids: Sequence[int], now: int) -> Iterator[CurrentRecord]:
        """The records with these row ids."""

    def current_by_text(self, keys: Sequence[bytes], now: int) -> Iterator[CurrentRecord]:
        """The records with a text of one of these keys (`text_key`), the first stored first."""

    def current_by_topic(self, topics: Sequence[str], now: int) -> Iterator[CurrentRecord]:
        """The records of these topics, the last changed last."""

    def months(self, chosen: Filter) -> list[Month]:
        """The open records that a filter admits, but for the chunks of documents, by scope and month (of UTC)."""

    def versions(self, chosen: Filter, embedder: EmbedderRow | None) -> Iterator[Version]:
        """Every version of the open records that a filter admits: in order of storing, each record's oldest first.

        With `embedder`, its vectors come along. Streamed; memory holds a few hundred records at a time.
        """

    def existing_ids(self, public_ids: Sequence[str]) -> set[str]:
        """Those of these public ids that some open record has."""

    def by_row_ids(self, ids: Sequence[int]) -> dict[int, Record]:
        """The records with these row ids."""


class RecordWriter(Records, Protocol):
    """Records and their versions, in a write transaction."""

    def insert(self, rows: Sequence[Row], embedder: EmbedderRow | None) -> list[int]:
        """Insert records with tags, vectors, words and one feed row; returns their row ids, consecutive."""

    def change_text(self, record_id: int, row: Row, embedder: EmbedderRow | None, *, keep_version: bool = True) -> None:
        """Give a record a new text. The old one becomes a closed version in a row of its own, or is purged."""

    def insert_earlier(self, record_id: int, row: Row, embedder: EmbedderRow | None) -> None:
        """Put a text that is older than the one that stands among a record's versions, at its time."""

    def change_columns(self, record_id: int, columns: dict[str, Any], tags: tuple[str, ...] | None) -> None:
        """Change what is not text: `columns` by name (`scope` and `source` as names), `tags` as a whole."""

    def delete(self, record_ids: Sequence[int]) -> int:
        """Purge records with their versions, vectors, words, tags and links; returns how many versions went too."""

    def purge_versions(self, record_ids: Sequence[int]) -> int:
        """Purge the closed versions of these open records; returns their number."""

    def touch(self, accesses: Mapping[str, Access]) -> None:
        """Add to access counts, by public id. Outside the feed: nothing that recall ranks by depends on them."""


class Scopes(Protocol):
    """Scopes by path, and what the services keep of them."""

    def within(self, scopes: Sequence[str]) -> list[int]:
        """The ids of these scopes and their descendants, each once."""

    def inhabited(self, scopes: Sequence[str], limit: int) -> list[str]:
        """Paths of these scopes (none: of all) and those below that hold a record as it stands, shallow ones first."""

    def ids(self, paths: Sequence[str]) -> dict[str, int]:
        """The ids of those of these scopes that hold or held a record."""


class ScopeWriter(Scopes, Protocol):
    """Scopes by path, and what the services keep of them, in a write transaction."""

    def intern_one(self, path: str) -> int:
        """The id of a scope, added if it is new."""

    def purge_services(self, scope: str) -> int:
        """Purge what every service keeps in a scope and its descendants; returns the rows, messages not counted."""


class Links(Protocol):
    """Links between records."""

    def of(self, record_id: int, *, incoming: bool, types: Sequence[str]) -> list[Link]:
        """The links that leave (or reach) a record, strongest first."""

    def between(self, chosen: Filter, *, chunks: bool = True) -> Iterator[Link]:
        """Links between open records that a filter admits, streamed; `chunks` of documents are such too."""

    def missing(self, rows: Sequence[tuple[int, int, str, float, int]]) -> list[tuple[int, int, str, float, int]]:
        """Those of these links that the store does not have, each once."""

    def steps(
        self, ids: Sequence[int], direction: Direction, types: Sequence[str], visible: Filter, now: int
    ) -> list[Step]:
        """Every link that leads from one of these records to one that a filter admits; two statements at most."""

    def contradicting(self) -> set[tuple[int, int]]:
        """The pairs of row ids, the lower first, that are linked as contradicting each other."""


class LinkWriter(Links, Protocol):
    """Links between records, in a write transaction."""

    def put(self, links: Iterable[tuple[int, int, str, float, int]]) -> None:
        """Insert or strengthen links (source, target, type, strength, created_at)."""

    def drop(self, source: int, target: int, types: Sequence[str]) -> int:
        """Remove the links from one record to another, of these types or of all; returns how many there were."""


class Vectors(Protocol):
    """Embedders, vectors, token codes, and texts that an embedder refused."""

    def of_current(
        self, ids: Sequence[int], embedder: EmbedderRow
    ) -> list[tuple[int, int, str, int, NDArray[np.float32]]]:
        """(row id, scope id, kind, expiry, vectors (parts, dimension)) of those of these records that are open."""

    def active_embedder(self) -> EmbedderRow | None:
        """The embedder whose vectors recall uses; None before the first vector."""

    def of_record(self, record_id: int) -> Parts:
        """The parts of a record by the active embedder, if any; with codes only where every part has them."""

    def count_waiting(self) -> int:
        """How many records wait for a vector."""

    def waiting(self, limit: int, after_id: int = 0) -> list[tuple[int, str, str | None]]:
        """(row id, text, context) of records above `after_id` that wait for a vector."""

    def lacking(self, embedder: EmbedderRow, limit: int) -> list[tuple[int, str, str | None]]:
        """(row id, text, context) of records that have no vector of `embedder`, and were not refused by it."""

    def count_lacking(self, embedder: EmbedderRow) -> int:
        """How many records `lacking` gives without a limit."""

    def unchanged(self, rows: Sequence[tuple[int, str, str | None]], parts: dict[int, Parts]) -> dict[int, Parts]:
        """The parts of records that still have the text they were embedded from."""

    def has_token_codes(self) -> bool:
        """True when any vector has codes."""

    def token_codes_of(self, ids: NDArray[np.int64]) -> list[tuple[int, bytes]]:
        """(record id, codes) of each part of these records with codes of the active embedder, by record and part."""

    def lacking_token_codes(self, embedder_id: int, after_id: int, limit: int) -> list[tuple[int, str, str | None]]:
        """(row id, text, context) of records above `after_id` with a vector of this embedder that lacks codes."""

    def count_refused(self, scope: str) -> int:
        """How many open records of a scope and its descendants are refused."""

    def refused(self, scope: str, limit: int) -> list[tuple[str, str | None, str]]:
        """(id, source, reason) of the first open records of a scope that the active embedder refused."""


class VectorWriter(Vectors, Protocol):
    """Embedders, vectors, token codes, and texts that an embedder refused, in a write transaction."""

    def set(self, embedder: EmbedderRow, parts: dict[int, Parts], *, active: bool) -> None:
        """Store the vectors of records that had none of this embedder, or why it refused them.

        Of the active embedder, the records become `embedded` or `refused`.
        """

    def register_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        """The row of this embedder, made active when it is the store's first; another active one is refused."""

    def add_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        """The row of this embedder, not active: for vectors that are made beside the active ones."""

    def activate(self, row: EmbedderRow) -> None:
        """Make `row` the embedder that recall uses."""

    def drop_others(self, embedder: EmbedderRow) -> None:
        """Remove the vectors of every other embedder; every record is embedded now, or refused."""

    def start_over(self, embedder: EmbedderRow) -> None:
        """Make `embedder` the active one at once: the vectors of all others go, and records without its own wait."""

    def add_token_codes(self, embedder_id: int, codes: dict[int, tuple[bytes, ...]]) -> int:
        """Add codes to the vectors of records that have as many parts as there are codes; returns how many records."""

    def drop_token_codes(self) -> None:
        """Remove all codes."""

    def forget_refusals(self, embedder_id: int) -> None:
        """Forget what an embedder refused: those records wait for it again."""
