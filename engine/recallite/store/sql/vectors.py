"""Vectors: packed for the in-memory index, as they are stored, and kept by what was embedded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallite.errors import EmbedderMismatch
from recallite.store.columns import Parts
from recallite.store.sql.repository import IN_ARRAY, NEVER, NO_LIMIT, Repository
from recallite.system.numerics import cosines_to, kernels

# Vectors as the in-memory index keeps them: 1-bit sketch, int8 codes and scale, and the residuals that codes leave.
# They are derived from the stored vectors whenever an index reads these.


class PackedVectors(NamedTuple):
    """Row ids of n vectors and of the records that own them, int64; sketches (n, dimension / 64 rounded up) uint64;
    codes (n, dimension) int8 and their scales (n,) float32; residuals (n, dimension) int8.

    A component is (code + residual / 254) * scale to within scale / 508: a cosine of unit vectors to within 7.5e-6.
    """

    ids: NDArray[np.int64]
    owners: NDArray[np.int64]
    sketches: NDArray[np.uint64]
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    residuals: NDArray[np.int8]


def as_float32(values: Sequence[bytes], dimension: int) -> NDArray[np.float32]:
    """Return stored vectors as float32 (n, dimension); half the bytes mean float16."""
    sizes = {*map(len, values)}
    if len(sizes) > 1:
        return np.concatenate([as_float32([value], dimension) for value in values])
    stored = np.frombuffer(b"".join(values), dtype="<f2" if sizes == {2 * dimension} else "<f4")
    return stored.reshape(-1, dimension).astype(np.float32, copy=False)


def pack(ids: NDArray[np.int64], owners: NDArray[np.int64], values: NDArray[np.float32]) -> PackedVectors:
    """Pack vectors (n, dimension), without any that is not finite: `verify` names them."""
    try:
        codes, scales = kernels.quantize_int8(values)
    except kernels.KernelError:
        finite = np.isfinite(values).all(axis=1)
        return pack(ids[finite], owners[finite], np.ascontiguousarray(values[finite]))
    inverse = np.divide(1.0, scales, out=np.zeros(len(scales), dtype=np.float32), where=scales > 0)
    left = values * inverse[:, None]
    left -= codes
    left *= kernels.RESIDUAL_STEPS
    residuals: NDArray[np.int8] = np.clip(np.rint(left, out=left), -127, 127, out=left).astype(np.int8)
    return PackedVectors(ids, owners, kernels.sketch(values), codes, scales, residuals)


# Embedders, vectors, token codes and refusals.


class EmbedderRow(NamedTuple):
    """An embedder that made vectors of this store, which keeps them as `vector_type`: float32 or float16."""

    id: int
    fingerprint: str
    name: str
    dimension: int
    vector_type: str = "float32"

    @property
    def vector_bytes(self) -> int:
        """The size of a stored vector."""
        return self.dimension * (2 if self.vector_type == "float16" else 4)

    @property
    def dtype(self) -> str:
        """The type of a stored component, as NumPy names it."""
        return "<f2" if self.vector_type == "float16" else "<f4"


_WITHOUT = (
    "r.indexed AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.record_id = r.id AND v.embedder_id = ?1) "
    "AND NOT EXISTS (SELECT 1 FROM refusal f WHERE f.record_id = r.id AND f.embedder_id = ?1)"
)
# The first condition is that of an index.
_REFUSED = "r.embedding_state != 'embedded' AND r.embedding_state = 'refused' AND r.recorded_until IS NULL"
_WAITS = "embedding_state != 'embedded' AND embedding_state != 'refused' AND indexed"
_LACKS = "NOT EXISTS (SELECT 1 FROM token_code c WHERE c.vector_id = v.id)"
_EMBEDDER = "id, fingerprint, name, dimension, vector_type"
VECTOR_BYTES = "CASE e.vector_type WHEN 'float16' THEN 2 ELSE 4 END * e.dimension"
"""The size of a stored vector of an embedder `e`."""


class Vectors(Repository):
    """The tables `embedder`, `vector`, `token_code` and `refusal`."""

    def of_current(
        self, ids: Sequence[int], embedder: EmbedderRow
    ) -> list[tuple[int, int, str, int, NDArray[np.float32]]]:
        """(row id, scope id, kind, expiry, vectors (parts, dimension)) of the open records among these."""
        rows = self._rows(
            "SELECT r.id, r.scope_id, r.kind, coalesce(r.expires_at, ?), v.value FROM record r JOIN vector v ON "
            f"v.record_id = r.id AND v.embedder_id = ? WHERE r.id {IN_ARRAY} AND r.recorded_until IS NULL AND "
            "r.superseded_at IS NULL ORDER BY r.id, v.part",
            (NEVER, embedder.id, self._id_array(ids)),
        )
        values_of: dict[tuple[int, int, str, int], list[bytes]] = {}
        for *record, value in rows:
            values_of.setdefault(tuple(record), []).append(value)
        return [(*record, as_float32(values, embedder.dimension)) for record, values in values_of.items()]

    def values_of(self, ids: Sequence[int], embedder: EmbedderRow) -> dict[int, list[bytes]]:
        """The float32 bytes of the parts of records, by row id."""
        values: dict[int, list[bytes]] = {}
        for row_id, value in self._execute(
            f"SELECT record_id, value FROM vector WHERE embedder_id = ? AND record_id {IN_ARRAY} "
            "ORDER BY record_id, part",
            (embedder.id, self._id_array(ids)),
        ):
            values.setdefault(row_id, []).append(_float32_bytes(value, embedder.dimension))
        return values

    def cosines(self, embedder: EmbedderRow, query: NDArray[np.float32], ids: Sequence[int]) -> NDArray[np.float32]:
        """The cosine of a unit vector to the nearest part of each of these records; 0 where none is sound."""
        values = self.values_of(ids, embedder)
        nearest = np.zeros(len(ids), dtype=np.float32)
        for i, row_id in enumerate(ids):
            parts = values.get(row_id, ())
            sound = b"".join(part for part in parts if isinstance(part, bytes) and len(part) == query.nbytes)
            vectors = np.frombuffer(sound, dtype="<f4").reshape(-1, len(query))
            if len(vectors := vectors[_are_unit(vectors)]):
                nearest[i] = cosines_to(vectors, query).max()
        return nearest.clip(-1.0, 1.0)

    def set(self, embedder: EmbedderRow, parts: dict[int, Parts], *, active: bool) -> None:
        """Store the vectors of records, or why the embedder refused them; `active` sets their embedding state too."""
        self._execute(
            f"DELETE FROM vector WHERE embedder_id = ? AND record_id {IN_ARRAY}",
            (embedder.id, self._id_array(list(parts))),
        )
        self.insert(embedder, [row for row_id, embedded in parts.items() for row in embedded.rows(row_id)])
        self.add_refusals(
            embedder.id,
            {row_id: embedded.problem or "" for row_id, embedded in parts.items() if embedded.refused},
        )
        if active:
            self._execute(
                f"UPDATE record SET embedding_state = 'embedded' WHERE id {IN_ARRAY}", (self._id_array(list(parts)),)
            )
            self.mark_refused()
            self._tx.changes.append_ids("text", list(parts))

    def active_embedder(self) -> EmbedderRow | None:
        """The embedder of the vectors that recall uses; None before the first vector."""

        def read() -> EmbedderRow | None:
            row = self._execute(f"SELECT {_EMBEDDER} FROM embedder WHERE active").fetchone()
            return None if row is None else EmbedderRow(*row)

        return self._tx.known("embedder", read)

    def register_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        """The row of the active embedder, this one if the store has none; EmbedderMismatch if it is another."""
        active = self.active_embedder()
        if active is None:
            row = self.add_embedder(fingerprint=fingerprint, name=name, dimension=dimension)
            self._activate(row)
            return row
        if active.fingerprint != fingerprint:
            raise EmbedderMismatch(
                f"{self._tx.path} holds vectors of {active.name} ({active.dimension}); this embedder is {name} "
                f"({dimension}, {fingerprint}). Run: recallite --db {self._tx.path} reembed"
            )
        if active.vector_type != self._tx.vector_type:
            raise EmbedderMismatch(
                f"{self._tx.path} keeps vectors as {active.vector_type}, and "
                f"Settings(vectors={self._tx.vector_type!r}) asks for others. Open it with "
                f"vectors={active.vector_type!r}, or run rebuild, which converts them"
            )
        return active

    def _activate(self, embedder: EmbedderRow) -> None:
        """Make an embedder the active one."""
        self._execute("UPDATE embedder SET active = (id = ?)", (embedder.id,))

    def none_left(self) -> bool:
        """Whether the store holds no vector."""
        return self._number("SELECT NOT EXISTS (SELECT 1 FROM vector)") == 1

    def add_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        """Add an embedder, to make its vectors beside the active ones; returns its row."""
        self._execute(
            "INSERT INTO embedder (fingerprint, name, dimension, vector_type) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (fingerprint) DO NOTHING",
            (fingerprint, name, dimension, self._tx.vector_type),
        )
        row: Any = self._execute(f"SELECT {_EMBEDDER} FROM embedder WHERE fingerprint = ?", (fingerprint,)).fetchone()
        return EmbedderRow(*row)

    def of_record(self, row_id: int) -> Parts:
        """The parts of a record by the active embedder, if any; with token codes if every part has them."""
        rows = self._rows(
            "SELECT v.value, c.codes, e.dimension FROM vector v JOIN embedder e ON e.id = v.embedder_id AND e.active "
            "LEFT JOIN token_code c ON c.vector_id = v.id WHERE v.record_id = ? ORDER BY v.part",
            (row_id,),
        )
        codes = tuple(row[1] for row in rows)
        return Parts(tuple(_float32_bytes(row[0], row[2]) for row in rows), () if None in codes else codes)

    def count_waiting(self) -> int:
        """The number of records that wait for a vector."""
        return self._number(f"SELECT count(*) FROM record WHERE {_WAITS}")

    def waiting(self, limit: int, after_id: int = 0) -> list[tuple[int, str, str | None, str]]:
        """(row id, text, context, kind) of records that wait for a vector, with row ids above `after_id`."""
        return self._rows(
            f"SELECT id, text, context, kind FROM record WHERE {_WAITS} AND id > ? ORDER BY id LIMIT ?",
            (after_id, limit),
        )

    def lacking(self, embedder: EmbedderRow, limit: int) -> list[tuple[int, str, str | None, str]]:
        """(row id, text, context, kind) of records that `embedder` has neither embedded nor refused."""
        return self._rows(
            f"SELECT r.id, r.text, r.context, r.kind FROM record r WHERE {_WITHOUT} ORDER BY r.id LIMIT ?2",
            (embedder.id, limit),
        )

    def count_lacking(self, embedder: EmbedderRow) -> int:
        """The number of records that `embedder` has neither embedded nor refused."""
        return self._number(f"SELECT count(*) FROM record r WHERE {_WITHOUT}", (embedder.id,))

    def unchanged(self, rows: Sequence[tuple[int, str, str | None, str]], parts: dict[int, Parts]) -> dict[int, Parts]:
        """`parts` of the records that still have the text in `rows`."""
        still = {
            row[0]: row
            for row in self._execute(
                f"SELECT id, text, context, kind FROM record WHERE id {IN_ARRAY}", (self._id_array(list(parts)),)
            )
        }
        return {row[0]: parts[row[0]] for row in rows if still.get(row[0]) == row}

    def switch_to(self, embedder: EmbedderRow) -> None:
        """Make `embedder`, which has embedded or refused every record, the active one; `drop` then drops the others."""
        self._activate(embedder)
        self._tx.changes.append("reload", 0)
        self._execute("UPDATE record SET embedding_state = 'embedded' WHERE indexed AND embedding_state != 'embedded'")
        self.mark_refused()

    def of_others(self, embedder: EmbedderRow, after: int, limit: int) -> list[int]:
        """The first vectors of other embedders after a row id, ascending."""
        return self._column(
            "SELECT id FROM vector WHERE id > ? AND embedder_id != ? ORDER BY id LIMIT ?", (after, embedder.id, limit)
        )

    def drop(self, ids: Sequence[int], embedder: EmbedderRow) -> None:
        """Drop vectors by row id, unless they are this embedder's; without ids the other embedders themselves."""
        if ids:
            self._execute(
                f"DELETE FROM vector WHERE id {IN_ARRAY} AND embedder_id != ?", (self._id_array(ids), embedder.id)
            )
        else:
            self._execute("DELETE FROM embedder WHERE id != ?", (embedder.id,))

    def start_over(self, embedder: EmbedderRow) -> None:
        """Make `embedder` the active one and drop all others; records without its vectors wait."""
        self._execute("DELETE FROM vector WHERE embedder_id != ?", (embedder.id,))
        self.drop([], embedder)
        self._activate(embedder)
        self._tx.changes.append("reload", 0)
        self._execute(
            "UPDATE record AS r SET embedding_state = 'pending' WHERE embedding_state IN ('embedded', 'refused') "
            f"AND {_WITHOUT}",
            (embedder.id,),
        )

    def unsound(self) -> list[int]:
        """Row ids of the records with a vector of the active embedder that is not finite and of unit length."""
        active = self.active_embedder()
        if active is None:
            return []
        bad: set[int] = set()
        last: Any = self._execute("SELECT coalesce(max(id), 0) FROM vector").get
        for start in range(0, last, 8192):
            rows = self._rows(
                "SELECT record_id, value FROM vector WHERE id > ? AND id <= ? AND embedder_id = ? "
                "AND length(value) = ?",
                (start, start + 8192, active.id, active.vector_bytes),
            )
            bad.update(row[0] for row in rows if not isinstance(row[1], bytes))
            rows = [row for row in rows if isinstance(row[1], bytes)]
            if rows:
                values = as_float32([row[1] for row in rows], active.dimension)
                bad.update(rows[i][0] for i in np.flatnonzero(~_are_unit(values)).tolist())
        return sorted(bad)

    def insert(self, embedder: EmbedderRow, vectors: Sequence[tuple[int, int, bytes, bytes | None]]) -> None:
        """Store (record id, part, float32 bytes, token codes or None) rows."""
        if not vectors:
            return
        ids = self._tx.new_ids("vector", len(vectors))
        as_given = embedder.vector_type == "float32"
        values, codes = [], []
        for vector_id, (row_id, part, value, its_codes) in zip(ids, vectors, strict=True):
            values.append((vector_id, row_id, part, embedder.id, value if as_given else _kept(value, embedder)))
            if its_codes is not None:
                codes.append((vector_id, its_codes))
        self._insert_many("vector", "id, record_id, part, embedder_id, value", values)
        self._insert_many("token_code", "vector_id, codes", codes)

    def convert(self) -> None:
        """Convert the vectors of all embedders to the type that the settings name."""
        for row in self._rows(f"SELECT {_EMBEDDER} FROM embedder WHERE vector_type != ?", (self._tx.vector_type,)):
            last, embedder = 0, EmbedderRow(*row)._replace(vector_type=self._tx.vector_type)
            while rows := self._rows(
                "SELECT id, value FROM vector WHERE id > ? AND embedder_id = ? ORDER BY id LIMIT 2048",
                (last, embedder.id),
            ):
                self._execute_many(
                    "UPDATE vector SET value = ? WHERE id = ?",
                    [(_kept(_float32_bytes(value, embedder.dimension), embedder), row_id) for row_id, value in rows],
                )
                last = rows[-1][0]
            self._execute("UPDATE embedder SET vector_type = ? WHERE id = ?", (embedder.vector_type, embedder.id))

    def has_token_codes(self) -> bool:
        """Whether any vector has token codes."""
        return bool(self._execute("SELECT EXISTS (SELECT 1 FROM token_code)").get)

    def lacking_token_codes(
        self, embedder_id: int, after_id: int, limit: int
    ) -> list[tuple[int, str, str | None, str]]:
        """(row id, text, context, kind) of records above `after_id` with vectors of this embedder but no codes."""
        return self._rows(
            "SELECT r.id, r.text, r.context, r.kind FROM record r WHERE r.id > ? AND EXISTS (SELECT 1 FROM vector v "
            f"WHERE v.record_id = r.id AND v.embedder_id = ? AND {_LACKS}) ORDER BY r.id LIMIT ?",
            (after_id, embedder_id, limit),
        )

    def add_token_codes(self, embedder_id: int, codes: dict[int, tuple[bytes, ...]]) -> int:
        """Add token codes to records that have as many parts as there are codes; returns to how many."""
        changed = []
        for row_id, parts in codes.items():
            vectors = self._rows(
                f"SELECT v.id, {_LACKS} FROM vector v WHERE v.record_id = ? AND v.embedder_id = ? ORDER BY v.part",
                (row_id, embedder_id),
            )
            if len(vectors) == len(parts):
                pairs = zip(vectors, parts, strict=True)
                lacking = [(vector_id, part) for (vector_id, lacks), part in pairs if lacks]
                self._insert_many("token_code", "vector_id, codes", lacking)
                changed.append(row_id)
        self._tx.changes.append_ids("text", changed)
        return len(changed)

    def drop_token_codes(self) -> None:
        """Remove all token codes."""
        if self.has_token_codes():
            self._execute("DELETE FROM token_code")
            self._tx.changes.append("reload", 0)

    def add_refusals(self, embedder_id: int, reasons: Mapping[int, str]) -> None:
        """Note why records were refused; keys are row ids."""
        self._execute_many(
            "INSERT INTO refusal (record_id, embedder_id, reason) VALUES (?, ?, ?) "
            "ON CONFLICT (record_id, embedder_id) DO UPDATE SET reason = excluded.reason",
            [(row_id, embedder_id, reason) for row_id, reason in reasons.items()],
        )

    def mark_refused(self) -> None:
        """Make `refused` the state of the records that the active embedder refused."""
        self._execute(
            "UPDATE record SET embedding_state = 'refused' WHERE id IN (SELECT f.record_id FROM refusal f "
            "JOIN embedder e ON e.id = f.embedder_id AND e.active)"
        )

    def forget_refusals(self, embedder_id: int) -> None:
        """Forget what an embedder refused; the records wait again."""
        self._execute("DELETE FROM refusal WHERE embedder_id = ?", (embedder_id,))
        self._execute(
            "UPDATE record SET embedding_state = 'pending' WHERE embedding_state = 'refused' "
            "AND id NOT IN (SELECT record_id FROM refusal)"
        )

    def count_refused(self, scope: str) -> int:
        """The number of open records of a scope and its descendants that the active embedder refused."""
        visible = self._tx.conditions.in_scopes([scope])
        return self._number(f"SELECT count(*) FROM record r WHERE {_REFUSED} AND {visible.sql}", visible.values)

    def refused(self, scope: str, limit: int) -> list[tuple[str, str | None, str]]:
        """(id, source, reason) of the first open records of a scope that the active embedder refused."""
        visible = self._tx.conditions.in_scopes([scope])
        return self._rows(
            "SELECT r.public_id, o.name, f.reason FROM refusal f JOIN embedder e ON e.id = f.embedder_id AND e.active "
            "JOIN record r ON r.id = f.record_id LEFT JOIN source o ON o.id = r.source_id "
            f"WHERE {_REFUSED} AND {visible.sql} ORDER BY r.id LIMIT ?",
            (*visible.values, limit),
        )


