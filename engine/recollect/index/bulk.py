"""Loading a whole store into the index, on two threads where there are two processors.

Columns are read first, then words, then vectors. Each thread takes the next range, on a connection of its own at the
same commit. While one inverts the words, the other reads vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.cpus import usable_cpus
from recollect.index.range_queue import Range, RangeQueue, drain
from recollect.store.packing import PackedVectors
from recollect.store.protocol import Reader
from recollect.store.values import Columns, EmbedderRow, TermBlock, TokenBlock

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.graph import RecordGraph
    from recollect.index.lexical import LexicalIndex
    from recollect.index.table import RecordTable
    from recollect.index.tokens import TokenIndex
    from recollect.index.vectors import VectorIndex


# Opening a second connection takes 1 ms, reading this many vectors 4 ms.
_WORTH_A_THREAD = 4096


class Parts(NamedTuple):
    """The parts of an index; `vectors` is None where the store has no embedder."""

    table: RecordTable
    words: LexicalIndex
    graph: RecordGraph
    vectors: VectorIndex | None
    tokens: TokenIndex


def load(
    reader: Reader,
    another: Callable[[], AbstractContextManager[Reader] | None],
    parts: Parts,
    embedder: EmbedderRow | None,
    before_inverting: Callable[[], object] = lambda: None,
) -> None:
    """Fill empty parts with the whole store.

    `another` opens a second read transaction, or returns None. `before_inverting` is called when all words are read.
    """
    words = _words(reader, parts, before_inverting)
    queues, vectors = [_columns(reader, parts, words), words], parts.vectors
    last = max(bounds[1] for bounds in [(0, 0), *reader.blocks.ranges("columns")[-1:]])
    with _readers(reader, another, worth_it=last >= _WORTH_A_THREAD) as readers:
        if vectors is None or embedder is None:
            drain(readers, queues)
            return
        named: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        drain(readers, [*queues, _vectors(reader, vectors, embedder, named)])
        vectors.add_rows(len(parts.table))
        if named:
            ids, owners = (np.concatenate(each) for each in zip(*named, strict=True))
            vectors.settle(0, ids, parts.table.rows_of(owners))
        drain(readers, [_tokens(reader, vectors, parts.tokens)])


def _columns(reader: Reader, parts: Parts, words: RangeQueue) -> RangeQueue:
    table = parts.table
    ranges = reader.blocks.ranges("columns")
    table.reserve(ranges[-1][1] if ranges else 0)

    def append(columns: Columns, _: Range) -> None:
        table.append(columns)

    def finish() -> None:
        words.open()
        parts.graph.load()

    return RangeQueue(ranges, lambda own, bounds: own.blocks.column_range(bounds), append, finish)


def _words(reader: Reader, parts: Parts, before_inverting: Callable[[], object]) -> RangeQueue:
    """They wait for the table, which says whose they are."""
    table, words = parts.table, parts.words
    ranges = reader.blocks.ranges("terms")

    def append(block: TermBlock, bounds: Range) -> None:
        first, stop = len(words), int(np.searchsorted(table.ids, bounds[1], side="right"))
        if not first:
            words.reserve(len(table), len(ranges) * len(block.terms))
        words.append(aligned(block, table.ids[first:stop]), table.open[first:stop])

    def finish() -> None:
        first = len(words)
        missing = reader.blocks.terms([]) if first < len(table) else None
        if missing is not None:
            words.append(aligned(missing, table.ids[first:]), table.open[first:])
        before_inverting()
        words.invert()

    return RangeQueue(ranges, lambda own, bounds: own.blocks.term_range(bounds), append, finish, waits=True)


def _vectors(
    reader: Reader,
    vectors: VectorIndex,
    embedder: EmbedderRow,
    named: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> RangeQueue:
    """Adds the row ids of the vectors of each range, and of their records, to `named`."""
    ranges = reader.blocks.ranges("vectors")
    vectors.reserve(ranges[-1][1] if ranges else 0)

    def read(own: Reader, bounds: Range) -> PackedVectors:
        return own.blocks.vector_range(embedder.id, embedder.dimension, bounds)

    def append(block: PackedVectors, _: Range) -> None:
        vectors.append(block)
        named.append((block.ids.copy(), block.owners.copy()))

    return RangeQueue(ranges, read, append)


def _tokens(reader: Reader, vectors: VectorIndex, tokens: TokenIndex) -> RangeQueue:
    ids = vectors.ids(np.arange(len(vectors)))

    def append(block: TokenBlock, bounds: Range) -> None:
        first, stop = len(tokens), int(np.searchsorted(ids, bounds[1], side="right"))
        tokens.extend(ids[first:stop], block)

    ranges = reader.blocks.ranges("vectors")
    return RangeQueue(ranges, lambda own, bounds: own.blocks.token_code_range(bounds), append)


@contextmanager
def _readers(
    reader: Reader, another: Callable[[], AbstractContextManager[Reader] | None], *, worth_it: bool
) -> Iterator[list[Reader]]:
    """The reader, and a second one at the same commit where it pays off."""
    opening = another() if worth_it and usable_cpus() > 1 else None
    if opening is None:
        yield [reader]
        return
    with opening as second:
        same = second.changes.commit() == reader.changes.commit()
        yield [reader, second] if same else [reader]


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
