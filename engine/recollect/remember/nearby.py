"""What is near texts that are about to be written: the nearest open records of the same scope and kind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.checks import now_us
from recollect.engine import Engine
from recollect.index.cold import nearest_records
from recollect.index.memory_view import MemoryQuestions, MemoryView
from recollect.index.pool import run_tasks
from recollect.index.protocol import Found
from recollect.index.table import Visible
from recollect.numerics import kernel_errors
from recollect.store import feed, filters, loading, standing, vectors
from recollect.store.filters import Filter
from recollect.store.vectors import EmbedderRow
from recollect.store.writing import Row

if TYPE_CHECKING:
    import apsw
    from numpy.typing import NDArray

__all__ = ["Near", "Neighbor", "look"]

# Texts that go through the kernels together, as in recall.
_GROUP = 32
# How far a cosine from int8 codes is from the exact one, at most: 0.004 on 100,000 real vectors.
_CODE_ERROR = 0.02
_NO_WORDS = np.empty(0, dtype=np.int32)


class Neighbor(NamedTuple):
    """A record near a text: its row id, the cosine, and whether both are short enough to be embedded in one part.

    Only then does a cosine near 1 say that the texts are alike: long ones are compared by their nearest parts.
    """

    record_id: int
    cosine: float
    whole: bool


class Near(NamedTuple):
    """The neighbours of each text, nearest first, at the commit with this sequence number."""

    sequence: int
    neighbors: list[list[Neighbor]]


def look(engine: Engine, rows: Sequence[Row], wanted: int, floor: float) -> Near:
    """At most `wanted` records at a cosine of at least `floor` for each row; none for a row without a vector.

    Cosines are exact, from the stored float32. The newest commit is seen; what it hides by expiry is not.
    """
    engine.start_kernels()
    groups: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        if row.vectors:
            groups.setdefault((row.scope, row.kind), []).append(place)
    neighbors: list[list[Neighbor]] = [[] for _ in rows]
    with kernel_errors(), engine.store.read() as connection:
        sequence = feed.last_sequence(connection)
        embedder = vectors.active_embedder(connection)
        if not groups or embedder is None:
            return Near(sequence, neighbors)
        if engine.answers_from_sql():
            for (scope, kind), places in groups.items():
                for place in places:
                    neighbors[place] = _from_sql(connection, embedder, rows[place], scope, kind, wanted, floor)
            return Near(sequence, neighbors)
        with engine.index.current(connection):
            sequence = engine.index.sequence
            scopes = standing.scope_ids(connection, list({scope for scope, _ in groups}))
            for (scope, kind), places in groups.items():
                if scope in scopes:
                    asked = [rows[place] for place in places]
                    found = _from_index(engine, connection, embedder, asked, scopes[scope], kind, wanted, floor)
                    for place, each in zip(places, found, strict=True):
                        neighbors[place] = each
    return Near(sequence, neighbors)


def first_parts(rows: Sequence[Row], dimension: int) -> NDArray[np.float32]:
    """The vector of each row's first part, float32 (rows, dimension)."""
    return np.frombuffer(b"".join(row.vectors[0] for row in rows), dtype="<f4").reshape(len(rows), dimension)


def _from_index(
    engine: Engine,
    connection: apsw.Connection,
    embedder: EmbedderRow,
    rows: Sequence[Row],
    scope_id: int,
    kind: str,
    wanted: int,
    floor: float,
) -> list[list[Neighbor]]:
    index = engine.index
    assert index.vectors is not None
    selection = index.selection(Visible(now=now_us(), scopes=(scope_id,), kinds=(kind,)))
    view = MemoryView(index, selection, partial(loading.exact_vectors, connection, embedder.dimension))
    asked = first_parts(rows, embedder.dimension)

    def search(start: int) -> tuple[MemoryQuestions, Found]:
        some = asked[start : start + _GROUP]
        questions = view.ask(some, [_NO_WORDS] * len(some), [()] * len(some), wanted)
        return questions, questions.search(wanted, by_vector=True, by_words=False)[0]

    parts = index.vectors.codes[1]
    neighbors: list[list[Neighbor]] = []
    for questions, found in run_tasks([partial(search, start) for start in range(0, len(asked), _GROUP)]):
        inside = np.arange(found.rows.shape[1]) < found.counts[:, None]
        queries, columns = np.nonzero(inside & (found.values >= floor - _CODE_ERROR))
        near = found.rows[queries, columns]
        cosines = questions.exact_cosines(queries, near)
        own = [len(row.vectors) == 1 for row in rows[len(neighbors) : len(neighbors) + len(found.rows)]]
        each: list[list[Neighbor]] = [[] for _ in own]
        single = (parts[near] == 1).tolist()
        lines = zip(queries.tolist(), questions.keys(near).tolist(), cosines.tolist(), single, strict=True)
        for query, key, cosine, short in lines:
            if cosine >= floor:
                each[query].append(Neighbor(key, cosine, short and own[query]))
        neighbors += [sorted(some, key=_nearest_first) for some in each]
    return neighbors


def _from_sql(
    connection: apsw.Connection,
    embedder: EmbedderRow,
    row: Row,
    scope: str,
    kind: str,
    wanted: int,
    floor: float,
) -> list[Neighbor]:
    exactly_here = Filter(where={"scope": scope}, kinds=(kind,))
    vector = first_parts([row], embedder.dimension)[0]
    condition = filters.everything(exactly_here, now_us())
    found = nearest_records(connection, embedder, vector, condition, wanted)
    neighbors = []
    for record_id, parts in loading.parts_of(connection, embedder.id, embedder.dimension, found).items():
        cosine = float(np.clip((parts @ vector).max(), -1.0, 1.0))
        if cosine >= floor:
            neighbors.append(Neighbor(record_id, cosine, len(parts) == len(row.vectors) == 1))
    return sorted(neighbors, key=_nearest_first)


def _nearest_first(neighbor: Neighbor) -> tuple[float, int]:
    return -neighbor.cosine, neighbor.record_id
