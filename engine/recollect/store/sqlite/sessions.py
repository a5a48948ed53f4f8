"""Sessions, their messages and snapshots, in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from recollect.store.rows import read_row, read_rows
from recollect.store.sqlite.conditions import Condition
from recollect.store.sqlite.full_text import Table, bm25
from recollect.store.sqlite.repository import Repository, id_array
from recollect.store.sqlite.service_schema import SESSION_UPDATED
from recollect.store.values import FoundMessage, SessionRow, SnapshotRow
from recollect.text.tokens import tokenize

_MESSAGES = Table("session_fts", "session_message m JOIN session s ON s.id = m.session_id", "m.id")

_SESSION = (
    "SELECT s.id, s.name, p.path, s.provider, (SELECT count(*) FROM session_message m WHERE m.session_id = s.id), "
    f"s.created_at, {SESSION_UPDATED} AS updated_at FROM session s JOIN scope p ON p.id = s.scope_id"
)

_SNAPSHOT = (
    "SELECT t.public_id, p.path, t.session, t.messages, t.summary, t.key_decisions, t.task_ids, t.started_at, "
    "t.ended_at, t.total_cost, t.total_tokens FROM session_snapshot t JOIN scope p ON p.id = t.scope_id"
)


class _Message(NamedTuple):
    id: int
    content: str


class SqliteSessions(Repository):
    """The tables of sessions."""

    def find(self, scope: str, name: str) -> SessionRow | None:
        row: Any = self._execute(f"{_SESSION} WHERE p.path = ? AND s.name = ?", (scope, name)).fetchone()
        return None if row is None else read_row(row, SessionRow, "session")

    def find_id(self, scope: str, name: str) -> int | None:
        found: Any = self._execute(
            "SELECT s.id FROM session s JOIN scope p ON p.id = s.scope_id WHERE p.path = ? AND s.name = ?",
            (scope, name),
        ).get
        return None if found is None else int(found)

    def create(self, scope: str, name: str, provider: str | None, now: int) -> None:
        self._execute(
            "INSERT INTO session (scope_id, name, provider, created_at) VALUES (?, ?, ?, ?)",
            (self._tx.scopes.id_of(scope), name, provider, now),
        )

    def set_provider(self, session_id: int, provider: str) -> None:
        self._execute("UPDATE session SET provider = ? WHERE id = ?", (provider, session_id))

    def listed(self, scope: str, *, limit: int | None = None) -> list[SessionRow]:
        condition, bound = within(scope)
        rows = self._rows(
            f"{_SESSION} WHERE {condition} ORDER BY updated_at DESC, s.id DESC LIMIT ?",
            (*bound, -1 if limit is None else limit),
        )
        return read_rows(rows, SessionRow, "session")

    def unused_since(self, scope: str, moment: int | None) -> list[int]:
        condition, bound = within(scope)
        return self._column(
            f"SELECT s.id FROM session s JOIN scope p ON p.id = s.scope_id WHERE {condition} "
            f"AND (? IS NULL OR {SESSION_UPDATED} < ?)",
            (*bound, moment, moment),
        )

    def append(
        self, session_id: int, rows: Sequence[tuple[str | None, str, str, Sequence[str]]], created_at: int
    ) -> int:
        position: int = self._execute(
            "SELECT coalesce(max(position) + 1, 0) FROM session_message WHERE session_id = ?", (session_id,)
        ).get
        for place, (role, content, message, words) in enumerate(rows):
            self._execute(
                "INSERT INTO session_message (session_id, position, role, content, message, created_at) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (session_id, position + place, role, content, message, created_at),
            )
            self._execute(
                "INSERT INTO session_fts (rowid, words) VALUES (?, ?)",
                (self._connection.last_insert_rowid(), " ".join(words)),
            )
        return position

    def remove_from(self, session_id: int, position: int) -> int:
        self._execute(
            "DELETE FROM session_fts WHERE rowid IN (SELECT id FROM session_message "
            "WHERE session_id = ? AND position >= ?)",
            (session_id, position),
        )
        self._execute("DELETE FROM session_message WHERE session_id = ? AND position >= ?", (session_id, position))
        return self._connection.changes()

    def messages(
        self, session_id: int, *, limit: int | None = None, before: int | None = None
    ) -> list[tuple[int, bytes]]:
        rows = self._rows(
            "SELECT CAST(position AS INTEGER), CAST(message AS BLOB) FROM session_message WHERE session_id = ? "
            "AND (? IS NULL OR session_message.position < ?) ORDER BY session_message.position DESC LIMIT ?",
            (session_id, before, before, -1 if limit is None else limit),
        )
        return list(reversed(rows))

    def delete(self, session_ids: Sequence[int]) -> None:
        ids = id_array(session_ids)
        self._execute(
            "DELETE FROM session_fts WHERE rowid IN (SELECT id FROM session_message "
            "WHERE session_id IN (SELECT value FROM carray(?)))",
            (ids,),
        )
        self._execute("DELETE FROM session WHERE id IN (SELECT value FROM carray(?))", (ids,))

    def search(self, scope: str, words: Sequence[str], limit: int) -> list[FoundMessage]:
        condition, bound = within(scope)
        part = None if scope == "/" else Condition(f"s.scope_id IN (SELECT id FROM scope WHERE {condition})", bound)
        matching, scores = bm25(self._connection, _MESSAGES, words, part)
        best = np.lexsort((-matching, -scores))[:limit]
        rows = self._rows(
            "SELECT m.id, s.name, p.path, m.position, m.role, m.content, m.created_at FROM session_message m "
            "JOIN session s ON s.id = m.session_id JOIN scope p ON p.id = s.scope_id "
            "WHERE m.id IN (SELECT value FROM carray(?))",
            (id_array(matching[best]),),
        )
        found = {row_id: message for row_id, *message in rows}
        ranked = zip(matching[best].tolist(), scores[best].tolist(), strict=True)
        listed = [(*found[row_id], score) for row_id, score in ranked if row_id in found]
        return read_rows(listed, FoundMessage, "a message of session")

    def put_snapshot(self, row: SnapshotRow) -> None:
        self._execute(
            "INSERT INTO session_snapshot (public_id, scope_id, session, messages, summary, key_decisions, task_ids, "
            "started_at, ended_at, total_cost, total_tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row.public_id, self._tx.scopes.id_of(row.scope), *row[2:]),
        )

    def snapshots(self, scope: str, limit: int) -> list[SnapshotRow]:
        condition, bound = within(scope)
        rows = self._rows(f"{_SNAPSHOT} WHERE {condition} ORDER BY t.ended_at DESC, t.id DESC LIMIT ?", (*bound, limit))
        return read_rows(rows, SnapshotRow, "snapshot")

    def rebuild_words(self) -> None:
        """Fill the empty full-text table with the words of all messages."""
        rows = read_rows(self._execute("SELECT id, content FROM session_message"), _Message, "message")
        self._execute_many(
            "INSERT INTO session_fts (rowid, words) VALUES (?, ?)",
            [(row_id, " ".join(tokenize(content))) for row_id, content in rows],
        )


def within(scope: str) -> tuple[str, tuple[str, ...]]:
    """The condition on `path` that holds for a scope and its descendants, and what it binds."""
    if scope == "/":
        return "1", ()
    return "(path = ? OR (path >= ? AND path < ?))", (scope, scope + "/", scope + "0")
