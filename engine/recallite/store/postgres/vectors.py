"""Embedders and vectors in PostgreSQL."""

from __future__ import annotations

from recallite.store.sql.vectors import Vectors
from recallite.store.values import EmbedderRow


class PostgresVectors(Vectors):
    """The tables of vectors; of two writers that bring the first embedder, the second waits and is told."""

    def register_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        if self.active_embedder() is None:
            self._tx.lock(["the first embedder"], wait=True)  # type: ignore[attr-defined]
        return super().register_embedder(fingerprint=fingerprint, name=name, dimension=dimension)
