"""Vectors measured where they are stored, by the functions that sqlite-vec adds to SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallite.store.sql.vectors import Vectors
from recallite.store.values import EmbedderRow

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Whether a vector is of this many bytes, finite and of unit length: its distance from the origin. The CASE: sqlite-vec
# takes values of other sizes and types for errors.
_SOUND = (
    "CASE WHEN typeof(v.value) = 'blob' AND length(v.value) = {bytes} "
    "THEN abs(vec_distance_L2(v.value, zeroblob({bytes})) - 1) < 5e-4 END"
)


class SqliteVectors(Vectors):
    """The tables of vectors on a connection with sqlite-vec; without it, or for float16, Vectors does the work."""

    def cosines(self, embedder: EmbedderRow, query: NDArray[np.float32], ids: Sequence[int]) -> NDArray[np.float32]:
        if embedder.vector_type != "float32":  # sqlite-vec reads no other
            return super().cosines(embedder, query, ids)
        # Of unit vectors 1 - d * d / 2 is the cosine: at 0.9 and above to 6e-8, where vec_distance_cosine, which adds
        # up in float32, is out by 1.2e-6. In the order of the array: joined and grouped, SQLite would sort the rows.
        distances = self._rows(
            f"SELECT (SELECT min(iif({_SOUND.format(bytes='length(?1)')}, vec_distance_L2(v.value, ?1), NULL)) "
            "FROM vector v WHERE v.record_id = c.value AND v.embedder_id = ?2) FROM carray(?3) c",
            (query.tobytes(), embedder.id, self._id_array(ids)),
        )
        nearest = [0.0 if distance is None else max(-1.0, 1.0 - distance * distance / 2) for (distance,) in distances]
        return np.array(nearest[: len(ids)], dtype=np.float32)

    def unsound(self) -> list[int]:
        active = self.active_embedder()
        if active is None or active.vector_type != "float32":
            return super().unsound()
        return self._column(
            "SELECT DISTINCT v.record_id FROM vector v JOIN embedder e ON e.id = v.embedder_id AND e.active "
            f"WHERE length(v.value) = 4 * e.dimension AND ({_SOUND.format(bytes='4 * e.dimension')}) IS NOT TRUE "
            "ORDER BY v.record_id"
        )
