"""The few records that an index lacks, for a writer that searches in its own transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recallite.index.memory_index import MemoryIndex
from recallite.store.transaction import Reader
from recallite.store.values import EmbedderRow


@contextmanager
def nearly_current(index: MemoryIndex, reader: Reader, most: int) -> Iterator[tuple[EmbedderRow | None, list[int]]]:
    """Hold an index that lacks at most `most` new records of those that `reader` sees.

    Yields the active embedder and the row ids of those records. Updating the index takes 1 to 2 ms for one record and
    hardly more for a hundred.
    """
    while True:
        embedder = reader.vectors.active_embedder()
        with index.lock.reading():
            late = _late(index, reader, embedder, most)
            if late is not None:
                yield embedder, late
                return
        index.catch_up(reader)
        with index.lock.reading():
            if index.matches(reader):
                yield embedder, []
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
