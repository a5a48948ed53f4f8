"""What the services keep beside the records, scope by scope: counted, and purged with the scope."""

from __future__ import annotations

from typing import Any

import apsw

from recollect.store import documents, sessions
from recollect.store.writing import intern_scopes

__all__ = ["figures", "load_working", "purge", "save_working", "scope_id"]

_TABLES = {
    "sessions": "session",
    "snapshots": "session_snapshot",
    "tool_patterns": "tool_pattern",
    "error_recoveries": "error_recovery",
    "consolidations": "consolidation",
    "working_memories": "working_state",
}


def scope_id(connection: apsw.Connection, path: str) -> int:
    """The id of a scope, added if it is new."""
    return intern_scopes(connection, {path})[path]


def figures(connection: apsw.Connection, scope: str) -> dict[str, int]:
    """How many rows each service keeps in a scope and its descendants."""
    condition, bound = sessions.within(scope)
    seen = f"(SELECT id FROM scope WHERE {condition})"
    counts: dict[str, int] = {
        name: connection.execute(f"SELECT count(*) FROM {table} WHERE scope_id IN {seen}", bound).get
        for name, table in _TABLES.items()
    }
    counts["session_messages"] = connection.execute(
        f"SELECT count(*) FROM session_message m JOIN session s ON s.id = m.session_id WHERE s.scope_id IN {seen}",
        bound,
    ).get
    counts["documents"] = len(documents.listed(connection, scope))
    return counts


def purge(connection: apsw.Connection, scope: str) -> int:
    """Remove what every service keeps in a scope and its descendants; returns how many rows, messages not counted."""
    condition, bound = sessions.within(scope)
    removed = 0
    found = sessions.unused_since(connection, scope, None)
    if found:
        sessions.delete(connection, found)
        removed += len(found)
    for table in _TABLES.values():
        connection.execute(f"DELETE FROM {table} WHERE scope_id IN (SELECT id FROM scope WHERE {condition})", bound)
        removed += connection.changes()
    return removed + documents.purge_scope(connection, scope)


def save_working(connection: apsw.Connection, scope: int, items: str, now: int) -> None:
    """Keep the working memory of a scope, as JSON, in place of what was kept."""
    connection.execute(
        "INSERT INTO working_state VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET items = excluded.items, updated_at = excluded.updated_at",
        (scope, items, now),
    )


def load_working(connection: apsw.Connection, scope: str) -> str | None:
    """The working memory of a scope as it was kept."""
    found: Any = connection.execute(
        "SELECT w.items FROM working_state w JOIN scope p ON p.id = w.scope_id WHERE p.path = ?", (scope,)
    ).get
    return None if found is None else str(found)
