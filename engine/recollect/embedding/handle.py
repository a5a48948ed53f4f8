"""The engine's hold on its embedder: loaded at first use, checked at every use, absent without harm."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recollect.errors import EmbedderError, EmbedderMissing, RecollectError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.embedding.protocol import Embedded, Embedder

__all__ = ["EmbedderHandle", "Identity"]


class Identity(NamedTuple):
    """What makes vectors comparable: two embedders with one fingerprint give the same vectors."""

    fingerprint: str
    name: str
    dimension: int


class EmbedderHandle:
    """Loads the embedder that `spec` names when it is first needed.

    `spec` is an object with the `Embedder` protocol, or what `embedding.load` takes; "none" means keyword only.
    """

    def __init__(self, spec: object, *, query_cache_size: int) -> None:
        self._spec = spec
        self._query_cache_size = query_cache_size
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._failure: RecollectError | None = None

    @property
    def enabled(self) -> bool:
        """False when the settings say that nothing is embedded."""
        return self._spec != "none"

    @property
    def failure(self) -> str | None:
        """Why the embedder could not be loaded, or None."""
        return None if self._failure is None else str(self._failure)

    def get(self) -> Embedder:
        """The embedder; EmbedderMissing when there is none here."""
        if not self.enabled:
            raise EmbedderMissing("this memory has no embedder (Settings(embedder='none')): keyword recall only")
        with self._lock:
            if self._embedder is None:
                from recollect.embedding import load

                try:
                    self._embedder = load(self._spec)
                except RecollectError as failure:
                    self._failure = failure
                    raise
                self._failure = None
            return self._embedder

    def identity(self) -> Identity:
        """The embedder's identity."""
        embedder = self.get()
        return Identity(embedder.fingerprint, embedder.name, embedder.dimension)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, dimension) of queries."""
        embedder = self.get()
        return _checked(embedder.embed(texts), len(texts), embedder)

    def documents(self, texts: Sequence[str], contexts: Sequence[str | None]) -> Embedded:
        """Vectors of the parts of texts, each with its context header."""
        from recollect.embedding import embed_documents

        embedder = self.get()
        embedded = embed_documents(embedder, texts, contexts)
        return embedded._replace(vectors=_checked(embedded.vectors, len(embedded.owners), embedder))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text: the loaded embedder's own, else four characters a token."""
        counter = getattr(self._embedder, "count_tokens", None)
        if counter is not None:
            return [int(count) for count in counter(list(texts))]
        return [len(text) // 4 + 1 for text in texts]


def _checked(vectors: object, count: int, embedder: Embedder) -> NDArray[np.float32]:
    """What an embedder returned, as finite unit rows of its dimension."""
    import numpy as np

    array = np.ascontiguousarray(vectors, dtype=np.float32)
    if array.shape != (count, embedder.dimension):
        raise EmbedderError(
            f"{embedder.name} returned vectors of shape {array.shape} for {count} texts: "
            f"wanted ({count}, {embedder.dimension})"
        )
    norms = np.sqrt(np.einsum("ij,ij->i", array, array, dtype=np.float64))
    if not (np.isfinite(norms).all() and norms.all()):
        raise EmbedderError(f"{embedder.name} returned a NaN, an infinity or a zero vector")
    return (array / norms[:, None]).astype(np.float32)
