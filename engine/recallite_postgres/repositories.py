"""Repositories that PostgreSQL keeps in its own way; those of a tenant have nothing that belongs to no scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from recallite.errors import Conflict
from recallite.store.columns import RowColumns
from recallite.store.sql.conditions import Condition
from recallite.store.sql.embedding_cache import EmbeddingCache
from recallite.store.sql.lexicon import Lexicon
from recallite.store.sql.records import Records
from recallite.store.sql.sessions import Sessions, bm25
from recallite.store.sql.vectors import Vectors
from recallite.store.values import EmbedderRow, Parts
from recallite.system.messages import shown
from recallite.text.index_terms import tokenize

if TYPE_CHECKING:
    from recallite_postgres.transaction import PostgresTransaction

# As a join with the array, a table without statistics was read whole.
BY_TEXT = "SELECT id, text_key FROM record WHERE text_key = ANY (?) AND recorded_until IS NULL"


class PostgresRecords(Records):
    """The table `record`."""

    def _insert_rows(
        self, ids: Sequence[int], rows: RowColumns, scopes: Sequence[int], sources: Sequence[int | None]
    ) -> None:
        try:
            super()._insert_rows(ids, rows, scopes, sources)
        except psycopg.errors.UniqueViolation as fault:
            if fault.diag.constraint_name != "record_public_id":
                raise
            # Of a memory that a tenant does not see. Which one the server tells to nobody but the owner.
            named = shown(rows.public_id[0]) if len(rows) == 1 else "of a memory"
            raise Conflict(f"the id {named} is taken by a memory outside this scope: give another") from None

    def put_tags(self, tagged: Sequence[tuple[int, tuple[str, ...]]]) -> None:
        super().put_tags(tagged)
        self._note_tags([record_id for record_id, tags in tagged if tags])

    def _note_tags(self, record_ids: Sequence[int]) -> None:
        """Note of the scopes of records which tags are in them."""
        if record_ids:
            self._execute("SELECT note_tags(?)", (self._id_array(record_ids),))

    def ids_by_text(self, keys: Sequence[bytes]) -> dict[int, bytes]:
        return {record_id: bytes(key) for record_id, key in self._rows(BY_TEXT, (self._byte_array(keys),))}

    def change_columns(self, record_id: int, columns: dict[str, Any], tags: tuple[str, ...] | None) -> None:
        super().change_columns(record_id, columns, tags)
        if "scope" in columns:
            self._note_tags([record_id])


_FROM = "FROM session_words w JOIN session_message m ON m.id = w.message_id JOIN session s ON s.id = m.session_id"


class PostgresSessions(Sessions):
    """The tables of sessions, with `session_words`."""

    _message_bytes = "convert_to(m.message, 'UTF8')"

    def rebuild_words(self) -> None:
        """Fill the empty table with the words of all messages."""
        for message_id, content in self._rows("SELECT id, content FROM session_message"):
            self._put_words(message_id, tokenize(content))

    def _ranked(self, words: Sequence[str], part: Condition | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        condition, values = ("true", ()) if part is None else (part.sql, part.values)
        records, total = self._execute(
            f"SELECT count(*), CAST(coalesce(sum(cardinality(w.words)), 0) AS BIGINT) {_FROM} WHERE {condition}", values
        ).fetchone()
        messages = self._rows(
            f"SELECT m.id, w.words {_FROM} WHERE w.words && ? AND {condition} ORDER BY m.id", ([*words], *values)
        )
        counters = [Counter(row[1]) for row in messages]
        counts = [np.array([counter[word] for counter in counters], dtype=np.float64) for word in words]
        lengths = np.array([len(row[1]) for row in messages], dtype=np.float64)
        return np.array([row[0] for row in messages], dtype=np.int64), bm25(counts, lengths, records, total)

    def _put_words(self, message_id: int, words: Sequence[str]) -> None:
        self._execute("INSERT INTO session_words VALUES (?, ?)", (message_id, [*words]))


class ConfinedLexicon(Lexicon):
    """Words, of which a tenant learns the numbers and cannot list them."""

    def size(self) -> int | None:
        return None

    def lookup(self, words: Sequence[str]) -> dict[str, int]:
        return dict(self._execute("SELECT text, id FROM numbered_words(?)", (self._array(words),))) if words else {}


class PostgresVectors(Vectors):
    """The tables of vectors; a writer that brings the first embedder waits for another that does so too."""

    _tx: PostgresTransaction

    def register_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        if self.active_embedder() is None:
            self._tx.lock(["the first embedder"], wait=True)
            if self._tx.confined:  # a tenant may name the first, and no other
                self._execute(
                    "SELECT name_first_embedder(?, ?, ?, ?)", (fingerprint, name, dimension, self._tx.vector_type)
                )
        return super().register_embedder(fingerprint=fingerprint, name=name, dimension=dimension)

    def none_left(self) -> bool:
        return not self._tx.confined and super().none_left()  # a tenant does not see the vectors of others


class ConfinedCache(EmbeddingCache):
    """No cache: a vector that is there would tell that another has its text, and one could be put there for others."""

    def look_up(self, embedder: EmbedderRow, hashes: Sequence[bytes]) -> dict[bytes, Parts]:
        return {}

    def keep(self, embedder: EmbedderRow, made: Mapping[bytes, Parts], max_entries: int | None) -> None:
        pass

    def touch(self, embedder: EmbedderRow, hashes: Iterable[bytes], max_entries: int | None) -> None:
        pass

    def count(self) -> int:
        return 0
