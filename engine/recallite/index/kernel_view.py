"""The index under one filter, as the kernel of a recall reads it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recallite.index.corpus_statistics import CorpusStatistics
from recallite.index.memory_index import MemoryIndex, Selection
from recallite.system.numerics import kernels

# If fewer vectors than one in this number are visible, each sketch is looked at alone.
_SPARSE = 6
_NO_PLACES = np.empty(0, dtype=np.int64)
_NO_MASK = np.empty(0, dtype=np.uint8)
_NO_VECTORS = kernels.Vectors(
    sketches=np.empty((0, 0, kernels.LANES), dtype=np.uint64), masks=np.empty(0, dtype=np.uint16), places=_NO_PLACES,
    visible=0, first_place=_NO_PLACES, parts=np.empty(0, dtype=np.int32), owners=_NO_PLACES,
    codes=np.empty((0, 0), dtype=np.int8), scales=np.empty(0, dtype=np.float32),
    residuals=np.empty((0, 0), dtype=np.int8), token_starts=_NO_PLACES,
    token_codes=np.empty(0, dtype=np.uint64),
)  # fmt: skip


def view_of(
    index: MemoryIndex,
    selection: Selection,
    statistics: CorpusStatistics,
    standing: NDArray[np.int64],
    instructions: NDArray[np.bool_],
    chains: NDArray[np.int64],
) -> kernels.View:
    """The index with what a filter admits; valid while `index.lock.reading()` is held and the index does not change.

    `standing` are the visible rows of standing instructions and preferences, ascending, and which are `instructions`;
    `chains` are pairs of rows and of what superseded them.
    """
    table, graph, words = index.table, index.graph, index.words
    records = kernels.Records(
        table.ids, table.created_at, table.importance, table.moments, table.moments_until, table.resolved,
        table.authorities, words.speakers,
    )  # fmt: skip
    mask = _NO_MASK if selection.mask is None else selection.mask
    distinct = words.terms
    terms = kernels.Terms(
        distinct, words.starts, words.segments, words.rows, words.counts, words.lengths, statistics.average_length,
        float(statistics.records), *statistics.frequencies(distinct),
    )  # fmt: skip
    return kernels.View(
        terms, _vectors(index, selection),
        kernels.Graph(graph.previous, graph.next, table.sources, *graph.links, mask), records,
        kernels.Stated(table.frames, table.positioned, table.scopes, chains), standing,
        instructions.astype(np.uint8),
    )  # fmt: skip


def _vectors(index: MemoryIndex, selection: Selection) -> kernels.Vectors:
    vectors, mask = index.vectors, selection.mask
    if vectors is None:
        return _NO_VECTORS
    n, sketches = len(vectors), vectors.sketches
    blocks = len(sketches)
    admitted = None if mask is None else vectors.admitted(mask)
    visible = n if admitted is None else int(np.count_nonzero(admitted))
    places, masks = _NO_PLACES, np.empty(0, dtype=np.uint16)
    if visible <= kernels.SCAN_ALL or visible * _SPARSE < n:
        places = np.arange(n, dtype=np.int64) if admitted is None else np.flatnonzero(admitted)
    else:
        lanes = np.zeros(blocks * kernels.LANES, dtype=np.uint8)
        lanes[:n] = 1 if admitted is None else admitted
        masks = np.packbits(lanes, bitorder="little").view(np.uint16)
    return kernels.Vectors(
        sketches, masks, places, visible, *vectors.places_by_row, vectors.owners_by_place, vectors.codes,
        vectors.scales, vectors.residuals, index.tokens.starts, index.tokens.codes,
    )  # fmt: skip
