"""Whether an index that has followed a store says the same as one that is loaded from it: by record, not by row."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.index.memory_index import MemoryIndex
from recallite.index.vectors import VectorIndex
from recallite.store.store import Store
from recallite.system.numerics import kernels

__all__ = ["difference"]

_DENSE = (
    "scopes",
    "sources",
    "created_at",
    "moments",
    "moments_until",
    "importance",
    "resolved",
    "authorities",
    "open",
)
_SPARSE = ("recorded_from", "recorded_until", "expires_at", "superseded_at", "held_until")


def difference(store: Store, index: MemoryIndex) -> str | None:
    """What differs between `index` after it has caught up and a fresh one, both of one commit; None if nothing does."""
    with store.read() as reader:
        index.catch_up(reader)
        fresh = MemoryIndex()
        fresh.catch_up(reader)
        held, expected = _described(index), _described(fresh)
    for name, values in expected.items():
        if held.get(name) != values:
            return f"{name}: {_first(held.get(name), values)}"
    return None


def _first(held: Any, expected: Any) -> str:
    """The first record for which two lists differ."""
    if isinstance(held, list) and isinstance(expected, list):
        for one, other in itertools.zip_longest(held, expected):
            if one != other:
                return f"{str(one)[:80]} and not {str(other)[:80]}"
    return f"{str(held)[:80]} and not {str(expected)[:80]}"


def _described(index: MemoryIndex) -> dict[str, Any]:
    """Every part of an index, in the order of records."""
    table = index.table
    present = np.flatnonzero(table._present.array)
    rows = present[np.argsort(table.ids[present], kind="stable")]
    ids = table.ids[rows]
    found: dict[str, Any] = {"ids": ids.tolist()}
    for name in _DENSE:
        found[name] = getattr(table, name)[rows].tolist()
    found["kinds"] = table._kinds.get(rows).tolist()
    found["positions"] = table.positions.get(rows).tolist()
    for name in _SPARSE:
        found[name] = getattr(table, f"_{name}").get(rows).tolist()
    found["rows of ids"] = [bool(each) for each in table.rows_of(ids) == rows]
    found["words"] = _words(index, table.ids, rows)
    found["live words"] = index.words.live_words
    found["links"] = _links(index, table.ids)
    for name in ("previous", "next"):
        neighbours = getattr(index.graph, name)[rows]
        found[name] = np.where(neighbours < 0, -1, table.ids[neighbours]).tolist()
    found["vectors"] = None if index.vectors is None else _vectors(index.vectors, ids, rows)
    return found


def _words(index: MemoryIndex, ids: NDArray[np.int64], rows: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """(record, word, count) of the records at some rows."""
    words, wanted, found = index.words, set(rows.tolist()), list[tuple[int, int, int]]()
    for segment, (first, last) in enumerate(itertools.pairwise(words.segments.tolist())):
        starts = words.starts[first + segment : last + segment + 1].tolist()
        for term, (start, stop) in zip(words.terms[first:last].tolist(), itertools.pairwise(starts), strict=True):
            places = zip(words.rows[start:stop].tolist(), words.counts[start:stop].tolist(), strict=True)
            found += [(int(ids[row]), term, count) for row, count in places if row in wanted]
    return sorted(found)


def _links(index: MemoryIndex, ids: NDArray[np.int64]) -> list[tuple[int, int, float]]:
    """(record, other, strength)."""
    graph = index.graph
    heads, following, targets, strengths = graph.heads, graph.nexts, graph.targets, graph.strengths
    found = []
    for row, place in enumerate(heads.tolist()):
        while place >= 0:
            if targets[place] >= 0:
                found.append((int(ids[row]), int(ids[targets[place]]), float(strengths[place])))
            place = int(following[place])
    return sorted(found)


def _vectors(vectors: VectorIndex, ids: NDArray[np.int64], rows: NDArray[np.int64]) -> list[tuple[Any, ...]]:
    """(record, part, row id, code, scale, sketch) of the records at some rows."""
    found: list[tuple[Any, ...]] = []
    places = vectors.first_places
    parts, firsts = vectors.parts(rows).tolist(), (places[rows] if len(places) else rows).tolist()
    for row_id, first, count in zip(ids.tolist(), firsts, parts, strict=True):
        for part, place in enumerate(range(first, first + count)):
            sketch = vectors._sketches.array[place // kernels.LANES, :, place % kernels.LANES]
            (vector_id,) = vectors.ids(np.array([place])).tolist()
            found.append(
                (row_id, part, vector_id, vectors._codes.array[place].tolist(), float(vectors._scales.array[place]),
                 sketch.tolist())
            )  # fmt: skip
    return found