def _are_unit(vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which of some vectors are finite and of unit length."""
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    return np.abs(squares - 1.0) < 1e-3


def _float32_bytes(value: bytes, dimension: int) -> bytes:
    """Return a stored vector as float32; what is no float16 vector, as it is."""
    if not isinstance(value, bytes) or len(value) != 2 * dimension:
        return value
    return np.frombuffer(value, dtype="<f2").astype("<f4").tobytes()


def _kept(value: bytes, embedder: EmbedderRow) -> bytes:
    """Convert float32 bytes to the type of an embedder's stored vectors."""
    if embedder.vector_type == "float32":
        return value
    return np.frombuffer(value, dtype="<f4").astype(embedder.dtype).tobytes()


class EmbeddingCache(Repository):
    """The table `embedding_cache`."""

    def look_up(self, embedder: EmbedderRow, hashes: Sequence[bytes]) -> dict[bytes, Parts]:
        """The vectors of this embedder by content hash, with token codes if they were kept."""
        width = embedder.dimension * 4
        rows = self._rows(
            "SELECT content_hash, parts, codes FROM embedding_cache WHERE embedder_id = ? AND content_hash IN "
            "(SELECT value FROM carray(?))",
            (embedder.id, self._byte_array([*set(hashes)])),
        )
        return {
            content_hash: Parts(
                tuple(parts[begin : begin + width] for begin in range(0, len(parts), width)),
                () if codes is None else msgspec.msgpack.decode(codes, type=tuple[bytes, ...]),
            )
            for content_hash, parts, codes in rows
            if len(parts) % width == 0
        }

    def keep(self, embedder: EmbedderRow, made: Mapping[bytes, Parts], max_entries: int | None) -> None:
        """Add vectors; beyond `max_entries` the least recently used entries are removed."""
        used = self._next_use()
        self._execute_many(
            "INSERT INTO embedding_cache (content_hash, embedder_id, parts, codes, used) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (content_hash, embedder_id) "
            "DO UPDATE SET parts = excluded.parts, codes = excluded.codes, used = excluded.used",
            [
                (key, embedder.id, b"".join(parts.values), msgspec.msgpack.encode(parts.codes) if parts.codes else None,
                 used + i)
                for i, (key, parts) in enumerate(made.items())
            ],
        )  # fmt: skip
        self._trim(max_entries)

    def touch(self, embedder: EmbedderRow, hashes: Iterable[bytes], max_entries: int | None) -> None:
        """Mark entries as just used."""
        used = self._next_use()
        self._execute_many(
            "UPDATE embedding_cache SET used = ? WHERE content_hash = ? AND embedder_id = ?",
            [(used + i, key, embedder.id) for i, key in enumerate(hashes)],
        )
        self._trim(max_entries)

    def clear(self, embedder: EmbedderRow) -> None:
        """Remove the vectors of this embedder."""
        self._execute("DELETE FROM embedding_cache WHERE embedder_id = ?", (embedder.id,))

    def count(self) -> int:
        """The number of entries."""
        return self._number("SELECT count(*) FROM embedding_cache")

    def _next_use(self) -> int:
        return self._number("SELECT coalesce(max(used), 0) + 1 FROM embedding_cache")

    def _trim(self, max_entries: int | None) -> None:
        if max_entries is not None:
            self._execute(
                "DELETE FROM embedding_cache WHERE id IN "
                "(SELECT id FROM embedding_cache ORDER BY used DESC LIMIT ? OFFSET ?)",
                (NO_LIMIT, max_entries),
            )
