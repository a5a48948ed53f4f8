"""Embedders that tell what they were asked, and ones that cost nothing."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.embedding import Embedded

__all__ = ["Free", "Recorded"]

_ROWS = 4096


class Free:
    """One of 4,096 random unit vectors a text, picked by its checksum: the store does its work, no model runs."""

    name = "free"
    fingerprint = "free:384"
    dimension = 384

    def __init__(self) -> None:
        rows = np.random.default_rng(0).standard_normal((_ROWS, self.dimension)).astype(np.float32)
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors float32 (n, 384)."""
        return self._rows[[zlib.crc32(text.encode()) % _ROWS for text in texts]]

    def embed_documents(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Any = None
    ) -> Embedded:
        """One vector a text."""
        return Embedded(self.embed(texts), np.arange(len(texts), dtype=np.int64))


class Recorded:
    """Passes everything on; keeps the documents it was asked for, and the seconds that they took."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self.name, self.fingerprint, self.dimension = embedder.name, embedder.fingerprint, embedder.dimension
        self.texts: list[str] = []
        self.contexts: list[str | None] = []
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The embedder's vectors."""
        vectors: NDArray[np.float32] = self._embedder.embed(texts)
        return vectors

    def embed_documents(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Any = None
    ) -> Embedded:
        """The embedder's vectors, timed."""
        self.texts += texts
        self.contexts += contexts
        began = perf_counter()
        embedded: Embedded = self._embedder.embed_documents(texts, contexts, on_progress)
        self.seconds += perf_counter() - began
        return embedded
