"""Query embeddings kept in memory: agents ask the same things again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from recollect.embedding.documents import embed_checked, embed_tokens_checked
from recollect.embedding.protocol import Embedder, QueryTokens, TokenEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EmbeddedQuery", "QueryCache"]


class EmbeddedQuery(NamedTuple):
    """A query's vector, float32 (dimension,), read-only, and its tokens if they were asked for and there are such."""

    vector: NDArray[np.float32]
    tokens: QueryTokens | None


class QueryCache:
    """The vectors of the last `size` distinct queries, in order of use; thread-safe. Size 0 keeps nothing."""

    def __init__(self, embedder: Embedder, size: int = 512) -> None:
        self._embedder = embedder
        self._size = size
        self._kept: OrderedDict[str, EmbeddedQuery] = OrderedDict()
        self._lock = threading.Lock()

    def embed_many(self, queries: list[str], *, tokens: bool = False) -> list[EmbeddedQuery]:
        """`queries` embedded, with tokens if asked for; unknown ones together, each once, outside the lock."""
        tokens = tokens and isinstance(self._embedder, TokenEmbedder)
        with self._lock:
            found = {query: self._kept[query] for query in queries if query in self._kept}
        if missing := [
            query for query in dict.fromkeys(queries) if query not in found or (tokens and found[query].tokens is None)
        ]:
            found.update(zip(missing, self._embed(missing, tokens), strict=True))
        with self._lock:
            for query in dict.fromkeys(queries[-self._size :] if self._size else ()):
                self._kept[query] = found[query]
                self._kept.move_to_end(query)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return [found[query] for query in queries]

    def _embed(self, queries: list[str], tokens: bool) -> list[EmbeddedQuery]:
        if tokens and isinstance(self._embedder, TokenEmbedder):
            vectors, found = embed_tokens_checked(self._embedder, queries)
            return [EmbeddedQuery(_frozen(row), each) for row, each in zip(vectors, found, strict=True)]
        return [EmbeddedQuery(_frozen(row), None) for row in embed_checked(self._embedder, queries)]


def _frozen(row: NDArray[np.float32]) -> NDArray[np.float32]:
    # A copy: a kept row must not keep its whole batch alive.
    kept = row.copy()
    kept.setflags(write=False)
    return kept
