"""The few records that an index lacks, for a writer that searches in its own transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recallite.index.threshold_search import VectorBlock

if TYPE_CHECKING:
    from recallite.index.memory_index import MemoryIndex
    from recallite.store.transaction import Reader
    from recallite.store.values import EmbedderRow


class LateVectors:
    """The vectors of the records that an index lacks, cached until the index changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._block, self._version = VectorBlock(0), -1
        self._seen: set[int] = set()

    def read(self, reader: Reader, embedder: EmbedderRow | None, late: list[int], version: int) -> VectorBlock | None:
        """Return the vectors of the records with these row ids, for this version of the index; None without any."""
        if not late or embedder is None:
            return None
        with self._lock:
            if self._version != version:
                self._block, self._version, self._seen = VectorBlock(embedder.dimension), version, set()
            new = [record_id for record_id in late if record_id not in self._seen]
            if new:
                self._block.extend(reader.vectors.of_current(new, embedder))
                self._seen.update(new)
            return self._block


@contextmanager
def nearly_current(
    index: MemoryIndex, reader: Reader, most: int
) -> Iterator[tuple[EmbedderRow | None, VectorBlock | None]]:
    """Hold an index that lacks at most `most` new records of those that `reader` sees.

    Yields the active embedder and the vectors of those records. Updating the index takes 1 to 2 ms for one record and
    hardly more for a hundred.
    """
    while True:
        embedder = reader.vectors.active_embedder()
        with index.lock.reading():
            late = _late(index, reader, embedder, most)
            if late is not None:
                yield embedder, index.late.read(reader, embedder, late, index.version)
                return
        index.catch_up(reader)
        with index.lock.reading():
            if index.matches(reader):
                yield embedder, None
                return
        reader.changes.refresh()


def _late(index: MemoryIndex, reader: Reader, embedder: EmbedderRow | None, most: int) -> list[int] | None:
    """Return the row ids of the records that an index lacks; None if they are too many, or if anything else changed."""
    changes = None if index.commit is None else reader.changes.since(index.commit)
    if changes is None or any(change.operation not in ("insert", "link") for change in changes):
        return None
    count = sum(change.last_id - change.first_id + 1 for change in changes)
    if count > most or (None if embedder is None else embedder.id) != index.embedder_id:
        return None
    new = (change for change in changes if change.operation == "insert")
    return [record_id for change in new for record_id in range(change.first_id, change.last_id + 1)]
