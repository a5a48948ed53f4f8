"""Reads rows in blocks for the in-memory index, from either database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recallite.errors import StoreCorrupt
from recallite.store.sql.derived import CHANGED, unpacked
from recallite.store.sql.repository import IN_ARRAY, NEVER, Repository
from recallite.store.sql.vectors import EmbedderRow, PackedVectors, as_float32, pack

# "Ada: The ferry was late" without a source is taken for a turn of a conversation: such texts of a scope are a run, in
# the order in which they were written. Of LoCoMo's turns as nothing but text .890 of the answers are among twenty hits
# instead of .820.
# Longer ones are none: abstracts that begin with "Objective: " found less of each other (SciFact .735 instead of .744).
_TURN = "r.kind = 'memory' AND length(r.text) <= 500 AND substr(r.text, 1, 26) LIKE '_%: %'"

COLUMNS = {
    "ids": "r.id",
    "sources": f"coalesce(r.source_id, CASE WHEN {_TURN} THEN -2 - r.scope_id ELSE -1 END)",
    "positions": f"coalesce(r.position, {NEVER})",
    "created_at": "r.created_at",
    "moments": "coalesce(r.valid_from, r.created_at)",
    "moments_until": f"coalesce(r.valid_until, {NEVER})",
    "recorded_from": "r.recorded_from",
    "recorded_until": f"coalesce(r.recorded_until, {NEVER})",
    "expires_at": f"coalesce(r.expires_at, {NEVER})",
    "superseded_at": f"coalesce(r.superseded_at, {NEVER})",
    "held_until": f"coalesce(r.held_until, {NEVER})",
    "importance": "coalesce(r.base_importance, r.importance)",
    "scopes": "r.scope_id",
    "kinds": "coalesce((SELECT k.id FROM kind k WHERE k.name = r.kind), 0)",
    "resolved": "r.valid_resolved",
    "authorities": "-r.authority",
}
"""The fields of `Columns`, as SQL that reads them from a record `r`."""
Table: TypeAlias = Literal["columns", "terms", "vectors"]
"""The blocks of columns that an index reads."""
# Rows a statement, about 1 MB of each: 4 MB or 0.2 MB take 1.1 times as long.
ROWS_A_BLOCK = {"columns": 8192, "terms": 8192, "vectors": 512}


class Columns(Struct, frozen=True):
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


class TermBlock(Struct, frozen=True):
    """Term lists of consecutive records: numbers, the byte of each word, and where each record's list ends."""

    ids: NDArray[np.int64]
    terms: NDArray[np.int32]
    counts: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class TokenBlock(Struct, frozen=True):
    """Token codes of vectors with ascending row ids: how many uint64 each has, and all of them."""

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.uint64]


