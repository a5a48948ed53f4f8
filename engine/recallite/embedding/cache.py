"""An in-memory cache of query embeddings: agents repeat queries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from recallite.embedding.protocol import Embedder, QueryTokens, TokenEmbedder
from recallite.embedding.windows import embed_checked, embed_tokens_checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EmbeddedQuery(NamedTuple):
    """A query's vector, float32 (dimension,), read-only, and its tokens if requested and available."""

    vector: NDArray[np.float32]
    tokens: QueryTokens | None


class QueryCache:
    """An LRU cache of the last `size` distinct queries; thread-safe. Size 0 caches nothing."""

    def __init__(self, embedder: Embedder, size: int = 512) -> None:
        self._embedder = embedder
        # Asked once: it takes 20 microseconds, for a protocol is compared method by method.
        self._coder = embedder if isinstance(embedder, TokenEmbedder) else None
        self._size = size
        self._kept: OrderedDict[str, EmbeddedQuery] = OrderedDict()
        self._lock = threading.Lock()

    def embed_many(self, queries: list[str], *, tokens: bool = False) -> list[EmbeddedQuery]:
        """The queries embedded, with tokens if requested; the missing ones in one batch, outside the lock."""
        tokens = tokens and self._coder is not None
        with self._lock:
            embedded = {query: self._kept[query] for query in queries if query in self._kept}
        if missing := [
            query
            for query in dict.fromkeys(queries)
            if query not in embedded or (tokens and embedded[query].tokens is None)
        ]:
            embedded.update(zip(missing, self._embed(missing, tokens), strict=True))
        with self._lock:
            for query in dict.fromkeys(queries[-self._size :] if self._size else ()):
                self._kept[query] = embedded[query]
                self._kept.move_to_end(query)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return [embedded[query] for query in queries]

    def _embed(self, queries: list[str], tokens: bool) -> list[EmbeddedQuery]:
        if tokens and self._coder is not None:
            vectors, query_tokens = embed_tokens_checked(self._coder, queries)
            return [
                EmbeddedQuery(_frozen(row), tokens_of_query)
                for row, tokens_of_query in zip(vectors, query_tokens, strict=True)
            ]
        return [EmbeddedQuery(_frozen(row), None) for row in embed_checked(self._embedder, queries)]


def _frozen(row: NDArray[np.float32]) -> NDArray[np.float32]:
    # A copy: a cached row must not keep its whole batch alive.
    copy = row.copy()
    copy.setflags(write=False)
    return copy
