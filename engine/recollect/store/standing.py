"""Records as they stand now, as a write looks for them: by row id, by text, by topic. Expired ones do not stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import numpy as np

from recollect.store.arrays import id_array
from recollect.store.loading import NEVER
from recollect.store.vectors import EmbedderRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Standing", "by_ids", "by_keys", "by_topics", "scope_ids", "vectors_of"]


class Standing(NamedTuple):
    """An open record that has not expired."""

    record_id: int
    public_id: str
    scope: str
    kind: str
    text: str
    context: str | None
    topic: str | None
    pinned: bool
    content_hash: bytes
    valid_from: int


_SELECT = (
    "SELECT r.id, r.public_id, s.path, r.kind, r.text, r.context, r.topic, r.pinned, r.content_hash, r.valid_from "
    "FROM record r JOIN scope s ON s.id = r.scope_id WHERE r.valid_to IS NULL "
    "AND (r.expires_at IS NULL OR r.expires_at > ?1)"
)


def by_ids(connection: apsw.Connection, ids: Sequence[int], now: int) -> Iterator[Standing]:
    """The records with these row ids."""
    return _standing(connection, "r.id IN (SELECT value FROM carray(?2))", now, id_array(ids))


def by_keys(connection: apsw.Connection, keys: Sequence[bytes], now: int) -> Iterator[Standing]:
    """The records with a text of one of these keys (`text_key`), the first stored first."""
    chosen = "substr(r.content_hash, 1, 8) IN (SELECT value FROM carray(?2)) ORDER BY r.id"
    return _standing(connection, chosen, now, apsw.carray(tuple(keys)))


def by_topics(connection: apsw.Connection, topics: Sequence[str], now: int) -> Iterator[Standing]:
    """The records of these topics, the last changed last."""
    chosen = "r.topic IN (SELECT value FROM carray(?2)) ORDER BY r.valid_from, r.id"
    return _standing(connection, chosen, now, apsw.carray(tuple(topics)))


def vectors_of(
    connection: apsw.Connection, ids: Sequence[int], embedder: EmbedderRow
) -> list[tuple[int, int, str, int, NDArray[np.float32]]]:
    """(row id, scope id, kind, when it expires, vectors (parts, dimension)) of those of these records that are open."""
    rows: Any = connection.execute(
        "SELECT r.id, r.scope_id, r.kind, coalesce(r.expires_at, ?), v.value FROM record r "
        "JOIN vector v ON v.record_id = r.id AND v.embedder_id = ? "
        "WHERE r.id IN (SELECT value FROM carray(?)) AND r.valid_to IS NULL ORDER BY r.id, v.part",
        (NEVER, embedder.id, id_array(ids)),
    )
    found: dict[tuple[int, int, str, int], list[bytes]] = {}
    for *record, value in rows:
        found.setdefault(tuple(record), []).append(value)
    return [
        (*record, np.frombuffer(b"".join(values), dtype="<f4").reshape(-1, embedder.dimension))
        for record, values in found.items()
    ]


def scope_ids(connection: apsw.Connection, paths: Sequence[str]) -> dict[str, int]:
    """The ids of those of these scopes that hold or held a record."""
    rows: Any = connection.execute(
        "SELECT path, id FROM scope WHERE path IN (SELECT value FROM carray(?))", (apsw.carray(tuple(paths)),)
    )
    return dict(rows)


def _standing(connection: apsw.Connection, chosen: str, now: int, bound: Any) -> Iterator[Standing]:
    rows: Any = connection.execute(f"{_SELECT} AND {chosen}", (now, bound))
    return map(Standing._make, rows)
