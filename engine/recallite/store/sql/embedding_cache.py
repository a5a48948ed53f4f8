"""Vectors kept by the hash of what was embedded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from recallite.store.sql.repository import NO_LIMIT, Repository
from recallite.store.values import EmbedderRow, Parts


class EmbeddingCache(Repository):
    """The table `embedding_cache`."""

    def look_up(self, embedder: EmbedderRow, hashes: Sequence[bytes]) -> dict[bytes, Parts]:
        """The vectors of this embedder by content hash, with token codes if they were kept."""
        width = embedder.dimension * 4
        rows = self._rows(
            "SELECT content_hash, parts, codes FROM embedding_cache WHERE embedder_id = ? AND content_hash IN "
            "(SELECT value FROM carray(?))",
            (embedder.id, self._byte_array([*set(hashes)])),
        )
        return {
            content_hash: Parts(
                tuple(parts[begin : begin + width] for begin in range(0, len(parts), width)),
                () if codes is None else msgspec.msgpack.decode(codes, type=tuple[bytes, ...]),
            )
            for content_hash, parts, codes in rows
            if len(parts) % width == 0
        }

    def keep(self, embedder: EmbedderRow, made: Mapping[bytes, Parts], max_entries: int | None) -> None:
        """Add vectors; beyond `max_entries` the least recently used entries are removed."""
        used = self._next_use()
        self._execute_many(
            "INSERT INTO embedding_cache (content_hash, embedder_id, parts, codes, used) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (content_hash, embedder_id) "
            "DO UPDATE SET parts = excluded.parts, codes = excluded.codes, used = excluded.used",
            [
                (key, embedder.id, b"".join(parts.values), msgspec.msgpack.encode(parts.codes) if parts.codes else None,
                 used + place)
                for place, (key, parts) in enumerate(made.items())
            ],
        )  # fmt: skip
        self._trim(max_entries)

    def touch(self, embedder: EmbedderRow, hashes: Iterable[bytes], max_entries: int | None) -> None:
        """Mark entries as just used."""
        used = self._next_use()
        self._execute_many(
            "UPDATE embedding_cache SET used = ? WHERE content_hash = ? AND embedder_id = ?",
            [(used + place, key, embedder.id) for place, key in enumerate(hashes)],
        )
        self._trim(max_entries)

    def count(self) -> int:
        """The number of entries."""
        return self._number("SELECT count(*) FROM embedding_cache")

    def _next_use(self) -> int:
        return self._number("SELECT coalesce(max(used), 0) + 1 FROM embedding_cache")

    def _trim(self, max_entries: int | None) -> None:
        if max_entries is not None:
            self._execute(
                "DELETE FROM embedding_cache WHERE id IN "
                "(SELECT id FROM embedding_cache ORDER BY used DESC LIMIT ? OFFSET ?)",
                (NO_LIMIT, max_entries),
            )
