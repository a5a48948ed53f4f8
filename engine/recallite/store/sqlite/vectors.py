"""Vectors measured where they are stored, by the functions that sqlite-vec adds to SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallite.store.sql.vectors import SqlVectors
from recallite.store.values import EmbedderRow

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SqliteVectors(SqlVectors):
    """The tables of vectors on a connection with sqlite-vec; without it, SqlVectors computes the same in Python."""

    def cosines(self, embedder: EmbedderRow, query: NDArray[np.float32], ids: Sequence[int]) -> NDArray[np.float32]:
        # In the order of the array: joined and grouped, SQLite would sort them. A damaged vector is no error.
        distances = self._rows(
            "SELECT (SELECT min(CASE WHEN typeof(v.value) = 'blob' AND length(v.value) = length(?1) "
            "THEN vec_distance_cosine(v.value, ?1) END) "
            "FROM vector v WHERE v.record_id = c.value AND v.embedder_id = ?2) FROM carray(?3) c",
            (query.tobytes(), embedder.id, self._id_array(ids)),
        )
        nearest: NDArray[np.float32] = 1.0 - np.array(distances, dtype=np.float32)[: len(ids), 0]
        return np.nan_to_num(nearest).clip(-1.0, 1.0)

    def unsound(self) -> list[int]:
        # Its distance from the origin is a vector's length; NULL where it is not finite, or no bytes.
        return self._column(
            "SELECT DISTINCT v.record_id FROM vector v JOIN embedder e ON e.id = v.embedder_id AND e.active "
            "WHERE CASE WHEN length(v.value) != 4 * e.dimension THEN true WHEN typeof(v.value) = 'blob' "
            "THEN abs(vec_distance_L2(v.value, zeroblob(4 * e.dimension)) - 1) < 5e-4 END IS NOT TRUE "
            "ORDER BY v.record_id"
        )

    def mispacked(self) -> list[int]:
        # sqlite-vec owes nothing to the kernel that made the sketches and makes them again. They have whole words.
        stale = self._column(
            "SELECT v.record_id FROM vector v JOIN embedder e ON e.id = v.embedder_id "
            "JOIN vector_packed p ON p.id = v.id "
            "WHERE CASE WHEN typeof(v.value) = 'blob' AND length(v.value) = 4 * e.dimension "
            "THEN substr(p.value, 17, (e.dimension + 63) / 64 * 8) IS NOT "
            "vec_quantize_binary(CAST(v.value || zeroblob((-e.dimension & 63) * 4) AS BLOB)) END"
        )
        return sorted({*super().mispacked(), *stale})