class LinkBlock(Struct, frozen=True):
    """Links as row ids of their ends, with strengths."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    strengths: NDArray[np.float64]


class Blocks(Repository):
    """Reads by row id; whole ranges are read by each database in its own way."""

    def within(self, scope: str) -> Self:
        """The same of the records in a scope and its descendants alone, of stores that read them by themselves."""
        if scope != "/":
            raise NotImplementedError
        return self

    def reading_all(self) -> AbstractContextManager[None]:
        """Within it everything is read once: what has been read need not be cached."""
        return nullcontext()

    @abstractmethod
    def columns(self, ids: Sequence[int]) -> Columns:
        """The columns of these records."""

    @abstractmethod
    def column_range(self, bounds: tuple[int, int]) -> Columns:
        """The columns of the records in a range."""

    @abstractmethod
    def ranges(self, table: Table) -> list[tuple[int, int]]:
        """Ranges (after, up to) that cover the rows of a table, each small enough to be read at once."""

    @abstractmethod
    def vector_range(self, embedder: EmbedderRow, bounds: tuple[int, int]) -> PackedVectors:
        """The packed vectors of one embedder in a range, by vector id."""

    @abstractmethod
    def term_range(self, bounds: tuple[int, int]) -> TermBlock:
        """The term lists of the records in a range."""

    def vectors(self, embedder_id: int, dimension: int, ids: Sequence[int] | NDArray[np.int64]) -> PackedVectors:
        """The packed vectors of these records by one embedder, by record and part."""
        return packed_rows(
            self._rows(
                "SELECT id, record_id, value FROM vector WHERE embedder_id = ? "
                f"AND record_id {IN_ARRAY} ORDER BY record_id, part",
                (embedder_id, self._id_array(ids)),
            ),
            dimension,
        )

    def token_codes(self, vector_ids: NDArray[np.int64]) -> TokenBlock:
        """The token codes of the vectors with these vector ids."""
        return token_block(
            self._rows(
                f"SELECT vector_id, codes FROM token_code WHERE vector_id {IN_ARRAY} ORDER BY vector_id",
                (self._id_array(vector_ids),),
            )
        )

    def token_code_range(self, bounds: tuple[int, int]) -> TokenBlock:
        """The token codes in a range of `ranges("vectors")`."""
        return token_block(
            self._rows(
                "SELECT vector_id, codes FROM token_code WHERE vector_id > ? AND vector_id <= ? ORDER BY vector_id",
                bounds,
            )
        )

    def terms(self, ids: Sequence[int]) -> TermBlock:
        """The term lists of these records."""
        rows = self._rows(
            f"SELECT record_id, terms, counts FROM record_terms WHERE record_id {IN_ARRAY} ORDER BY record_id",
            (self._id_array(ids),),
        )
        ids, terms, counts = zip(*rows, strict=True) if rows else ((), (), ())
        return term_block(np.array(ids, dtype=np.int64), b"".join(terms), b"\0".join([*counts, b""]))

    def links(self, ids: Sequence[int] | None = None) -> LinkBlock:
        """The links that raise what they lead to: all, or only the incoming and outgoing links of these records."""
        # Recall does not spread along "supersedes": what an answer replaced is no further answer.
        select = "SELECT source_id, target_id, strength FROM link WHERE type NOT IN ('supersedes', 'contradicts')"
        if ids is None:
            rows = self._rows(select)
        else:
            rows = self._rows(
                f"{select} AND source_id IN (SELECT value FROM carray(?1)) "
                f"UNION {select} AND target_id IN (SELECT value FROM carray(?2))",
                (self._id_array(ids), self._id_array(ids)),
            )
        sources, targets, strengths = zip(*rows, strict=True) if rows else ((), (), ())
        return LinkBlock(
            np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64), np.array(strengths, dtype=np.float64)
        )


def packed_rows(rows: list[tuple[int, int, Any]], dimension: int) -> PackedVectors:
    """Pack (id, record id, value) rows, without values of another size or type: `verify` names them."""
    whole = [row for row in rows if isinstance(row[2], bytes) and len(row[2]) in (2 * dimension, 4 * dimension)]
    ids, owners, values = zip(*whole, strict=True) if whole else ((), (), ())
    return pack(np.array(ids, dtype=np.int64), np.array(owners, dtype=np.int64), as_float32(values, dimension))


def token_block(rows: list[tuple[int, Any]]) -> TokenBlock:
    """The codes of these vectors; what is no array of uint64 is left out: `verify` names it."""
    whole = [row for row in rows if isinstance(row[1], bytes) and not len(row[1]) % 8]
    ids, codes = zip(*whole, strict=True) if whole else ((), ())
    counts = np.array([*map(len, codes)], dtype=np.int64) // 8
    return TokenBlock(np.array(ids, dtype=np.int64), counts, np.frombuffer(b"".join(codes), dtype="<u8"))


def term_block(ids: NDArray[np.int64], numbers: bytes, counts: bytes) -> TermBlock:
    """The term lists of records: packed numbers, and counts with a zero byte after each record."""
    marked = np.frombuffer(counts, dtype=np.uint8)
    ends = np.flatnonzero(marked == 0)
    offsets = np.zeros(len(ids) + 1, dtype=np.int64)
    if len(ends) != len(ids):
        raise StoreCorrupt(CHANGED)
    offsets[1:] = ends - np.arange(len(ids))
    # In 60 % of the time of a selection by mask.
    word_bytes = np.frombuffer(counts.translate(None, b"\0"), dtype=np.uint8)
    return TermBlock(ids, unpacked(numbers, offsets), word_bytes, offsets)
