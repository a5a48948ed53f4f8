"""A plugin of pytest: the SDK's tests of its in-memory session store get ours."""

from __future__ import annotations

from typing import Any

import claude_agent_sdk
from claude_agent_sdk._internal import session_store

from recallite_connect.claude_agent_sdk import RecalliteSessionStore


class _Store(RecalliteSessionStore):
    """With what the tests call beside the protocol."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self._mtimes: dict[str, int] = {}

    async def list_sessions(self, project_key: str) -> list[Any]:
        found = await super().list_sessions(project_key)
        return [
            each | {"mtime": self._mtimes.get(f"{project_key}/{each['session_id']}", each["mtime"])} for each in found
        ]

    def get_entries(self, key: Any) -> list[Any]:
        return self._load(key) or []

    @property
    def size(self) -> int:
        return sum("/" not in each.id for each in self._scoped.sessions.list())

    def clear(self) -> None:
        self._scoped.forget(scope="/")
        self._known.clear()


session_store.InMemorySessionStore = claude_agent_sdk.InMemorySessionStore = _Store
