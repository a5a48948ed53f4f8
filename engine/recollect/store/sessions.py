"""Sessions, their messages and snapshots. Every function runs inside `Store.read()` or `Store.atomic()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np

from recollect.store.arrays import id_array
from recollect.store.conditions import Condition
from recollect.store.full_text import Table, tally
from recollect.store.rows import Moment, read_row, read_rows
from recollect.store.service_schema import SESSION_UPDATED
from recollect.text.tokens import tokenize

__all__ = [
    "FoundMessage",
    "SessionRow",
    "SnapshotRow",
    "append",
    "create",
    "delete",
    "find",
    "find_id",
    "in_scopes",
    "last_snapshot",
    "messages",
    "put_snapshot",
    "rebuild_words",
    "search",
    "set_provider",
    "snapshots",
    "unused_since",
    "within",
]

_MESSAGES = Table("session_fts", "session_message m JOIN session s ON s.id = m.session_id", "m.id")
_WITHIN = "(path = ? OR (path >= ? AND path < ?))"


class SessionRow(NamedTuple):
    """A session as it is listed; times in microseconds."""

    row_id: int
    name: str
    scope: str
    provider: str | None
    messages: int
    created_at: Moment
    updated_at: Moment


class FoundMessage(NamedTuple):
    """A message that a search found; a higher score is better."""

    session: str
    scope: str
    position: int
    role: str
    content: str
    created_at: Moment
    score: float


class SnapshotRow(NamedTuple):
    """A snapshot as it is stored: lists are JSON."""

    public_id: str
    scope: str
    session: str | None
    messages: str
    summary: str
    key_decisions: str
    task_ids: str
    started_at: Moment | None
    ended_at: Moment
    total_cost: float
    total_tokens: int


_SESSION = (
    "SELECT s.id, s.name, p.path, s.provider, (SELECT count(*) FROM session_message m WHERE m.session_id = s.id), "
    f"s.created_at, {SESSION_UPDATED} AS updated_at FROM session s JOIN scope p ON p.id = s.scope_id"
)
_SNAPSHOT = (
    "SELECT t.public_id, p.path, t.session, t.messages, t.summary, t.key_decisions, t.task_ids, t.started_at, "
    "t.ended_at, t.total_cost, t.total_tokens FROM session_snapshot t JOIN scope p ON p.id = t.scope_id"
)


def within(scope: str) -> tuple[str, tuple[str, ...]]:
    """The condition on `path` that holds for a scope and its descendants, and what it binds."""
    if scope == "/":
        return "1", ()
    return _WITHIN, (scope, scope + "/", scope + "0")


def find(connection: apsw.Connection, scope: str, name: str) -> SessionRow | None:
    """The session of this name in exactly this scope."""
    row: Any = connection.execute(f"{_SESSION} WHERE p.path = ? AND s.name = ?", (scope, name)).fetchone()
    return None if row is None else read_row(row, SessionRow, "session")


def find_id(connection: apsw.Connection, scope: str, name: str) -> int | None:
    """The row id of the session of this name in exactly this scope."""
    found: Any = connection.execute(
        "SELECT s.id FROM session s JOIN scope p ON p.id = s.scope_id WHERE p.path = ? AND s.name = ?", (scope, name)
    ).get
    return None if found is None else int(found)


def create(connection: apsw.Connection, scope_id: int, name: str, provider: str | None, now: int) -> None:
    """Add a session without messages."""
    connection.execute(
        "INSERT INTO session (scope_id, name, provider, created_at) VALUES (?, ?, ?, ?)",
        (scope_id, name, provider, now),
    )


def set_provider(connection: apsw.Connection, session_id: int, provider: str) -> None:
    """Note who answers in a session from now on."""
    connection.execute("UPDATE session SET provider = ? WHERE id = ?", (provider, session_id))


def in_scopes(connection: apsw.Connection, scope: str, *, limit: int | None = None) -> list[SessionRow]:
    """The sessions of a scope and its descendants, lately used first."""
    condition, bound = within(scope)
    rows: Any = connection.execute(
        f"{_SESSION} WHERE {condition} ORDER BY updated_at DESC, s.id DESC LIMIT ?",
        (*bound, -1 if limit is None else limit),
    )
    return read_rows(rows, SessionRow, "session")


def unused_since(connection: apsw.Connection, scope: str, moment: int | None) -> list[int]:
    """The row ids of the sessions of a scope and its descendants that were not used since; all of them for None."""
    condition, bound = within(scope)
    rows: Any = connection.execute(
        f"SELECT s.id FROM session s JOIN scope p ON p.id = s.scope_id WHERE {condition} "
        f"AND (? IS NULL OR {SESSION_UPDATED} < ?)",
        (*bound, moment, moment),
    )
    return [row[0] for row in rows]


def append(
    connection: apsw.Connection,
    session_id: int,
    rows: Sequence[tuple[str, str, str, Sequence[str]]],
    created_at: int,
) -> int:
    """Add messages (role, content, message as JSON, words of the content) at the end; returns the first's position."""
    position: int = connection.execute(
        "SELECT coalesce(max(position) + 1, 0) FROM session_message WHERE session_id = ?", (session_id,)
    ).get
    for place, (role, content, message, words) in enumerate(rows):
        connection.execute(
            "INSERT INTO session_message (session_id, position, role, content, message, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (session_id, position + place, role, content, message, created_at),
        )
        connection.execute(
            "INSERT INTO session_fts (rowid, words) VALUES (?, ?)", (connection.last_insert_rowid(), " ".join(words))
        )
    return position


