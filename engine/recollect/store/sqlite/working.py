"""Working memories, in SQLite."""

from __future__ import annotations

from typing import Any

from recollect.store.sqlite.repository import Repository


class SqliteWorking(Repository):
    """The table `working_state`."""

    def save(self, scope: int, items: str, now: int) -> None:
        self._execute(
            "INSERT INTO working_state VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET items = excluded.items, updated_at = excluded.updated_at",
            (scope, items, now),
        )

    def load(self, scope: str) -> str | None:
        found: Any = self._execute(
            "SELECT w.items FROM working_state w JOIN scope p ON p.id = w.scope_id WHERE p.path = ?", (scope,)
        ).get
        return None if found is None else str(found)
