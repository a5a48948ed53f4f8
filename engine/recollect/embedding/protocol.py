"""What an embedder is. Any object with these attributes and this method will do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DocumentEmbedder", "Embedded", "Embedder", "Progress"]

Progress = Callable[[int, int], None]
"""Called with (parts done, parts in all), in the caller's thread."""


class Embedder(Protocol):
    """Turns texts into unit vectors.

    `fingerprint` names everything that changes a vector (weights, pooling, prefix, quantisation): a store
    refuses vectors of another fingerprint.
    """

    name: str
    dimension: int
    fingerprint: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors float32 (n, dimension), one row a text, of unit length. May be called from many threads."""
        ...


class Embedded(NamedTuple):
    """Vectors of texts that may have several parts: `owners[i]` is the position of the text of row i.

    Rows stand grouped by owner, ascending, and within an owner in the order of its parts; no text is without.
    """

    vectors: NDArray[np.float32]
    owners: NDArray[np.int64]


@runtime_checkable
class DocumentEmbedder(Protocol):
    """An embedder that cuts long texts to its own window; optional, `documents.embed_documents` stands in."""

    def embed_documents(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> Embedded:
        """Embed each text, its context before it, in as many overlapping parts as it needs."""
        ...