def messages(connection: apsw.Connection, session_id: int, *, limit: int | None = None) -> list[tuple[int, bytes]]:
    """Position and JSON text of a session's messages in order; with a limit, the last of them.

    The text is bytes, as one that is not UTF-8 would end the reading of all.
    """
    rows: Any = connection.execute(
        "SELECT CAST(position AS INTEGER), CAST(message AS BLOB) FROM session_message WHERE session_id = ? "
        "ORDER BY session_message.position DESC LIMIT ?",
        (session_id, -1 if limit is None else limit),
    ).fetchall()
    return list(reversed(rows))


def delete(connection: apsw.Connection, session_ids: Sequence[int]) -> None:
    """Purge sessions with their messages and words."""
    ids = id_array(session_ids)
    connection.execute(
        "DELETE FROM session_fts WHERE rowid IN (SELECT id FROM session_message "
        "WHERE session_id IN (SELECT value FROM carray(?)))",
        (ids,),
    )
    connection.execute("DELETE FROM session WHERE id IN (SELECT value FROM carray(?))", (ids,))


def search(connection: apsw.Connection, scope: str, words: Sequence[str], limit: int) -> list[FoundMessage]:
    """The messages of a scope and its descendants that hold any of `words`, by their BM25 there, best first."""
    condition, bound = within(scope)
    part = None if scope == "/" else Condition(f"s.scope_id IN (SELECT id FROM scope WHERE {condition})", bound)
    held = tally(connection, _MESSAGES, words, part)
    best = np.lexsort((-held.rows, -held.scores))[:limit]
    rows: Any = connection.execute(
        "SELECT m.id, s.name, p.path, m.position, m.role, m.content, m.created_at FROM session_message m "
        "JOIN session s ON s.id = m.session_id JOIN scope p ON p.id = s.scope_id "
        "WHERE m.id IN (SELECT value FROM carray(?))",
        (id_array(held.rows[best]),),
    )
    found = {row_id: message for row_id, *message in rows}
    ranked = zip(held.rows[best].tolist(), held.scores[best].tolist(), strict=True)
    listed = [(*found[row_id], score) for row_id, score in ranked if row_id in found]
    return read_rows(listed, FoundMessage, "a message of session")


def put_snapshot(connection: apsw.Connection, scope_id: int, row: SnapshotRow) -> None:
    """Store a snapshot."""
    connection.execute(
        "INSERT INTO session_snapshot (public_id, scope_id, session, messages, summary, key_decisions, task_ids, "
        "started_at, ended_at, total_cost, total_tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (row.public_id, scope_id, *row[2:]),
    )


def last_snapshot(connection: apsw.Connection, scope: str) -> SnapshotRow | None:
    """The snapshot of a scope and its descendants that ended last."""
    found = snapshots(connection, scope, 1)
    return found[0] if found else None


def snapshots(connection: apsw.Connection, scope: str, limit: int) -> list[SnapshotRow]:
    """The snapshots of a scope and its descendants, the last first."""
    condition, bound = within(scope)
    rows: Any = connection.execute(
        f"{_SNAPSHOT} WHERE {condition} ORDER BY t.ended_at DESC, t.id DESC LIMIT ?", (*bound, limit)
    )
    return read_rows(rows, SnapshotRow, "snapshot")


def rebuild_words(connection: apsw.Connection) -> None:
    """Make the words of all messages afresh, into an empty table."""
    rows: Any = connection.execute("SELECT id, content FROM session_message")
    connection.executemany(
        "INSERT INTO session_fts (rowid, words) VALUES (?, ?)",
        [(row_id, " ".join(tokenize(content))) for row_id, content in rows],
    )
