"""Whole records as plain values, versions, vectors and links included, for export; and what an import must know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import apsw

from recollect.checks import to_datetime
from recollect.filters import Filter
from recollect.records import Link, Record
from recollect.store import documents, reading
from recollect.store.arrays import id_array
from recollect.store.conditions import Condition, matching
from recollect.store.rows import read_rows
from recollect.store.vectors import EmbedderRow

__all__ = [
    "Month",
    "Version",
    "existing_ids",
    "identity",
    "links",
    "months",
    "new_links",
    "put_identity",
    "records_with",
    "versions",
]

_CHUNK = 500


class Version(NamedTuple):
    """One version of a record, with the float32 bytes of its parts where they were asked for."""

    record: Record
    vectors: tuple[bytes, ...]


class Month(NamedTuple):
    """The records of one scope that were stored in one month: row ids by the time of storing, then by public id."""

    scope: str
    month: str
    row_ids: list[int]


def months(connection: apsw.Connection, chosen: Filter) -> list[Month]:
    """The open records that a filter admits, but for the chunks of documents, by scope and month (of UTC)."""
    condition = _open(chosen, chunks=False)
    found: dict[tuple[str, str], list[int]] = {}
    for scope, created_at, row_id in connection.execute(
        "SELECT s.path, r.created_at, r.id FROM record r JOIN scope s ON s.id = r.scope_id "
        f"WHERE {condition.sql} ORDER BY s.path, r.created_at, r.public_id",
        condition.values,
    ):
        found.setdefault((scope, f"{to_datetime(created_at):%Y-%m}".rjust(7, "0")), []).append(row_id)
    return [Month(scope, month, row_ids) for (scope, month), row_ids in found.items()]


def identity(connection: apsw.Connection) -> str | None:
    """What tells this store from any other; None before `put_identity`."""
    found: str | None = connection.execute("SELECT value FROM meta WHERE key = 'identity'").get
    return found


def put_identity(connection: apsw.Connection, value: str) -> None:
    """Give the store an identity, which it keeps."""
    connection.execute("INSERT INTO meta VALUES ('identity', ?) ON CONFLICT (key) DO NOTHING", (value,))


class _Opened(NamedTuple):
    id: int
    public_id: str


def versions(connection: apsw.Connection, chosen: Filter, embedder: EmbedderRow | None) -> Iterator[Version]:
    """Every version of the open records that a filter admits: in order of storing, each record's oldest first.

    With `embedder`, its vectors come along. Streamed; memory holds a few hundred records at a time.
    """
    condition = _open(chosen)
    # NOT INDEXED walks by row id: through another index SQLite would first sort every row in memory.
    opened = connection.execute(
        f"SELECT r.id, r.public_id FROM record r NOT INDEXED WHERE {condition.sql} ORDER BY r.id",
        condition.values,
    )
    while chunk := list(islice(opened, _CHUNK)):
        ids: list[int] = []
        closed = _closed(connection, [row.public_id for row in read_rows(chunk, _Opened, "record")])
        for record_id, public_id in chunk:
            ids += (*closed.get(public_id, ()), record_id)
        records = records_with(connection, ids)
        parts = {} if embedder is None else _parts(connection, ids, embedder)
        for record_id in ids:
            yield Version(records[record_id], tuple(parts.get(record_id, ())))


def links(connection: apsw.Connection, chosen: Filter, *, chunks: bool = True) -> Iterator[Link]:
    """Links between open records that a filter admits, streamed; `chunks` of documents are such too."""
    condition = _open(chosen, chunks=chunks)
    within = f"IN (SELECT r.id FROM record r WHERE {condition.sql})"
    rows = connection.execute(
        "SELECT a.public_id, b.public_id, l.type, l.strength, l.created_at FROM link l "
        "JOIN record a ON a.id = l.source_id JOIN record b ON b.id = l.target_id "
        f"WHERE l.source_id {within} AND l.target_id {within} ORDER BY l.source_id, l.target_id, l.type",
        (*condition.values, *condition.values),
    )
    yield from map(reading.link, rows)


def existing_ids(connection: apsw.Connection, public_ids: Sequence[str]) -> set[str]:
    """Those of these public ids that some open record has."""
    if not public_ids:
        return set()
    return {
        row[0]
        for row in connection.execute(
            "SELECT public_id FROM record WHERE valid_to IS NULL AND public_id IN (SELECT value FROM carray(?))",
            (apsw.carray(tuple(public_ids)),),
        )
    }


def new_links(
    connection: apsw.Connection, rows: Sequence[tuple[int, int, str, float, int]]
) -> list[tuple[int, int, str, float, int]]:
    """Those of these links that the store does not have, each once."""
    wanted = {row[:3]: row for row in reversed(rows)}
    return [
        row
        for key, row in wanted.items()
        if not connection.execute("SELECT 1 FROM link WHERE source_id = ? AND target_id = ? AND type = ?", key).get
    ]


def _closed(connection: apsw.Connection, public_ids: Sequence[str]) -> dict[str, list[int]]:
    """Row ids of the closed versions of records, oldest first."""
    found: dict[str, list[int]] = {}
    for record_id, public_id in connection.execute(
        "SELECT id, public_id FROM record WHERE valid_to IS NOT NULL AND public_id IN (SELECT value FROM carray(?)) "
        "ORDER BY valid_from, valid_to, id",
        (apsw.carray(tuple(public_ids)),),
    ):
        found.setdefault(public_id, []).append(record_id)
    return found


def records_with(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, Record]:
    """The records with these row ids."""
    return dict(zip(sorted(ids), reading.records_of(connection, ids), strict=True))


def _open(chosen: Filter, *, chunks: bool = True) -> Condition:
    """What an export writes, expired records too."""
    condition = matching(chosen, 0, "open")
    return condition if chunks else condition & Condition("r.kind <> ?", (documents.KIND,))


def _parts(connection: apsw.Connection, ids: Sequence[int], embedder: EmbedderRow) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for record_id, value in connection.execute(
        "SELECT record_id, value FROM vector WHERE embedder_id = ? AND record_id IN (SELECT value FROM carray(?)) "
        "ORDER BY record_id, part",
        (embedder.id, id_array(ids)),
    ):
        found.setdefault(record_id, []).append(value)
    return found
