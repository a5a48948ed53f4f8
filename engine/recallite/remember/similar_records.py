"""Threshold search: the current records, and rows of a batch, whose cosine to a new text reaches a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from posixpath import commonpath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.engine import Engine
from recallite.index.late_records import nearly_current
from recallite.index.memory_index import MemoryIndex
from recallite.index.threshold_search import Likely, ThresholdQuery, likely_among, likely_in_index
from recallite.model.checks import now_us
from recallite.model.filters import Filter
from recallite.store.transaction import Reader
from recallite.store.values import Commit, EmbedderRow, Row
from recallite.system.numerics import kernel_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray


# How many new records the index may lack; their vectors are read from the store.
_LATE = 24
# Rows of a batch compared at once.
_BLOCK = 256


class Neighbor(NamedTuple):
    """A record near a text: its row id, the cosine, and whether both texts were embedded in one part.

    Only then does a cosine near 1 mean that the texts are alike: long texts are compared by their nearest parts.
    """

    record_id: int
    cosine: float
    whole: bool


class ThresholdMatches(NamedTuple):
    """The neighbours of each text, nearest first, as of this commit."""

    commit: Commit
    neighbors: list[list[Neighbor]]


class _Read(NamedTuple):
    """A read transaction, and the embedder whose vectors the store has."""

    reader: Reader
    embedder: EmbedderRow


def threshold_search(
    engine: Engine, reader: Reader, rows: Sequence[Row], most: int, floor: float, *, indexed: bool = True
) -> ThresholdMatches:
    """Find at most `most` records at a cosine of at least `floor` for each row; none for a row without a vector.

    The store measures the cosines, of its float32 vectors. `indexed` is False in a transaction that has written: the
    index lacks its uncommitted rows, so every record of the scope and kind is read from the store.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        if row.vectors:
            groups.setdefault((row.scope, row.kind), []).append(place)
    neighbors: list[list[Neighbor]] = [[] for _ in rows]
    with kernel_errors(), ExitStack() as stack:
        if indexed:
            index = index_of(engine, rows)
            embedder, late = stack.enter_context(nearly_current(index, reader, _LATE))
        else:
            embedder = reader.vectors.active_embedder()
        commit = reader.changes.commit()
        if embedder is None or not groups:
            return ThresholdMatches(commit, neighbors)
        read, now = _Read(reader, embedder), now_us()
        scopes = reader.scopes.ids(list({scope for scope, _ in groups}))
        for (scope, kind), places in groups.items():
            if scope not in scopes:
                continue
            wanted = ThresholdQuery(scopes[scope], kind, now, most, floor)
            queries = _first_parts([rows[place] for place in places], embedder.dimension)
            if indexed:
                likely = _in_index(index, read, queries, wanted, late)
            else:
                likely = _in_store(read, queries, scope, wanted)
            for place, near_records in zip(places, _measured(read, queries, likely, wanted), strict=True):
                single_part = len(rows[place].vectors) == 1
                neighbors[place] = (
                    near_records if single_part else [near._replace(whole=False) for near in near_records]
                )
    return ThresholdMatches(commit, neighbors)


def index_of(engine: Engine, rows: Sequence[Row]) -> MemoryIndex:
    """The index that has the records of the rows' scopes."""
    return engine.index_within(commonpath({row.scope for row in rows}))


def _first_parts(rows: Sequence[Row], dimension: int) -> NDArray[np.float32]:
    """The vector of each row's first part, float32 (rows, dimension)."""
    return np.frombuffer(b"".join(row.vectors[0] for row in rows), dtype="<f4").reshape(len(rows), dimension)


def _in_index(
    index: MemoryIndex, read: _Read, queries: NDArray[np.float32], wanted: ThresholdQuery, late: list[int]
) -> list[Likely]:
    """The records that may match each query, by the index and, of those that it lacks, by the store."""
    likely: list[Likely] = [{} for _ in queries]
    if index.vectors is not None:
        likely = likely_in_index(index, queries, wanted)
    if not late:
        return likely
    lacking = likely_among(read.reader.vectors.of_current(late, read.embedder), queries, wanted)
    return [a | b for a, b in zip(likely, lacking, strict=True)]


def _in_store(read: _Read, queries: NDArray[np.float32], scope: str, wanted: ThresholdQuery) -> list[Likely]:
    """The records that may match each query, by the vectors that the store has of the scope and kind."""
    reader, embedder = read
    ids = reader.records.matching_ids(Filter(where={"scope": scope}, kinds=wanted.kind), wanted.now)
    return likely_among(reader.vectors.of_current(ids, embedder), queries, wanted)


def _measured(
    read: _Read, queries: NDArray[np.float32], likely: Sequence[Likely], wanted: ThresholdQuery
) -> list[list[Neighbor]]:
    """The neighbours of each query among the records that may match it, nearest first."""
    neighbors = []
    for query, records in zip(queries, likely, strict=True):
        cosines = read.reader.vectors.cosines(read.embedder, query, list(records)) if records else ()
        near = [Neighbor(key, float(cosine), records[key]) for key, cosine in zip(records, cosines, strict=True)]
        near = [neighbor for neighbor in near if neighbor.cosine >= wanted.floor]
        near.sort(key=lambda neighbor: (-neighbor.cosine, neighbor.record_id))
        neighbors.append(near[: wanted.most])
    return neighbors


class BatchMatches:
    """Cosines between the rows of a batch that share scope and kind, computed a block at a time."""

    def __init__(self, rows: Sequence[Row], wanted: int) -> None:
        self._wanted = wanted
        groups: dict[tuple[str, str], list[int]] = {}
        self._seat: list[tuple[tuple[str, str], int] | None] = [None] * len(rows)
        for place, row in enumerate(rows):
            if row.vectors:
                group = groups.setdefault((row.scope, row.kind), [])
                self._seat[place] = (row.scope, row.kind), len(group)
                group.append(place)
        self._places = {key: np.array(places) for key, places in groups.items()}
        self._vectors = {
            key: _first_parts([rows[place] for place in places], len(rows[places[0]].vectors[0]) // 4)
            for key, places in groups.items()
        }
        self._block: tuple[tuple[str, str], int, NDArray[np.float32]] | None = None

    def near(self, place: int, floor: float) -> list[tuple[int, float]]:
        """The nearest earlier rows at a cosine of at least `floor`, nearest first."""
        seat = self._seat[place]
        if seat is None or not seat[1]:
            return []
        key, seat_row = seat
        start = seat_row - seat_row % _BLOCK
        if self._block is None or self._block[:2] != (key, start):
            every = self._vectors[key]
            self._block = key, start, every[start : start + _BLOCK] @ every[: start + _BLOCK].T
        cosines = self._block[2][seat_row - start, :seat_row]
        matching = np.flatnonzero(cosines >= floor)
        matching = matching[np.argsort(-cosines[matching], kind="stable")][: self._wanted]
        return [(int(self._places[key][other]), min(1.0, float(cosines[other]))) for other in matching.tolist()]
