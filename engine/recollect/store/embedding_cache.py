"""Vectors kept by the hash of what was embedded. Every function runs inside `Store.atomic()` or `read()`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw
import msgspec

from recollect.store.vectors import EmbedderRow, Parts

__all__ = ["count", "keep", "look_up", "touch"]


def look_up(connection: apsw.Connection, embedder: EmbedderRow, hashes: Sequence[bytes]) -> dict[bytes, Parts]:
    """The vectors of each hash that this embedder has made, with codes where they were kept."""
    width = embedder.dimension * 4
    rows: Any = connection.execute(
        "SELECT content_hash, parts, codes FROM embedding_cache WHERE embedder_id = ? AND content_hash IN "
        "(SELECT value FROM carray(?))",
        (embedder.id, apsw.carray(tuple(set(hashes)))),
    )
    return {
        content_hash: Parts(
            tuple(parts[begin : begin + width] for begin in range(0, len(parts), width)),
            () if codes is None else msgspec.msgpack.decode(codes, type=tuple[bytes, ...]),
        )
        for content_hash, parts, codes in rows
        if len(parts) % width == 0
    }


def keep(
    connection: apsw.Connection, embedder: EmbedderRow, made: Mapping[bytes, Parts], max_entries: int | None
) -> None:
    """Add vectors, as those used last; beyond `max_entries` those go that were used the longest time ago."""
    used = _next_use(connection)
    connection.executemany(
        "INSERT INTO embedding_cache (content_hash, embedder_id, parts, codes, used) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET parts = excluded.parts, codes = excluded.codes, used = excluded.used",
        [
            (key, embedder.id, b"".join(parts.values), msgspec.msgpack.encode(parts.codes) if parts.codes else None,
             used + place)
            for place, (key, parts) in enumerate(made.items())
        ],
    )  # fmt: skip
    _trim(connection, max_entries)


def touch(connection: apsw.Connection, embedder: EmbedderRow, hashes: Iterable[bytes], max_entries: int | None) -> None:
    """Note that these were used just now."""
    used = _next_use(connection)
    connection.executemany(
        "UPDATE embedding_cache SET used = ? WHERE content_hash = ? AND embedder_id = ?",
        [(used + place, key, embedder.id) for place, key in enumerate(hashes)],
    )
    _trim(connection, max_entries)


def count(connection: apsw.Connection) -> int:
    """How many texts have their vectors here."""
    found: int = connection.execute("SELECT count(*) FROM embedding_cache").get
    return found


def _next_use(connection: apsw.Connection) -> int:
    following: int = connection.execute("SELECT coalesce(max(used), 0) + 1 FROM embedding_cache").get
    return following


def _trim(connection: apsw.Connection, max_entries: int | None) -> None:
    if max_entries is not None:
        connection.execute(
            "DELETE FROM embedding_cache WHERE id IN "
            "(SELECT id FROM embedding_cache ORDER BY used DESC LIMIT -1 OFFSET ?)",
            (max_entries,),
        )
