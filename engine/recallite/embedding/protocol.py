"""The protocols of an embedder. Any object with these attributes and this method works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Progress = Callable[[int, int], None]
"""Called with (parts done, parts in all), in the caller's thread."""


class Embedder(Protocol):
    """Turns texts into unit vectors.

    `fingerprint` identifies everything that changes a vector (weights, pooling, prefix, quantisation): a store
    refuses vectors with another fingerprint.
    """

    name: str
    dimension: int
    fingerprint: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors float32 (n, dimension), one row a text, of unit length. May be called from many threads."""
        ...


class Embedded(NamedTuple):
    """Vectors of texts that may have several parts: `owners[i]` is the position of the text of row i.

    Rows are ordered by owner, then by part; every text has at least one.
    """

    vectors: NDArray[np.float32]
    owners: NDArray[np.int64]


class QueryTokens(NamedTuple):
    """The tokens of a query, without special tokens.

    - codes: uint64 (tokens, ceil(width / 64)), 1 bit a component as `kernels.sketch` makes them
    - places: int64 (tokens,), the character of the query at which each begins
    - width: components of a token's vector
    """

    codes: NDArray[np.uint64]
    places: NDArray[np.int64]
    width: int


@runtime_checkable
class TokenEmbedder(Protocol):
    """An embedder that also returns codes of a text's tokens, from the same run of the model; optional.

    Codes of documents are bytes: those of `QueryTokens.codes`, little-endian, token after token.
    """

    def embed_query_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[QueryTokens]]:
        """Embed queries as `embed` does, and return the tokens of each."""
        ...

    def embed_document_tokens(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> tuple[Embedded, list[bytes]]:
        """Embed as `embed_documents` does, and return the codes of each part's tokens, or of the informative ones."""
        ...


@runtime_checkable
class DocumentEmbedder(Protocol):
    """An embedder that splits long texts to its own window; optional: `documents.embed_documents` does it otherwise."""

    def embed_documents(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> Embedded:
        """Embed each text, prefixed with its context, in as many overlapping parts as it needs."""
        ...
