"""Whole records as plain values, versions and links included, for export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

from recollect.store.filters import Condition
from recollect.store.vectors import EmbedderRow

__all__ = ["existing_ids", "links", "parts", "versions"]


def versions(connection: apsw.Connection, condition: Condition) -> Iterator[tuple[int, str, str, int | None]]:
    """(row id, public id, scope, valid_to) of every version of the open records that satisfy `condition`, old first."""
    return iter(
        connection.execute(
            "SELECT v.id, v.public_id, s.path, v.valid_to FROM record r JOIN record v ON v.public_id = r.public_id "
            f"JOIN scope s ON s.id = v.scope_id WHERE r.valid_to IS NULL AND ({condition.sql}) "
            "ORDER BY r.id, v.valid_from, v.valid_to IS NULL, v.id",
            condition.values,
        )
    )


def parts(connection: apsw.Connection, record_id: int, embedder: EmbedderRow) -> list[bytes]:
    """The float32 bytes of a record's parts."""
    return [
        row[0]
        for row in connection.execute(
            "SELECT value FROM vector WHERE record_id = ? AND embedder_id = ? ORDER BY part",
            (record_id, embedder.id),
        )
    ]


def links(connection: apsw.Connection, condition: Condition) -> Iterator[dict[str, Any]]:
    """Links both of whose ends satisfy `condition`."""
    rows = connection.execute(
        "SELECT a.public_id, b.public_id, l.type, l.strength, l.created_at FROM link l "
        "JOIN record a ON a.id = l.source_id JOIN record b ON b.id = l.target_id "
        f"WHERE l.source_id IN (SELECT r.id FROM record r WHERE {condition.sql}) "
        f"AND l.target_id IN (SELECT r.id FROM record r WHERE {condition.sql}) ORDER BY l.source_id, l.target_id, l.type",
        (*condition.values, *condition.values),
    )
    for source, target, kind, strength, created_at in rows:
        yield {
            "source": source,
            "target": target,
            "type": kind,
            "strength": strength,
            "created_at": created_at,
        }


def existing_ids(connection: apsw.Connection, public_ids: list[str]) -> set[str]:
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
