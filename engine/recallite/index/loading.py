"""Loading a whole store into the index, on two threads where there are two processors.

Columns are read first, then words, then vectors. Each thread takes the next range, on a connection of its own at the
same commit. While one inverts the words, the other reads vectors.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from recallite.index.vectors import VectorIndex
from recallite.store.sql.blocks import Blocks, TermBlock, TokenBlock
from recallite.store.sql.vectors import EmbedderRow, PackedVectors
from recallite.store.transaction import Reader
from recallite.system.parallel import run_tasks, usable_cpus
from recallite.system.telemetry import logger

if TYPE_CHECKING:
    from recallite.index.memory_index import MemoryIndex

_log = logger(__name__)
# Opening a second connection takes 1 ms, reading this many vectors 4 ms.
_WORTH_A_THREAD = 4096
_NO_WORDS = TermBlock(
    np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
)
Range = tuple[int, int]


def load(
    reader: Reader,
    another: Callable[[], AbstractContextManager[Reader] | None],
    index: MemoryIndex,
    embedder: EmbedderRow | None,
) -> None:
    """Fill an empty index with the whole store, or with its scope and the scope's descendants.

    `another` opens a second read transaction, or returns None.
    """
    began = perf_counter()
    others = [_words(reader, index)]
    later = []
    if index.vectors is not None and embedder is not None:
        vectors, tokens = _vectors(reader, index, index.vectors, embedder)
        others, later = [*others, vectors], [tokens]
    ranges = reader.blocks.within(index.scope).ranges("columns")
    queues = [_columns(ranges, index, others), *others, *later]

    def drain_all(one: Reader) -> None:
        for queue in queues:
            queue.drain(one.blocks.within(index.scope))

    with _readers(reader, another, worth_it=_last(ranges) >= _WORTH_A_THREAD) as readers:
        run_tasks([partial(drain_all, one) for one in readers])
    _log.info("index loaded from the store in %.0f ms, records: %d", (perf_counter() - began) * 1e3, len(index.table))


def _columns(ranges: Sequence[Range], index: MemoryIndex, others: Sequence[RangeQueue]) -> RangeQueue:
    """The other queues wait for it: the table says which rows their blocks belong to."""
    index.table.reserve(_last(ranges))

    def finish() -> None:
        if index.vectors is not None:
            index.vectors.add_rows(len(index.table))
        for queue in others:
            queue.open()
        index.table.order_tags()
        index.graph.load()

    return RangeQueue(
        ranges, lambda blocks, bounds: blocks.column_range(bounds), lambda block, _: index.table.append(block), finish
    )


def _words(reader: Reader, index: MemoryIndex) -> RangeQueue:
    table, words = index.table, index.words
    ranges = reader.blocks.within(index.scope).ranges("terms")

    def append(block: TermBlock, number: int) -> None:
        first, stop = len(words), int(np.searchsorted(table.ids, ranges[number][1], side="right"))
        if not first:
            words.reserve(len(table), len(ranges) * len(block.terms))
        words.append(block, table.ids[first:stop], table.open[first:stop])

    def finish() -> None:
        first = len(words)
        if first < len(table):
            words.append(_NO_WORDS, table.ids[first:], table.open[first:])
        index.before_inverting()
        words.invert()

    return RangeQueue(ranges, lambda blocks, bounds: blocks.term_range(bounds), append, finish, waits=True)


def _vectors(
    reader: Reader, index: MemoryIndex, vectors: VectorIndex, embedder: EmbedderRow
) -> tuple[RangeQueue, RangeQueue]:
    """The vectors, and the codes of their tokens, which wait for them."""
    ranges = reader.blocks.within(index.scope).ranges("vectors")
    vectors.reserve(_last(ranges))
    ends: list[int] = []

    def append(block: PackedVectors, _: int) -> None:
        vectors.extend(block, index.table.rows_of)
        ends.append(len(vectors))

    def append_tokens(block: TokenBlock, number: int) -> None:
        index.tokens.extend(vectors.ids(np.arange(len(index.tokens), ends[number])), block)

    tokens = RangeQueue(ranges, lambda blocks, bounds: blocks.token_code_range(bounds), append_tokens, waits=True)
    queue = RangeQueue(
        ranges, lambda blocks, bounds: blocks.vector_range(embedder, bounds), append, tokens.open, waits=True
    )
    return queue, tokens


def _last(ranges: Sequence[Range]) -> int:
    return ranges[-1][1] if ranges else 0


@contextmanager
def _readers(
    reader: Reader, another: Callable[[], AbstractContextManager[Reader] | None], *, worth_it: bool
) -> Iterator[list[Reader]]:
    """The reader, and a second one at the same commit where it pays off."""
    opening = another() if worth_it and usable_cpus() > 1 else None
    with reader.blocks.reading_all():
        if opening is None:
            yield [reader]
            return
        with opening as second, second.blocks.reading_all():
            same = second.changes.matches(reader.changes.commit())
            yield [reader, second] if same else [reader]


# Ranges of a store: several threads read them, and one at a time appends their blocks, in order.


class RangeQueue:
    """Ranges to read, and the use of their blocks.

    Any thread calls `read`; one at a time calls `append`, with the number of the range, in order, and `finish` at last.
    With `waits` nothing is appended until `open` is called; blocks are read all the same.
    """

    def __init__(
        self,
        ranges: Sequence[Range],
        read: Callable[[Blocks, Range], Any],
        append: Callable[[Any, int], object],
        finish: Callable[[], object] = lambda: None,
        *,
        waits: bool = False,
    ) -> None:
        self._ranges, self._read, self._append, self._finish = ranges, read, append, finish
        self._waiting = deque(range(len(ranges)))
        self._blocks: dict[int, Any] = {}
        self._next = 0
        self._lock = threading.Lock()
        # One thread appends: another that has read a block meanwhile leaves it there and reads the next.
        self._closed = waits
        self._finished = False

    def open(self) -> None:
        """Append what has been read; from now on blocks are appended as they come."""
        self._closed = False
        self._append_ready()

    def drain(self, blocks: Blocks) -> None:
        """Read ranges until none is left."""
        self._append_ready()
        while True:
            try:
                number = self._waiting.popleft()
            except IndexError:
                return
            self._blocks[number] = self._read(blocks, self._ranges[number])
            self._append_ready()

    def _append_ready(self) -> None:
        while True:
            with self._lock:
                number = self._next
                last = number == len(self._ranges)
                if self._closed or self._finished or not (last or number in self._blocks):
                    return
                self._closed, self._finished = True, last
            if last:
                self._finish()
            else:
                self._append(self._blocks.pop(number), number)
                self._next = number + 1
            self._closed = False
