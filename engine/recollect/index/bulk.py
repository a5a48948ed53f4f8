"""Loading a whole store into the index, on two threads where there are two processors.

One thread reads columns, words and neighbours; the other reads vectors, on a connection of its own at the same commit.
The first then helps with the remaining vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recollect.cpus import usable_cpus
from recollect.index.tokens import TokenIndex
from recollect.index.vectors import VectorIndex
from recollect.parallel import run_tasks
from recollect.store.packing import PackedVectors
from recollect.store.protocol import Reader
from recollect.store.values import EmbedderRow, TermBlock

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.graph import RecordGraph
    from recollect.index.lexical import LexicalIndex
    from recollect.index.table import RecordTable


# Opening a second connection takes 1 ms, reading this many vectors 4 ms.
_WORTH_A_THREAD = 4096


def load(
    reader: Reader,
    another: Callable[[], AbstractContextManager[Reader] | None],
    table: RecordTable,
    words: LexicalIndex,
    graph: RecordGraph,
    vectors: VectorIndex | None,
    tokens: TokenIndex,
    embedder: EmbedderRow | None,
) -> None:
    """Fill empty parts with the whole store; `another` opens a second read transaction, or returns None."""
    if vectors is None or embedder is None:
        _load_records(reader, table, words, graph)
        return
    todo = _Vectors(vectors, embedder, reader.blocks.ranges("vectors"))

    def load_all() -> None:
        _load_records(reader, table, words, graph)
        todo.drain(reader)

    with _helper(reader, another, todo) as second:
        run_tasks([load_all] if second is None else [load_all, partial(todo.drain, second)])
    vectors.add_rows(len(table))
    vectors.settle(0, table.rows_of)
    _load_tokens(reader, vectors.ids, tokens)


def aligned(block: TermBlock, ids: NDArray[np.int64]) -> TermBlock:
    """The block with exactly the records `ids`: a record whose words are missing gets an empty list."""
    if np.array_equal(block.ids, ids):
        return block
    lengths = np.diff(block.offsets)
    known = np.isin(block.ids, ids)
    kept = np.repeat(known, lengths)
    sizes = np.zeros(len(ids), dtype=np.int64)
    sizes[np.searchsorted(ids, block.ids[known])] = lengths[known]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return TermBlock(ids, block.terms[kept], block.counts[kept], offsets)


def _load_records(reader: Reader, table: RecordTable, words: LexicalIndex, graph: RecordGraph) -> None:
    for bounds in reader.blocks.ranges("columns"):
        table.append(reader.blocks.column_range(bounds))
    words.load(_words(reader, table.ids), table.open)
    graph.load()


def _load_tokens(reader: Reader, vector_ids: NDArray[np.int64], tokens: TokenIndex) -> None:
    first = 0
    for bounds in reader.blocks.ranges("vectors"):
        stop = int(np.searchsorted(vector_ids, bounds[1], side="right"))
        tokens.extend(vector_ids[first:stop], reader.blocks.token_code_range(bounds))
        first = stop


def _words(reader: Reader, ids: NDArray[np.int64]) -> Iterator[TermBlock]:
    first = 0
    for bounds in reader.blocks.ranges("terms"):
        stop = int(np.searchsorted(ids, bounds[1], side="right"))
        yield aligned(reader.blocks.term_range(bounds), ids[first:stop])
        first = stop
    yield aligned(reader.blocks.terms([]), ids[first:])


@contextmanager
def _helper(
    reader: Reader, another: Callable[[], AbstractContextManager[Reader] | None], todo: _Vectors
) -> Iterator[Reader | None]:
    """A second connection at the same commit, where it pays off."""
    opening = another() if todo.most >= _WORTH_A_THREAD and usable_cpus() > 1 else None
    if opening is None:
        yield None
        return
    with opening as second:
        same = second.changes.commit() == reader.changes.commit()
        yield second if same else None


class _Vectors:
    """Ranges of vectors that threads take one by one and append to the index in order."""

    def __init__(self, vectors: VectorIndex, embedder: EmbedderRow, ranges: list[tuple[int, int]]) -> None:
        self.most = ranges[-1][1] if ranges else 0
        vectors.reserve(self.most)
        self._vectors, self._embedder = vectors, embedder
        self._ranges: Iterator[tuple[int, tuple[int, int]]] = iter(enumerate(ranges))
        self._ready: dict[int, PackedVectors] = {}
        self._next = 0
        self._lock = threading.Lock()

    def drain(self, reader: Reader) -> None:
        """Read ranges until none is left."""
        while True:
            with self._lock:
                number, bounds = next(self._ranges, (-1, (0, 0)))
            if number < 0:
                return
            block = reader.blocks.vector_range(self._embedder.id, self._embedder.dimension, bounds)
            with self._lock:
                self._ready[number] = block
                while self._next in self._ready:
                    self._vectors.append(self._ready.pop(self._next))
                    self._next += 1
