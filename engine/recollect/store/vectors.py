"""Vectors and their embedders. `vector` holds the float32 originals; `vector_packed` is derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import numpy as np

from recollect.errors import EmbedderMismatch
from recollect.store import codes, refusals
from recollect.store.arrays import id_array
from recollect.store.packing import pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = [
    "EmbedderRow",
    "Parts",
    "activate",
    "active_embedder",
    "mispacked",
    "rebuild_packed",
    "register",
]


class Parts(NamedTuple):
    """A text embedded: the float32 bytes of each part, and the codes of each part's tokens, or none at all.

    One without parts could not be embedded: `problem` says why, and `refused` that asking again would not help.
    """

    values: tuple[bytes, ...]
    codes: tuple[bytes, ...] = ()
    problem: str | None = None
    refused: bool = False

    def rows(self, record_id: int) -> list[tuple[int, int, bytes, bytes | None]]:
        """What `insert` takes."""
        codes = self.codes or (None,) * len(self.values)
        return [(record_id, part, *pair) for part, pair in enumerate(zip(self.values, codes, strict=True))]


class EmbedderRow(NamedTuple):
    """An embedder that made vectors of this store."""

    id: int
    fingerprint: str
    name: str
    dimension: int


def active_embedder(connection: apsw.Connection) -> EmbedderRow | None:
    """The embedder whose vectors recall uses; None before the first vector."""
    row = connection.execute("SELECT id, fingerprint, name, dimension FROM embedder WHERE active").fetchone()
    return None if row is None else EmbedderRow(*row)


def register(connection: apsw.Connection, path: str, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
    """The row of this embedder, made active when it is the store's first; another active one is refused."""
    active = active_embedder(connection)
    if active is None:
        row = add(connection, fingerprint=fingerprint, name=name, dimension=dimension)
        activate(connection, row)
        return row
    if active.fingerprint != fingerprint:
        raise EmbedderMismatch(
            f"{path} holds vectors of {active.name} ({active.dimension}); this embedder is {name} ({dimension}, "
            f"{fingerprint}). Run: recollect --db {path} reembed"
        )
    return active


