"""What is near texts that are about to be written: the nearest open records of the same scope and kind."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.checks import now_us
from recollect.engine import Engine
from recollect.index.cold import nearest_records
from recollect.index.memory_index import MemoryIndex
from recollect.index.near import Wanted, nearest_rows
from recollect.numerics import kernel_errors
from recollect.store import feed, filters, loading, standing, vectors
from recollect.store.filters import Filter
from recollect.store.vectors import EmbedderRow
from recollect.store.writing import Row

if TYPE_CHECKING:
    import apsw
    from numpy.typing import NDArray

__all__ = ["Near", "Neighbor", "first_parts", "look"]

# So many new records the index may lack; their vectors are read from the store meanwhile.
_LATE = 24


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


class _Read(NamedTuple):
    """A read transaction, and whose vectors the store holds."""

    connection: apsw.Connection
    embedder: EmbedderRow


def look(engine: Engine, rows: Sequence[Row], most: int, floor: float) -> Near:
    """At most `most` records at a cosine of at least `floor` for each row; none for a row without a vector.

    Cosines are exact, from the stored float32. The newest commit is seen.
    """
    engine.start_kernels()
    groups: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        if row.vectors:
            groups.setdefault((row.scope, row.kind), []).append(place)
    neighbors: list[list[Neighbor]] = [[] for _ in rows]
    with kernel_errors(), engine.store.read() as connection, ExitStack() as held:
        from_sql = engine.answers_from_sql()
        late = [] if from_sql else held.enter_context(engine.index.nearly_current(connection, _LATE))
        sequence = feed.last_sequence(connection)
        embedder = vectors.active_embedder(connection)
        if embedder is None or not groups:
            return Near(sequence, neighbors)
        read, now = _Read(connection, embedder), now_us()
        scopes = standing.scope_ids(connection, list({scope for scope, _ in groups}))
        for (scope, kind), places in groups.items():
            if scope not in scopes:
                continue
            wanted = Wanted(scopes[scope], kind, now, most, floor)
            asked = [rows[place] for place in places]
            if from_sql:
                found = _from_sql(read, asked, scope, wanted)
            else:
                found = _from_index(engine.index, read, asked, wanted, late)
            for place, each in zip(places, found, strict=True):
                neighbors[place] = each
    return Near(sequence, neighbors)


def first_parts(rows: Sequence[Row], dimension: int) -> NDArray[np.float32]:
    """The vector of each row's first part, float32 (rows, dimension)."""
    return np.frombuffer(b"".join(row.vectors[0] for row in rows), dtype="<f4").reshape(len(rows), dimension)


def _from_index(
    index: MemoryIndex, read: _Read, rows: Sequence[Row], wanted: Wanted, late: Sequence[int]
) -> list[list[Neighbor]]:
    connection, embedder = read
    asked = first_parts(rows, embedder.dimension)
    found: list[list[Neighbor]] = [[] for _ in rows]
    if index.vectors is not None:
        originals = partial(loading.exact_vectors, connection, embedder.dimension)
        near = nearest_rows(index, asked, wanted, originals)
        for place, (row, each) in enumerate(zip(rows, near, strict=True)):
            own = len(row.vectors) == 1
            keys = index.table.ids[each.rows].tolist()
            lines = zip(keys, each.cosines.tolist(), each.single.tolist(), strict=True)
            found[place] = [Neighbor(key, cosine, single and own) for key, cosine, single in lines]
    if late:
        _add_exact(found, read, rows, asked, wanted, late)
    return found


def _from_sql(read: _Read, rows: Sequence[Row], scope: str, wanted: Wanted) -> list[list[Neighbor]]:
    connection, embedder = read
    condition = filters.everything(Filter(where={"scope": scope}, kinds=(wanted.kind,)), wanted.now)
    found: list[list[Neighbor]] = [[] for _ in rows]
    for place, vector in enumerate(first_parts(rows, embedder.dimension)):
        ids = nearest_records(connection, embedder, vector, condition, wanted.most)
        one = slice(place, place + 1)
        some: list[list[Neighbor]] = [[]]
        _add_exact(some, read, rows[one], vector[None, :], wanted, ids)
        found[place] = some[0]
    return found


def _add_exact(
    found: list[list[Neighbor]],
    read: _Read,
    rows: Sequence[Row],
    asked: NDArray[np.float32],
    wanted: Wanted,
    ids: Sequence[int],
) -> None:
    """Add those of the records `ids` that are near to what was found for each row."""
    connection, embedder = read
    held = standing.vectors_of(connection, ids, embedder, wanted.scope_id, wanted.kind, wanted.now)
    for record_id, parts in held.items():
        cosines = np.clip((parts @ asked.T).max(axis=0), -1.0, 1.0)
        for place in np.flatnonzero(cosines >= wanted.floor).tolist():
            whole = len(parts) == len(rows[place].vectors) == 1
            found[place].append(Neighbor(record_id, float(cosines[place]), whole))
    for place, some in enumerate(found):
        found[place] = sorted(some, key=lambda each: (-each.cosine, each.record_id))[: wanted.most]
