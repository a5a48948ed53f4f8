"""Bulk reads for the in-memory index: whole columns at a time, in row-id order.

Blobs are concatenated by SQLite (`group_concat` is byte-exact for blobs): 50,000 vectors arrive in 54 ms against
76-150 ms row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import numpy as np

from recollect.store.arrays import id_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Columns", "Links", "TermBlock", "VectorBlock", "columns", "links", "terms", "vectors"]

_CHUNK = 8192
_COLUMNS = (
    "id, scope_id, kind, coalesce(source_id, -1), position, created_at, coalesce(event_at, created_at), valid_from, "
    "valid_to, expires_at, importance"
)
NEVER = 2**63 - 1


class Columns(NamedTuple):
    """The columns that filters and scoring read, one entry a record, ascending by row id."""

    ids: NDArray[np.int64]
    scopes: NDArray[np.int32]
    kinds: list[str]
    sources: NDArray[np.int64]
    positions: NDArray[np.int64]
    created_at: NDArray[np.int64]
    moments: NDArray[np.int64]
    valid_from: NDArray[np.int64]
    valid_to: NDArray[np.int64]
    expires_at: NDArray[np.int64]
    importance: NDArray[np.float32]


class VectorBlock(NamedTuple):
    """Vectors (n, dimension) float32, the row id of each, and that of the record that owns it."""

    ids: NDArray[np.int64]
    owners: NDArray[np.int64]
    values: NDArray[np.float32]


class TermBlock(NamedTuple):
    """Term lists of consecutive records: numbers, counts, and where each record's list ends."""

    ids: NDArray[np.int64]
    terms: NDArray[np.int32]
    counts: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class Links(NamedTuple):
    """Links as row ids of their ends, with strengths."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    strengths: NDArray[np.float64]


def columns(connection: apsw.Connection, ids: Sequence[int] | None = None) -> Columns:
    """The columns of all records, or of those with row ids `ids`."""
    rows: list[tuple[Any, ...]]
    if ids is None:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM record ORDER BY id").fetchall()
    else:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM record WHERE id IN (SELECT value FROM carray(?)) ORDER BY id",
            (id_array(ids),),
        ).fetchall()
    (ids_, scopes, kinds, sources, positions, created, moments, valid_from, valid_to, expires, importance) = (
        zip(*rows, strict=True) if rows else ((),) * 11
    )
    return Columns(
        np.array(ids_, dtype=np.int64),
        np.array(scopes, dtype=np.int32),
        list(kinds),
        np.array(sources, dtype=np.int64),
        _filled(positions),
        np.array(created, dtype=np.int64),
        np.array(moments, dtype=np.int64),
        np.array(valid_from, dtype=np.int64),
        _filled(valid_to),
        _filled(expires),
        np.array(importance, dtype=np.float32),
    )


def vectors(
    connection: apsw.Connection, embedder_id: int, dimension: int, ids: Sequence[int] | NDArray[np.int64] | None = None
) -> Iterator[VectorBlock]:
    """The vectors of one embedder in blocks, of all records or of those with row ids `ids`."""
    if ids is not None:
        rows: Any = connection.execute(
            "SELECT id, record_id, value FROM vector WHERE embedder_id = ? "
            "AND record_id IN (SELECT value FROM carray(?)) ORDER BY record_id, part",
            (embedder_id, id_array(ids)),
        ).fetchall()
        keys = np.array([(row[0], row[1]) for row in rows], dtype=np.int64).reshape(-1, 2)
        yield _vector_block(keys, b"".join(row[2] for row in rows), dimension)
        return
    last: int = connection.execute("SELECT coalesce(max(id), 0) FROM vector").get
    for start in range(0, last, _CHUNK):
        bounds = (start, start + _CHUNK, embedder_id)
        keys = _vector_keys(connection, bounds)
        if not len(keys):
            continue
        blob = connection.execute(
            "SELECT CAST(group_concat(value, '') AS BLOB) FROM "
            "(SELECT value FROM vector WHERE id > ? AND id <= ? AND embedder_id = ? ORDER BY id)",
            bounds,
        ).get
        yield _vector_block(keys, blob, dimension)


def exact_vectors(connection: apsw.Connection, dimension: int, vector_ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """The stored float32 vectors (n, dimension) with these ascending row ids; a missing one is zeros."""
    rows: Any = connection.execute(
        "SELECT id, value FROM vector WHERE id IN (SELECT value FROM carray(?)) ORDER BY id", (id_array(vector_ids),)
    ).fetchall()
    values = np.zeros((len(vector_ids), dimension), dtype=np.float32)
    found = np.frombuffer(b"".join(row[1] for row in rows), dtype="<f4").reshape(-1, dimension)
    if len(rows) == len(vector_ids):
        return found
    values[np.searchsorted(vector_ids, [row[0] for row in rows])] = found
    return values


def terms(connection: apsw.Connection, ids: Sequence[int] | None = None) -> Iterator[TermBlock]:
    """The term lists in blocks, of all records or of those with row ids `ids`."""
    if ids is not None:
        rows: Any = connection.execute(
            "SELECT record_id, terms, counts FROM record_terms WHERE record_id IN (SELECT value FROM carray(?)) "
            "ORDER BY record_id",
            (id_array(ids),),
        ).fetchall()
        yield _term_block(
            np.array([row[0] for row in rows], dtype=np.int64),
            b"".join(row[1] for row in rows),
            b"".join(row[2] + b"\0" for row in rows),
        )
        return
    last: int = connection.execute("SELECT coalesce(max(record_id), 0) FROM record_terms").get
    for start in range(0, last, _CHUNK):
        bounds = (start, start + _CHUNK)
        members = _term_ids(connection, bounds)
        if not len(members):
            continue
        # A count is never 0, so a zero byte ends each record's counts.
        block: Any = connection.execute(
            "SELECT CAST(group_concat(terms, '') AS BLOB), CAST(group_concat(counts || x'00', '') AS BLOB) FROM "
            "(SELECT terms, counts FROM record_terms WHERE record_id > ? AND record_id <= ? ORDER BY record_id)",
            bounds,
        ).fetchone()
        yield _term_block(members, block[0] or b"", block[1] or b"")


def links(connection: apsw.Connection, ids: Sequence[int] | None = None) -> Links:
    """All links, or those that touch the records `ids`."""
    rows: Any
    if ids is None:
        rows = connection.execute("SELECT source_id, target_id, strength FROM link").fetchall()
    else:
        rows = connection.execute(
            "SELECT source_id, target_id, strength FROM link WHERE source_id IN (SELECT value FROM carray(?1)) "
            "UNION SELECT source_id, target_id, strength FROM link WHERE target_id IN (SELECT value FROM carray(?2))",
            (id_array(ids), id_array(ids)),
        ).fetchall()
    sources, targets, strengths = zip(*rows, strict=True) if rows else ((), (), ())
    return Links(
        np.array(sources, dtype=np.int64),
        np.array(targets, dtype=np.int64),
        np.array(strengths, dtype=np.float64),
    )


def _filled(values: Sequence[int | None]) -> NDArray[np.int64]:
    """int64 with NEVER for NULL."""
    if None in values:
        return np.array([NEVER if value is None else value for value in values], dtype=np.int64)
    return np.array(values, dtype=np.int64)


def _vector_keys(connection: apsw.Connection, bounds: tuple[int, int, int]) -> NDArray[np.int64]:
    """(n, 2): row ids of vectors and of the records that own them. Runs without gaps come without a row each."""
    chosen = "FROM vector WHERE id > ? AND id <= ? AND embedder_id = ?"
    summary: Any = connection.execute(
        f"SELECT count(*), min(id), max(id), min(record_id - id), max(record_id - id) {chosen}", bounds
    ).fetchone()
    count, first, last, least, most = summary
    if count and last - first + 1 == count and least == most:
        ids = np.arange(first, last + 1, dtype=np.int64)
        return np.stack([ids, ids + least], axis=1)
    rows: Any = connection.execute(f"SELECT id, record_id {chosen} ORDER BY id", bounds).fetchall()
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _term_ids(connection: apsw.Connection, bounds: tuple[int, int]) -> NDArray[np.int64]:
    """Row ids of the records with words, ascending."""
    chosen = "FROM record_terms WHERE record_id > ? AND record_id <= ?"
    summary: Any = connection.execute(f"SELECT count(*), min(record_id), max(record_id) {chosen}", bounds).fetchone()
    count, first, last = summary
    if count and last - first + 1 == count:
        return np.arange(first, last + 1, dtype=np.int64)
    rows: Any = connection.execute(f"SELECT record_id {chosen} ORDER BY record_id", bounds).fetchall()
    return np.array(rows, dtype=np.int64).ravel()


def _vector_block(keys: NDArray[np.int64], blob: bytes, dimension: int) -> VectorBlock:
    values = np.frombuffer(blob, dtype="<f4").reshape(-1, dimension)
    return VectorBlock(np.ascontiguousarray(keys[:, 0]), np.ascontiguousarray(keys[:, 1]), values)


def _term_block(ids: NDArray[np.int64], numbers: bytes, counts: bytes) -> TermBlock:
    marked = np.frombuffer(counts, dtype=np.uint8)
    ends = np.flatnonzero(marked == 0)
    offsets = np.zeros(len(ids) + 1, dtype=np.int64)
    offsets[1:] = ends - np.arange(len(ids))
    return TermBlock(ids, np.frombuffer(numbers, dtype="<i4"), marked[marked != 0], offsets)
