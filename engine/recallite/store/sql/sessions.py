"""Sessions, their messages and snapshots."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.store.rows import read_row, read_rows
from recallite.store.service_rows import FoundMessage, SessionRow, SnapshotRow
from recallite.store.sql.conditions import Condition
from recallite.store.sql.repository import IN_ARRAY, NO_LIMIT, Repository, within
from recallite.text.words import tokenize

# FTS5's parameters of BM25.
_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6

SESSION_UPDATED = (
    "coalesce((SELECT m.created_at FROM session_message m WHERE m.session_id = s.id ORDER BY m.position DESC LIMIT 1), "
    "s.created_at)"
)
"""The time when the session `s` was last used, as SQL."""

_SESSION = (
    "SELECT s.id, s.name, p.path, s.provider, (SELECT count(*) FROM session_message m WHERE m.session_id = s.id), "
    f"s.created_at, {SESSION_UPDATED} AS updated_at FROM session s JOIN scope p ON p.id = s.scope_id"
)

_SNAPSHOT = (
    "SELECT t.public_id, p.path, t.session, t.messages, t.summary, t.key_decisions, t.task_ids, t.started_at, "
    "t.ended_at, t.total_cost, t.total_tokens FROM session_snapshot t JOIN scope p ON p.id = t.scope_id"
)


def bm25(
    counts: Iterable[NDArray[np.float64]], lengths: NDArray[np.float64], messages: int, words: int
) -> NDArray[np.float64]:
    """The BM25 of texts of these lengths, higher is better: `counts` say how often each has each word sought.

    They are among `messages` texts with `words` words in all. Over a whole table the scores are those of FTS5's
    `bm25()` to the last bit.
    """
    scores = np.zeros(len(lengths))
    for count in counts if len(lengths) else ():
        holders = int(np.count_nonzero(count))
        idf = math.log((messages - holders + 0.5) / (holders + 0.5))
        weight = idf if idf > 0 else _LEAST_IDF
        scores += weight * ((count * (_K1 + 1.0)) / (count + _K1 * (1 - _B + _B * lengths / (words / messages))))
    return scores


class Sessions(Repository):
    """The tables of sessions; how words are kept and searched is each database's own."""

    # SQL for the bytes of the text `m.message`.
    _message_bytes: str

    def find(self, scope: str, name: str) -> SessionRow | None:
        """The session of this name in exactly this scope."""
        row: Any = self._execute(f"{_SESSION} WHERE p.path = ? AND s.name = ?", (scope, name)).fetchone()
        return None if row is None else read_row(row, SessionRow, "session")

    def find_id(self, scope: str, name: str) -> int | None:
        """The row id of the session of this name in exactly this scope."""
        session_id: Any = self._execute(
            "SELECT s.id FROM session s JOIN scope p ON p.id = s.scope_id WHERE p.path = ? AND s.name = ?",
            (scope, name),
        ).get
        return None if session_id is None else int(session_id)

    def create(self, scope: str, name: str, provider: str | None, now: int) -> None:
        """Add an empty session."""
        self._execute(
            "INSERT INTO session (scope_id, name, provider, created_at) VALUES (?, ?, ?, ?)",
            (self._tx.scopes.id_of(scope), name, provider, now),
        )

    def set_provider(self, session_id: int, provider: str) -> None:
        """Set the provider of a session."""
        self._execute("UPDATE session SET provider = ? WHERE id = ?", (provider, session_id))

    def listed(self, scope: str, *, limit: int | None = None) -> list[SessionRow]:
        """The sessions of a scope and its descendants, last used first."""
        condition, bound = within(scope)
        rows = self._rows(
            f"{_SESSION} WHERE {condition} ORDER BY updated_at DESC, s.id DESC LIMIT ?",
            (*bound, NO_LIMIT if limit is None else limit),
        )
        return read_rows(rows, SessionRow, "session")

    def unused_since(self, scope: str, moment: int | None) -> list[int]:
        """Row ids of the sessions of a scope and its descendants that were not used since `moment` (None: all)."""
        condition, bound = within(scope)
        return self._column(
            f"SELECT s.id FROM session s JOIN scope p ON p.id = s.scope_id WHERE {condition} AND {SESSION_UPDATED} < ?",
            (*bound, NO_LIMIT if moment is None else moment),
        )

    def append(
        self, session_id: int, rows: Sequence[tuple[str | None, str, str, Sequence[str]]], created_at: int
    ) -> int:
        """Append messages (role, content, message as JSON, words of the content); returns the first's position."""
        position: int = self._execute(
            "SELECT coalesce(max(position) + 1, 0) FROM session_message WHERE session_id = ?", (session_id,)
        ).get
        for place, (role, content, message, words) in enumerate(rows):
            message_id: int = self._execute(
                "INSERT INTO session_message (session_id, position, role, content, message, created_at) "
                "VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
                (session_id, position + place, role, content, message, created_at),
            ).get
            self._put_words(message_id, words)
        return position

    def remove_from(self, session_id: int, position: int) -> int:
        """Purge the messages of a session from this position on; returns how many."""
        condition = "session_id = ? AND position >= ?"
        self._drop_words(condition, (session_id, position))
        self._execute(f"DELETE FROM session_message WHERE {condition}", (session_id, position))
        return self._connection.changes()

    def messages(
        self, session_id: int, *, limit: int | None = None, before: int | None = None
    ) -> list[tuple[int, bytes]]:
        """Position and JSON of the messages of a session in order; with a limit, of the last ones.

        With `before`, of those before this position.

        JSON as bytes: one message that is not UTF-8 must not make the others unreadable.
        """
        rows = self._rows(
            f"SELECT CAST(m.position AS BIGINT), {self._message_bytes} FROM session_message m WHERE m.session_id = ? "
            "AND m.position < ? ORDER BY m.position DESC LIMIT ?",
            (session_id, NO_LIMIT if before is None else before, NO_LIMIT if limit is None else limit),
        )
        return list(reversed(rows))

    def delete(self, session_ids: Sequence[int]) -> None:
        """Purge sessions with their messages and words."""
        self._drop_words(f"session_id {IN_ARRAY}", (self._id_array(session_ids),))
        self._execute(f"DELETE FROM session WHERE id {IN_ARRAY}", (self._id_array(session_ids),))

    def search(self, scope: str, words: Sequence[str], limit: int) -> list[FoundMessage]:
        """The messages of a scope and its descendants with any of `words`, by BM25 within that scope, best first."""
        condition, bound = within(scope)
        part = None if scope == "/" else Condition(f"s.scope_id IN (SELECT id FROM scope WHERE {condition})", bound)
        matching, scores = self._ranked(words, part)
        best = np.lexsort((-matching, -scores))[:limit]
        rows = self._rows(
            "SELECT m.id, s.name, p.path, m.position, m.role, m.content, m.created_at FROM session_message m JOIN "
            f"session s ON s.id = m.session_id JOIN scope p ON p.id = s.scope_id WHERE m.id {IN_ARRAY}",
            (self._id_array(matching[best]),),
        )
        messages = {row_id: message for row_id, *message in rows}
        ranked = zip(matching[best].tolist(), scores[best].tolist(), strict=True)
        listed = [(*messages[row_id], score) for row_id, score in ranked if row_id in messages]
        return read_rows(listed, FoundMessage, "a message of session")

    def put_snapshot(self, row: SnapshotRow) -> None:
        """Store a snapshot."""
        self._execute(
            "INSERT INTO session_snapshot (public_id, scope_id, session, messages, summary, key_decisions, task_ids, "
            "started_at, ended_at, total_cost, total_tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row.public_id, self._tx.scopes.id_of(row.scope), *row[2:]),
        )

    def snapshots(self, scope: str, limit: int) -> list[SnapshotRow]:
        """The snapshots of a scope and its descendants, newest first."""
        condition, bound = within(scope)
        rows = self._rows(f"{_SNAPSHOT} WHERE {condition} ORDER BY t.ended_at DESC, t.id DESC LIMIT ?", (*bound, limit))
        return read_rows(rows, SnapshotRow, "snapshot")

    def add_words(self, messages: Sequence[tuple[int, str]]) -> None:
        """Keep the words of messages, given as row id and content."""
        for message_id, content in messages:
            self._put_words(message_id, tokenize(content))

    def drop_all_words(self) -> None:
        """Drop the words of all messages, before they are deleted."""
        self._drop_words("true", ())

    @abstractmethod
    def _ranked(self, words: Sequence[str], part: Condition | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The messages with any of `words` where `part` is true (None: all), ascending, and their BM25."""

    @abstractmethod
    def _put_words(self, message_id: int, words: Sequence[str]) -> None:
        """Keep the words of a message."""

    def _drop_words(self, condition: str, values: tuple[Any, ...]) -> None:
        """Drop the words of the messages that a condition chooses before they are deleted, if they do not follow."""
