"""The words of messages, found by a GIN index and weighed by BM25."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recallite.store.sql.conditions import Condition
from recallite.store.sql.sessions import Sessions, bm25
from recallite.text.index_terms import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

    def _drop_words(self, condition: str, values: tuple[Any, ...]) -> None:
        """They follow the message by foreign key."""
