"""LangChain's `Embeddings` as the embedder of a Memory: `Memory(path, embedder=LangChainEmbedder(embeddings, 768))`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recallite.embedding.protocol import Embedded, Progress
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput
from recallite.memory import Memory
from recallite.model import checks
from recallite_connect.common import needed

with needed("langchain"):
    from langchain_core.embeddings import Embeddings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NAMED_BY = ("model", "model_name", "model_id", "deployment")


class LangChainEmbedder:
    """An embedder that asks LangChain's `Embeddings` for vectors of `dimension` components.

    `name` tells a store whether its vectors are of these embeddings; by default the class and its model.
    """

    def __init__(self, embeddings: Embeddings, dimension: int, *, name: str | None = None) -> None:
        self.embeddings = embeddings
        self.dimension = checks.check_count(dimension, "dimension")
        self.name = _name(embeddings) if name is None else checks.check_name(name, "name")
        self.fingerprint = f"langchain:{self.name}:{self.dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, float32 (n, dimension)."""
        return self._checked([self.embeddings.embed_query(text) for text in texts])

    def embed_documents(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> Embedded:
        """Vectors of texts to remember, one each; a context goes before its text."""
        import numpy as np

        documents = [f"{context}: {text}" if context else text for text, context in zip(texts, contexts, strict=True)]
        vectors = self._checked(self.embeddings.embed_documents(documents)) if documents else self.unit([])
        if on_progress is not None:
            on_progress(len(documents), len(documents))
        return Embedded(vectors, np.arange(len(documents), dtype=np.int64))

    def unit(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float32]:
        """Rows as float32 (n, dimension) of unit length; what is all zeros stays so.

        Raises InvalidInput for rows of another dimension.
        """
        import numpy as np

        if wrong := [len(row) for row in rows if len(row) != self.dimension]:
            raise InvalidInput(
                f"{self.name} gave a vector of {wrong[0]} components, and dims is {self.dimension}", "vector"
            )
        vectors = np.asarray(rows, dtype=np.float64).reshape(-1, self.dimension)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)

    def check(self, memory: Memory) -> None:
        """Raise EmbedderMismatch if a memory has vectors of another embedder."""
        stored = memory.store.stats()
        if stored.embedder is not None and (stored.embedder, stored.dimension) != (self.name, self.dimension):
            raise EmbedderMismatch(
                f"{memory.path} holds vectors of {stored.embedder} ({stored.dimension}); this embedder is {self.name} "
                f"({self.dimension}): leave embed and dims out to use the memory's own"
            )

    def _checked(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float32]:
        vectors = self.unit(rows)
        if not vectors.any(axis=1).all():
            raise EmbedderError(f"{self.name} gives one of these texts a vector of zeros", "text_refused")
        return vectors


def _name(embeddings: Any) -> str:
    function = getattr(embeddings, "func", None) or getattr(embeddings, "afunc", None)  # LangGraph's EmbeddingsLambda
    models = [getattr(embeddings, attribute, None) for attribute in _NAMED_BY]
    models.append(getattr(function, "__qualname__", None))
    model = next((value for value in models if isinstance(value, str) and value.strip()), None)
    return type(embeddings).__name__ if model is None else f"{type(embeddings).__name__}:{model}"
