"""Codes of tokens, for the second look: a blob beside a vector, gone with it by foreign key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import apsw

from recollect.store.arrays import id_array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["add", "drop", "exist", "insert", "of_records", "without"]

_LACKS = "NOT EXISTS (SELECT 1 FROM token_code c WHERE c.vector_id = v.id)"


def insert(connection: apsw.Connection, rows: Sequence[tuple[int, bytes]]) -> None:
    """Store (vector id, codes) rows."""
    connection.executemany("INSERT INTO token_code (vector_id, codes) VALUES (?, ?)", rows)


def exist(connection: apsw.Connection) -> bool:
    """True when any vector has codes."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM token_code)").get)


def of_records(connection: apsw.Connection, ids: NDArray[np.int64]) -> list[tuple[int, bytes]]:
    """(record id, codes) of the active embedder of each part that has codes, of these records, by record and part."""
    rows: Any = connection.execute(
        "SELECT v.record_id, c.codes FROM vector v JOIN token_code c ON c.vector_id = v.id "
        "WHERE v.record_id IN (SELECT value FROM carray(?)) "
        "AND v.embedder_id = (SELECT id FROM embedder WHERE active) ORDER BY v.record_id, v.part",
        (id_array(ids),),
    ).fetchall()
    return list(rows)


def without(
    connection: apsw.Connection, embedder_id: int, after_id: int, limit: int
) -> list[tuple[int, str, str | None]]:
    """(row id, text, context) of records above `after_id` with a vector of this embedder that lacks codes."""
    rows: Any = connection.execute(
        "SELECT r.id, r.text, r.context FROM record r WHERE r.id > ? AND EXISTS "
        f"(SELECT 1 FROM vector v WHERE v.record_id = r.id AND v.embedder_id = ? AND {_LACKS}) ORDER BY r.id LIMIT ?",
        (after_id, embedder_id, limit),
    ).fetchall()
    return list(rows)


def add(connection: apsw.Connection, embedder_id: int, codes: dict[int, tuple[bytes, ...]]) -> int:
    """Give codes to the vectors of records that have as many parts as there are codes; returns to how many records."""
    added = 0
    for record_id, parts in codes.items():
        vectors: Any = connection.execute(
            f"SELECT v.id, {_LACKS} FROM vector v WHERE v.record_id = ? AND v.embedder_id = ? ORDER BY v.part",
            (record_id, embedder_id),
        ).fetchall()
        if len(vectors) == len(parts):
            pairs = zip(vectors, parts, strict=True)
            insert(connection, [(vector_id, part) for (vector_id, lacks), part in pairs if lacks])
            added += 1
    return added


def drop(connection: apsw.Connection) -> None:
    """Remove all codes."""
    connection.execute("DELETE FROM token_code")
