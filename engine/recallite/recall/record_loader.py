"""What recall reads of records while it runs, beside the index."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from recallite.store.protocol import Reader
from recallite.store.values import EmbedderRow, TermBlock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class StandingRows(NamedTuple):
    """The visible rows, int64 ascending, of standing instructions and preferences, which are instructions, and their
    row ids in the store.
    """

    rows: NDArray[np.int64]
    instructions: NDArray[np.bool_]
    keys: frozenset[int]


class RecordLoader:
    """What recall reads from the store while it runs; one reader, so one thread at a time.

    `standing` are the rows that may be brought after the hits; None where none is wanted or there is none.
    """

    def __init__(self, reader: Reader, embedder: EmbedderRow | None, standing: StandingRows | None) -> None:
        self._reader, self._embedder = reader, embedder
        self.standing = standing
        self._lock = threading.Lock()

    @property
    def embedder(self) -> str | None:
        """The name of the embedder whose vectors the store holds."""
        return None if self._embedder is None else self._embedder.name

    def originals(self, vector_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The stored float32 vectors with these row ids, in their order."""
        assert self._embedder is not None
        with self._lock:
            return self._reader.blocks.exact_vectors(self._embedder.dimension, vector_ids)

    def contexts(self, keys: NDArray[np.int64]) -> list[str | None]:
        """The context of each of these records."""
        with self._lock:
            return self._reader.records.contexts(keys)

    def texts(self, keys: NDArray[np.int64]) -> list[str]:
        """The text of each of these records."""
        with self._lock:
            found = self._reader.records.fetch(keys.tolist())
        return [found[key].text for key in keys.tolist()]

    def frames(self, keys: NDArray[np.int64]) -> NDArray[np.uint32]:
        """What each of these records states: frames and values, uint32 (records, `MAX_FRAMES`, 2), 0 for none."""
        with self._lock:
            return self._reader.statements.frames(keys)

    def superseded(self, keys: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Row ids, old and new, of the standing supersessions of these records."""
        with self._lock:
            return [(each.old_id, each.new_id) for each in self._reader.supersessions.of_old(keys.tolist())]

    def terms(self, keys: NDArray[np.int64]) -> TermBlock:
        """The words of these records."""
        with self._lock:
            return self._reader.blocks.terms(keys.tolist())
