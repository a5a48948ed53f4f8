"""The words of messages, found by a GIN index and weighed by BM25."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recallite.store.sql.conditions import Condition
from recallite.store.sql.sessions import Sessions
from recallite.text.index_terms import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

# As FTS5 of SQLite has them.
_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6
_FROM = "FROM session_words w JOIN session_message m ON m.id = w.message_id JOIN session s ON s.id = m.session_id"


class PostgresSessions(Sessions):
    """The tables of sessions, with `session_words`."""

    _message_bytes = "convert_to(m.message, 'UTF8')"

    def rebuild_words(self) -> None:
        """Fill the empty table with the words of all messages."""
        for message_id, content in self._rows("SELECT id, content FROM session_message"):
            self._put_words(message_id, tokenize(content))

    def _ranked(self, words: Sequence[str], part: Condition | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        chosen, values = ("true", ()) if part is None else (part.sql, part.values)
        records, total = self._execute(
            f"SELECT count(*), CAST(coalesce(sum(cardinality(w.words)), 0) AS BIGINT) {_FROM} WHERE {chosen}", values
        ).fetchone()
        found = self._rows(
            f"SELECT m.id, w.words {_FROM} WHERE w.words && ? AND {chosen} ORDER BY m.id", ([*words], *values)
        )
        rows = np.array([row[0] for row in found], dtype=np.int64)
        scores = np.zeros(len(rows))
        if len(rows):
            counts = [Counter(row[1]) for row in found]
            lengths = np.array([len(row[1]) for row in found], dtype=np.float64)
            for word in words:
                each = np.array([count[word] for count in counts], dtype=np.float64)
                holders = int(np.count_nonzero(each))
                idf = math.log((records - holders + 0.5) / (holders + 0.5))
                weight = idf if idf > 0 else _LEAST_IDF
                scores += weight * ((each * (_K1 + 1.0)) / (each + _K1 * (1 - _B + _B * lengths / (total / records))))
        return rows, scores

    def _put_words(self, message_id: int, words: Sequence[str]) -> None:
        self._execute("INSERT INTO session_words VALUES (?, ?)", (message_id, [*words]))

    def _drop_words(self, chosen: str, values: tuple[Any, ...]) -> None:
        """They follow the message by foreign key."""
