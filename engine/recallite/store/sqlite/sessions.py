"""The words of messages, in SQLite's full-text search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from recallite.store.rows import read_rows
from recallite.store.sql.conditions import Condition
from recallite.store.sql.sessions import Sessions
from recallite.store.sqlite.full_text import Table, bm25
from recallite.text.index_terms import tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
