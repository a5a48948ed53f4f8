"""Repositories of the owner, and of a tenant: names by functions, and nothing that belongs to no scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from recallite.store.postgres.changes import PostgresChanges
from recallite.store.sql.embedding_cache import EmbeddingCache
from recallite.store.sql.lexicon import Lexicon
from recallite.store.sql.snapshot import IndexSnapshot
from recallite.store.sql.vectors import Vectors
from recallite.store.values import EmbedderRow, Parts


class ConfinedLexicon(Lexicon):
    """Words, of which a tenant learns the numbers and cannot list them."""

    def size(self) -> int | None:
        return None

    def lookup(self, words: Sequence[str]) -> dict[str, int]:
        return dict(self._execute("SELECT text, id FROM numbered_words(?)", (self._array(words),))) if words else {}


class PostgresVectors(Vectors):
    """The tables of vectors; of two writers that bring the first embedder, the second waits and is told."""

    def register_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        if self.active_embedder() is None:
            self._tx.lock(["the first embedder"], wait=True)  # type: ignore[attr-defined]
        return super().register_embedder(fingerprint=fingerprint, name=name, dimension=dimension)


class ConfinedVectors(PostgresVectors):
    """Vectors of the embedder that the memory has, or, as the first, of another."""

    def register_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        if self.active_embedder() is None:
            self._tx.lock(["the first embedder"], wait=True)  # type: ignore[attr-defined]
            self._execute(
                "SELECT name_first_embedder(?, ?, ?, ?)", (fingerprint, name, dimension, self._tx.vector_type)
            )
        return super().register_embedder(fingerprint=fingerprint, name=name, dimension=dimension)


class ConfinedCache(EmbeddingCache):
    """No cache: a vector that is there would tell that another has its text, and one could be put there for others."""

    def look_up(self, embedder: EmbedderRow, hashes: Sequence[bytes]) -> dict[bytes, Parts]:
        return {}

    def keep(self, embedder: EmbedderRow, made: Mapping[bytes, Parts], max_entries: int | None) -> None:
        pass

    def touch(self, embedder: EmbedderRow, hashes: Iterable[bytes], max_entries: int | None) -> None:
        pass

    def count(self) -> int:
        return 0


class ConfinedChanges(PostgresChanges):
    """The feed, whose old rows a function of the schema removes."""

    def _trim(self, up_to: int) -> None:
        self._execute("SELECT trim_feed()")


class ConfinedSnapshot(IndexSnapshot):
    """The state of the memory, of whose index a server keeps no snapshot."""

    def discard(self) -> None:
        pass