def add(connection: apsw.Connection, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
    """The row of this embedder, not active: for vectors that are made beside the active ones."""
    connection.execute(
        "INSERT INTO embedder (fingerprint, name, dimension) VALUES (?, ?, ?) ON CONFLICT (fingerprint) DO NOTHING",
        (fingerprint, name, dimension),
    )
    row: Any = connection.execute(
        "SELECT id, fingerprint, name, dimension FROM embedder WHERE fingerprint = ?", (fingerprint,)
    ).fetchone()
    return EmbedderRow(*row)


def parts_of(connection: apsw.Connection, record_id: int) -> Parts:
    """The parts of a record by the active embedder; none where it has none, codes only where every part has them."""
    rows: Any = connection.execute(
        "SELECT v.value, c.codes FROM vector v JOIN embedder e ON e.id = v.embedder_id AND e.active "
        "LEFT JOIN token_code c ON c.vector_id = v.id WHERE v.record_id = ? ORDER BY v.part",
        (record_id,),
    ).fetchall()
    codes = tuple(row[1] for row in rows)
    return Parts(tuple(row[0] for row in rows), () if None in codes else codes)


def activate(connection: apsw.Connection, row: EmbedderRow) -> None:
    """Make `row` the embedder that recall uses."""
    connection.execute("UPDATE embedder SET active = (id = ?)", (row.id,))


def count_waiting(connection: apsw.Connection) -> int:
    """How many records wait for a vector."""
    number: int = connection.execute(
        "SELECT count(*) FROM record WHERE embedding_state != 'embedded' AND embedding_state != 'refused'"
    ).get
    return number


def waiting(connection: apsw.Connection, limit: int, after_id: int = 0) -> list[tuple[int, str, str | None]]:
    """(row id, text, context) of records above `after_id` that wait for a vector."""
    rows: Any = connection.execute(
        "SELECT id, text, context FROM record WHERE embedding_state != 'embedded' AND embedding_state != 'refused' "
        "AND id > ? ORDER BY id LIMIT ?",
        (after_id, limit),
    ).fetchall()
    return list(rows)


_WITHOUT = (
    "NOT EXISTS (SELECT 1 FROM vector v WHERE v.record_id = r.id AND v.embedder_id = ?1) "
    "AND NOT EXISTS (SELECT 1 FROM refusal f WHERE f.record_id = r.id AND f.embedder_id = ?1)"
)


def without(connection: apsw.Connection, embedder: EmbedderRow, limit: int) -> list[tuple[int, str, str | None]]:
    """(row id, text, context) of records that have no vector of `embedder`, and were not refused by it."""
    rows: Any = connection.execute(
        f"SELECT r.id, r.text, r.context FROM record r WHERE {_WITHOUT} ORDER BY r.id LIMIT ?2",
        (embedder.id, limit),
    ).fetchall()
    return list(rows)


def count_without(connection: apsw.Connection, embedder: EmbedderRow) -> int:
    """How many records `without` names."""
    number: int = connection.execute(f"SELECT count(*) FROM record r WHERE {_WITHOUT}", (embedder.id,)).get
    return number


def unchanged(
    connection: apsw.Connection,
    rows: Sequence[tuple[int, str, str | None]],
    parts: dict[int, Parts],
) -> dict[int, Parts]:
    """The parts of records that still have the text they were embedded from."""
    still = {
        row[0]: row
        for row in connection.execute(
            "SELECT id, text, context FROM record WHERE id IN (SELECT value FROM carray(?))",
            (id_array(list(parts)),),
        )
    }
    return {row[0]: parts[row[0]] for row in rows if still.get(row[0]) == row}


def drop_others(connection: apsw.Connection, embedder: EmbedderRow) -> None:
    """Remove the vectors of every other embedder; every record is embedded now, or refused."""
    connection.execute("DELETE FROM vector WHERE embedder_id != ?", (embedder.id,))
    connection.execute("DELETE FROM embedder WHERE id != ?", (embedder.id,))
    connection.execute("UPDATE record SET embedding_state = 'embedded'")
    refusals.mark(connection)


def start_over(connection: apsw.Connection, embedder: EmbedderRow) -> None:
    """Make `embedder` the active one at once: the vectors of all others go, and records without its own wait."""
    connection.execute("DELETE FROM vector WHERE embedder_id != ?", (embedder.id,))
    connection.execute("DELETE FROM embedder WHERE id != ?", (embedder.id,))
    connection.execute(
        f"UPDATE record AS r SET embedding_state = 'pending' WHERE embedding_state IN ('embedded', 'refused') "
        f"AND {_WITHOUT}",
        (embedder.id,),
    )
    activate(connection, embedder)


def unsound(connection: apsw.Connection) -> list[int]:
    """Row ids of the records with a vector of the active embedder that is not finite and of unit length."""
    active = active_embedder(connection)
    if active is None:
        return []
    bad: set[int] = set()
    last: Any = connection.execute("SELECT coalesce(max(id), 0) FROM vector").get
    for start in range(0, last, 8192):
        rows: Any = connection.execute(
            "SELECT record_id, value FROM vector WHERE id > ? AND id <= ? AND embedder_id = ? AND length(value) = ?",
            (start, start + 8192, active.id, 4 * active.dimension),
        ).fetchall()
        if rows:
            values = np.frombuffer(b"".join(row[1] for row in rows), dtype="<f4").reshape(len(rows), -1)
            norms = np.einsum("ij,ij->i", values, values, dtype=np.float64)
            bad.update(rows[place][0] for place in np.flatnonzero(~(np.abs(norms - 1.0) < 1e-3)).tolist())
    return sorted(bad)


def insert(
    connection: apsw.Connection, embedder: EmbedderRow, vectors: Sequence[tuple[int, int, bytes, bytes | None]]
) -> None:
    """Store (record id, part, float32 bytes, token codes or None) rows, and the packed form of each vector."""
    if not vectors:
        return
    before = _last_id(connection)
    connection.executemany(
        "INSERT INTO vector (record_id, part, embedder_id, value) VALUES (?, ?, ?, ?)",
        [(record_id, part, embedder.id, value) for record_id, part, value, _ in vectors],
    )
    values = np.frombuffer(b"".join(row[2] for row in vectors), dtype="<f4").reshape(len(vectors), -1)
    _insert_packed(connection, embedder.id, range(before + 1, before + 1 + len(vectors)),
                   [row[0] for row in vectors], values)  # fmt: skip
    # AUTOINCREMENT numbers the rows of one statement in their order, without gaps.
    codes.insert(connection, [(before + place, row[3]) for place, row in enumerate(vectors, 1) if row[3] is not None])


def rebuild_packed(connection: apsw.Connection) -> None:
    """Derive `vector_packed` afresh from all vectors that are finite."""
    connection.execute("DELETE FROM vector_packed")
    for embedder_id, ids, owners, values in _whole_vectors(connection):
        _insert_packed(connection, embedder_id, ids, owners, values)


def mispacked(connection: apsw.Connection) -> list[int]:
    """Row ids of the records with a finite vector whose packed form is missing or not its own."""
    bad: set[int] = set()
    for _, ids, owners, values in _whole_vectors(connection):
        found: dict[Any, Any] = dict(
            connection.execute(
                "SELECT id, value FROM vector_packed WHERE id IN (SELECT value FROM carray(?))", (id_array(ids),)
            )
        )
        packed = zip(ids, owners, pack(ids, owners, values), strict=True)
        bad.update(owner for vector_id, owner, value in packed if found.get(vector_id) != value)
    return sorted(bad)


def _whole_vectors(connection: apsw.Connection) -> Iterator[tuple[int, list[int], list[int], NDArray[np.float32]]]:
    """(embedder id, row ids, row ids of records, vectors) of all vectors that are finite and of the right size."""
    embedders: Any = connection.execute("SELECT id, dimension FROM embedder").fetchall()
    for embedder_id, dimension in embedders:
        last = 0
        while True:
            rows: Any = connection.execute(
                "SELECT id, record_id, value FROM vector WHERE id > ? AND embedder_id = ? AND length(value) = ? "
                "ORDER BY id LIMIT 8192",
                (last, embedder_id, 4 * dimension),
            ).fetchall()
            if not rows:
                break
            last = rows[-1][0]
            values = np.frombuffer(b"".join(row[2] for row in rows), dtype="<f4").reshape(len(rows), dimension)
            finite = np.isfinite(values).all(axis=1)
            kept = [row for row, whole in zip(rows, finite.tolist(), strict=True) if whole]
            if kept:
                yield (
                    embedder_id,
                    [row[0] for row in kept],
                    [row[1] for row in kept],
                    np.ascontiguousarray(values[finite]),
                )


def _insert_packed(
    connection: apsw.Connection,
    embedder_id: int,
    ids: Sequence[int],
    owners: Sequence[int],
    values: NDArray[np.float32],
) -> None:
    connection.executemany(
        "INSERT INTO vector_packed (id, embedder_id, value) VALUES (?, ?, ?)",
        [(vector_id, embedder_id, value) for vector_id, value in zip(ids, pack(ids, owners, values), strict=True)],
    )


def _last_id(connection: apsw.Connection) -> int:
    last: int = connection.execute("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'vector'), 0)").get
    return last
