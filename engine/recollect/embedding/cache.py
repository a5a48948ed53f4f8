"""Query embeddings kept in memory: agents ask the same things again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from recollect.embedding.documents import embed_checked
from recollect.embedding.protocol import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["QueryCache"]


class QueryCache:
    """The vectors of the last `size` distinct queries, in order of use; thread-safe. Size 0 keeps nothing."""

    def __init__(self, embedder: Embedder, size: int = 512) -> None:
        self._embedder = embedder
        self._size = size
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def embed(self, query: str) -> NDArray[np.float32]:
        """The query's vector, float32 (dimension,), read-only."""
        return self.embed_many([query])[0]

    def embed_many(self, queries: list[str]) -> list[NDArray[np.float32]]:
        """The vectors of `queries`; unknown ones are embedded together, each once, outside the lock."""
        with self._lock:
            found = {query: self._kept[query] for query in queries if query in self._kept}
        if missing := [query for query in dict.fromkeys(queries) if query not in found]:
            vectors = embed_checked(self._embedder, missing)
            vectors.setflags(write=False)
            # A copy per row: a kept row must not keep its whole batch alive.
            found.update(zip(missing, (_frozen(row) for row in vectors), strict=True))
        with self._lock:
            for query in dict.fromkeys(queries[-self._size :] if self._size else ()):
                self._kept[query] = found[query]
                self._kept.move_to_end(query)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return [found[query] for query in queries]

    def clear(self) -> None:
        """Forget all queries."""
        with self._lock:
            self._kept.clear()


def _frozen(row: NDArray[np.float32]) -> NDArray[np.float32]:
    kept = row.copy()
    kept.setflags(write=False)
    return kept
