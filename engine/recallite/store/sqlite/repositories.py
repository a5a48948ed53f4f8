"""Repositories that SQLite keeps in its own way: keys of statements, words of messages, vectors, the index snapshot."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recallite.store.rows import read_rows
from recallite.store.sql.conditions import Condition
from recallite.store.sql.meta import IndexSnapshot
from recallite.store.sql.sessions import Sessions
from recallite.store.sql.statements import NEWEST_OF_A_KEY, KeysOf, Statements
from recallite.store.sql.vectors import Vectors
from recallite.store.sqlite.files import part_of_snapshot, snapshot_of
from recallite.store.sqlite.full_text import Table, bm25
from recallite.store.sqlite.key_lists import KeyLists
from recallite.store.values import EmbedderRow
from recallite.text.words import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.store.sqlite.transaction import SqliteTransaction


class SqliteStatements(Statements):
    """The table `statement` and the lists of its keys."""

    def __init__(self, transaction: SqliteTransaction) -> None:
        super().__init__(transaction)
        self._lists = KeyLists(transaction, "statement")

    def listed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._lists.all()

    def clear(self) -> None:
        self._lists.clear()

    def _list(self, rows: Sequence[KeysOf]) -> None:
        self._lists.add(rows)

    def _unlist(self, rows: Sequence[KeysOf], *, erase: bool) -> None:
        self._lists.remove(rows, erase=erase)

    def _newest(self, keys: Collection[int]) -> dict[int, list[int]]:
        return self._lists.newest(keys, NEWEST_OF_A_KEY) if keys else {}


_MESSAGES = Table("session_fts", "session_message m JOIN session s ON s.id = m.session_id", "m.id")


class _Message(NamedTuple):
    id: int
    content: str


class SqliteSessions(Sessions):
    """The tables of sessions, with `session_fts`."""

    _message_bytes = "CAST(m.message AS BLOB)"

    def rebuild_words(self) -> None:
        """Fill the empty full-text table with the words of all messages."""
        rows = read_rows(self._execute("SELECT id, content FROM session_message"), _Message, "message")
        self._insert_many(
            "session_fts",
            "rowid, words",
            [(row_id, " ".join(tokenize(content))) for row_id, content in rows],
        )

    def _ranked(self, words: Sequence[str], part: Condition | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return bm25(self._tx.connection, _MESSAGES, words, part)  # type: ignore[arg-type]

    def _put_words(self, message_id: int, words: Sequence[str]) -> None:
        self._execute("INSERT INTO session_fts (rowid, words) VALUES (?, ?)", (message_id, " ".join(words)))

    def _drop_words(self, condition: str, values: tuple[Any, ...]) -> None:
        self._execute(
            f"DELETE FROM session_fts WHERE rowid IN (SELECT id FROM session_message WHERE {condition})", values
        )


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


class SqliteIndexSnapshot(IndexSnapshot):
    """The token in `meta`, and the file beside the database, `<database>-index`.

    The store keeps a random token of the snapshot that was last written. A store that has the token contains the
    snapshot's commit, so the change feed leads from there to now; a copy or a restored backup that diverged has another
    token or none.
    """

    @property
    def _filename(self) -> str:
        filename: str = self._tx.connection.filename  # type: ignore[attr-defined]
        return filename

    def discard(self) -> None:
        super().discard()
        if self._filename:
            for path in (snapshot_of(self._filename), part_of_snapshot(self._filename)):
                with suppress(OSError):
                    os.unlink(path)
